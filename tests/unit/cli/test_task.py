"""Tests the command as a scheduler task, which raises failures and publishes task values."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flink_triage.cli.scheduler_task import TaskFailedError, main, values_of, worst_severity
from flink_triage.local import Options, run_local
from flink_triage.model import Result

LOGS = Path(__file__).parents[2] / "logs"
FULL_DISK = LOGS / "checkpoint/tolerable-threshold-exceeded/disk-full-1.16.0/logs"
# A stub of the module that a Databricks task imports. It appends each task value to a file.
RUNTIME = """
import json, pathlib, types

def _set(key: str, value: object) -> None:
    with pathlib.Path({values!r}).open("a") as file:
        print(json.dumps([key, value]), file=file)

dbutils = types.SimpleNamespace(
    jobs=types.SimpleNamespace(taskValues=types.SimpleNamespace(set=_set))
)
"""


@pytest.fixture
def task_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Imitates a Databricks environment and returns the file of task values."""
    values = tmp_path / "values"
    values.touch()
    runtime = tmp_path / "databricks" / "sdk" / "runtime.py"
    runtime.parent.mkdir(parents=True)
    runtime.write_text(RUNTIME.format(values=str(values)))
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "databricks"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "18.0")
    return values


def read(values: Path) -> dict[str, object]:
    return dict(json.loads(line) for line in values.read_text().splitlines())


def run_task(monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    monkeypatch.setattr(sys, "argv", ["flink-triage-task", *words])
    assert main() is None


def test_values_of_a_task_that_wrote_a_result(
    task_values: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    output = tmp_path / "result.json"
    run_task(monkeypatch, "diagnose", str(FULL_DISK), "--format=json", f"--output={output}")
    values = read(task_values)
    assert values.keys() == {"exit_code", "run_id", "is_new", "worst_severity"}
    assert values["run_id"] == json.loads(output.read_text())["run"]["run_id"]
    assert values["exit_code"] == "0"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        pytest.param(["what"], 2, id="an unknown command"),
        pytest.param(["report"], 2, id="a missing argument"),
        pytest.param(["diagnose", str(FULL_DISK), "--fail-on=critical"], 1, id="findings"),
    ],
)
def test_a_failed_task_raises_and_leaves_its_exit_code(
    task_values: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], code: int
) -> None:
    with pytest.raises(TaskFailedError, match=f"ended with exit code {code}"):
        run_task(monkeypatch, *words)
    assert read(task_values)["exit_code"] == str(code)


def test_no_values_are_set_outside_databricks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATABRICKS_RUNTIME_VERSION", raising=False)
    monkeypatch.setitem(sys.modules, "databricks.sdk.runtime", None)
    run_task(monkeypatch, "diagnose", str(FULL_DISK), "--quiet")


@pytest.fixture(scope="module")
def result() -> Result:
    return run_local([str(FULL_DISK)], Options())


@pytest.mark.parametrize(
    ("finished", "is_new"),
    [
        pytest.param(timedelta(seconds=1), "true", id="published by this task"),
        pytest.param(-timedelta(hours=1), "false", id="published by an earlier run"),
        pytest.param(None, "false", id="never published"),
    ],
)
def test_a_run_is_new_when_it_was_published_by_the_task(
    result: Result, finished: timedelta | None, is_new: str
) -> None:
    began_at = datetime(2026, 11, 21, 6, tzinfo=UTC)
    finished_at = None if finished is None else began_at + finished
    published = replace(result, run=replace(result.run, finished_at=finished_at))
    assert values_of(published, began_at)["is_new"] == is_new


@pytest.mark.parametrize(
    ("status", "severity"),
    [
        ("new", "critical"),
        ("ongoing", "critical"),
        ("worse", "critical"),
        ("resolved", "none"),
        (None, "none"),
    ],
)
def test_the_worst_severity_is_that_of_open_incidents(
    result: Result, status: str | None, severity: str
) -> None:
    incidents = tuple(replace(incident, status=status) for incident in result.incidents)
    assert worst_severity(replace(result, incidents=incidents)) == severity


def test_a_failure_without_a_name_is_major(result: Result) -> None:
    unnamed = replace(result.incidents[0], status="new", verdict="undetermined", diagnoses=())
    assert worst_severity(replace(result, incidents=(unnamed,))) == "major"
