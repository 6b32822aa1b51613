"""Tests that a deployment that cannot be diagnosed on Spark does not affect the others."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import pytest
import zstandard
from pyspark.sql import SparkSession

from flink_triage.cli.outputs import exit_code
from flink_triage.local import Options, run_local
from flink_triage.model import Result
from flink_triage.report import render
from flink_triage.settings import MIB, Settings
from flink_triage.spark.pipeline import diagnose_again, run
from flink_triage.spark.query.read_result import read_result, read_table
from tests.crash.workload import event, settle, write
from tests.fuzz.heavy import aliases
from tests.spark.faults import Faults, faults_in_workers

SETTINGS = Settings(
    settle_seconds=-1e9,
    max_diagnosis_seconds=1,
    max_diagnosis_bytes=128 * MIB,
    max_file_bytes=8 * MIB,
    signature_budget_seconds=0.5,
)
OPTIONS = Options(settings=SETTINGS)
SLOW = "not diagnosed: it takes more than 1 s of CPU time"
LARGE = "not diagnosed: it takes more than 128 MiB"
HEALTHY = ("clicks", "payments")
SIGNATURE = """
title: Event was slow
severity: minor
role: trigger
match:
  any:
    - {match}
cause: A test.
remediation:
  summary: None.
  risk: live
references: [FLINK-1]
examples:
  match:
    - "2026-11-21 06:47:23,468 WARN  a.B [] - was slow and nobody said so"
  no_match:
    - "2026-11-21 06:47:23,468 WARN  a.B [] - was slow"
