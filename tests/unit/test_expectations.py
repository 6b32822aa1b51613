"""Checks inputs against the ``expected.yaml`` in the same folder."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from benchmarks.expectations import Checked, check_expectations

SPACE = (
    "2026-05-04 10:00:00,000 WARN  org.apache.flink.runtime.taskmanager.Task [] - Map (1/2)#0"
    " (0123456789abcdef0123456789abcdef_0_0_0) switched from RUNNING to FAILED with failure cause:"
    "\njava.io.IOException: No space left on device\n"
    "\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)\n"
)


def check(folder: Path, **expected: object) -> Checked:
    folder.joinpath("1.log").write_text(SPACE)
    described = {"is_negative": False, "verdict": "diagnosed", "signature": "disk/full", **expected}
    folder.joinpath("expected.yaml").write_text(yaml.safe_dump({"files": {"1.log": described}}))
    (checked,) = check_expectations(folder)
    return checked


@pytest.mark.parametrize(
    ("expected", "problem"),
    [
        ({}, None),
        ({"signature": ["kafka/auth-failed", "disk/full"]}, None),
        ({"must_show": ["No space left"], "severity_at_least": "major"}, None),
        ({"verdict": "healthy"}, "verdict diagnosed"),
        ({"signature": "new: a signature to be written"}, None),
        ({"signature": "kafka/auth-failed"}, "signature disk/full"),
        ({"must_show": ["No such file"]}, "does not show 'No such file'"),
        ({"not_rank1": "disk/full"}, "rank 1 is disk/full"),
        ({"first_fault_line": 2}, "first fault on line"),
        ({"flink_version": "1.15.4"}, "version None"),
        ({"remedy_must": ["a word that no advice holds"]}, "remedy lacks"),
        ({"remedy_value_above": {"akka.framesize": 1}}, "akka.framesize: [] is not above 1"),
        ({"title_must_not": ["full"]}, "title has 'full'"),
    ],
)
def test_unmet_expectations_are_reported(tmp_path, expected, problem):
    checked = check(tmp_path, **expected)
    if problem is None:
        assert checked.problems == ()
    else:
        assert [problem in reason for reason in checked.problems] == [True]


def test_new_signatures_are_those_that_are_not_listed(tmp_path):
    (tmp_path / "known-signatures.txt").write_text("disk/full\n")
    assert check(tmp_path, signature="new: another").problems == ("signature disk/full",)