"""


SLOW_REGEX = r"{literal: patience, regex: 'patience (?:a|aa)+$'}"
NO_REGEX = "{literal: was slow and nobody said so}"


class Fleet:
    """Four or more deployments and their warehouse."""

    def __init__(self, spark: SparkSession, folder: Path, faults: Faults) -> None:
        self.spark, self.folder, self.faults = spark, folder, faults
        self.logs, self.warehouse = str(folder / "logs"), str(folder / "warehouse")
        self.options = OPTIONS
        self._events = 0
        for name in ("orders", "slow", *HEALTHY):
            self.write(name)

    def write(self, name: str) -> None:
        path = Path(self.logs) / name / "jobmanager.log"
        numbers = range(self._events, self._events + 24)
        self._events += 24
        write(path, numbers, is_appended=path.exists())

    def add(self, name: str, file_name: str, data: bytes) -> None:
        path = Path(self.logs) / name / file_name
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
        settle(path)

    def use_signature(self, match: str) -> None:
        """Use one signature in addition to the built-in ones."""
        path = self.folder / "signatures" / "own" / "slow.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SIGNATURE.format(match=match))
        self.options = replace(OPTIONS, signature_directories=(path.parents[1],))

    def run(self) -> Result:
        self.run_id = run(self.spark, [self.logs], self.warehouse, self.options)
        return read_result(self.spark, self.warehouse)

    def told(self) -> dict[str, list[tuple[object, ...]]]:
        """The incidents that a local run over all logs reports."""
        return incidents_of(run_local([self.logs], self.options))


def incidents_of(result: Result) -> dict[str, list[tuple[object, ...]]]:
    found: dict[str, list[tuple[object, ...]]] = {}
    for incident in result.incidents:
        row = (incident.incident_id, incident.verdict, incident.outcome, incident.ended_at)
        found.setdefault(incident.deployment, []).append(row)
    return found


def failures_of(result: Result) -> dict[str, str]:
    return {q.path: q.reason for q in result.coverage.quarantined if q.is_undiagnosed}


@pytest.fixture
def fleet(spark: SparkSession, tmp_path: Path) -> Iterator[Fleet]:
    with faults_in_workers(spark, tmp_path / "faults") as faults:
        yield Fleet(spark, tmp_path, faults)


def test_bad_deployments_among_twenty_are_reported_and_recover(fleet: Fleet) -> None:
    """Three deployments with hostile logs are published; three cannot be diagnosed."""
    for number in range(12):
        fleet.write(f"job-{number:02}")
    bomb = "".join(map(event, range(20))).encode() + b"a" * (512 * MIB)
    fleet.add("bomb", "taskmanager.log.zst", zstandard.compress(bomb, 3))
    fleet.add("aliases", "taskmanager.log", logged(aliases))
    fleet.add(
        "regex", "taskmanager.log", (event(1).strip() + f" patience {'a' * 60}b\n").encode() * 9
    )
    fleet.write("large")
    fleet.use_signature(SLOW_REGEX)
    faults = {"orders": "raise", "slow": "burn", "large": "grow"}
    fleet.faults.set(faults)
    expected = fleet.told()
    assert len(expected) == 20
    published = {name: incidents for name, incidents in expected.items() if name not in faults}

    first = fleet.run()
    assert incidents_of(first) == published
    failures = failures_of(first)
    assert failures.keys() == faults.keys()
    assert failures["slow"] == SLOW
    assert failures["large"] == LARGE
    assert failures["orders"].startswith("not diagnosed: RecursionError at faults.py:")
    cut = [q.path for q in first.coverage.quarantined if "cut at" in q.reason]
    assert cut == [f"{fleet.logs}/bomb/taskmanager.log.zst"]
    assert [skipped.signature for skipped in first.coverage.signatures_skipped] == ["own/slow"]
    assert (exit_code(first, "none", False), exit_code(first, "none", True)) == (0, 3)
    for form in ("text", "json", "markdown", "html", "sarif", "github"):
        assert SLOW in render(first, form), form
    headline = "20 deployments · 16 diagnosed (16 critical) · 1 healthy · 3 not diagnosed"
    assert render(first, "text").startswith(headline)

    # Their input has not changed: they are reported again, but their diagnosis is not retried.
    fleet.faults.set({})
    fleet.write("clicks")
    second = fleet.run()
    assert failures_of(second) == failures
    published["clicks"] = fleet.told()["clicks"]
    assert incidents_of(second) == published
    run_id = fleet.run_id
    assert failures_of(fleet.run()) == failures
    assert fleet.run_id == run_id

    fleet.write("orders")
    third = fleet.run()
    assert failures_of(third) == {"slow": SLOW, "large": LARGE}
    assert incidents_of(third)["orders"] == fleet.told()["orders"]

    # Changed signatures cause a retry, even without new log lines.
    fleet.use_signature(NO_REGEX)
    fourth = fleet.run()
    assert failures_of(fourth) == {}
    assert incidents_of(fourth) == fleet.told()
    assert len(fleet.told()) == 20


def logged(write: Callable[[BinaryIO], None]) -> bytes:
    out = io.BytesIO()
    write(out)
    return out.getvalue()


def test_earlier_incidents_are_kept_until_the_deployment_recovers(
    fleet: Fleet,
) -> None:
    before = fleet.run()
    fleet.faults.set({"orders": "burn"})
    fleet.write("orders")
    failed = fleet.run()
    assert failures_of(failed) == {"orders": SLOW}
    assert incidents_of(failed) == incidents_of(before)
    assert incidents_of(failed)["orders"] != fleet.told()["orders"]
    # The earlier incidents are in the table, too.
    assert read_table(fleet.spark, fleet.warehouse, "incidents").count() > 0
    fleet.faults.set({})
    fleet.write("orders")
    recovered = fleet.run()
    assert failures_of(recovered) == {}
    assert incidents_of(recovered) == fleet.told()


def test_fleet_of_bad_deployments_fails_and_is_retried_by_diagnose_again(
    fleet: Fleet,
) -> None:
    fleet.faults.set(dict.fromkeys(("orders", "slow", *HEALTHY), "raise"))
    result = fleet.run()
    assert result.incidents == ()
    assert exit_code(result, "none", False) == 70
    fleet.faults.set({"slow": "raise"})
    diagnose_again(fleet.spark, fleet.warehouse, OPTIONS)
    result = read_result(fleet.spark, fleet.warehouse)
    assert failures_of(result).keys() == {"slow"}
    expected = fleet.told()
    del expected["slow"]
    assert incidents_of(result) == expected
