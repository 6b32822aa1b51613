"""On Spark: a deployment that cannot be diagnosed is reported, the others are published."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from flink_triage.cli.outputs import exit_code
from flink_triage.diagnosis.resource_limits import UNDIAGNOSED
from flink_triage.local import Options, run_local
from flink_triage.model import Result
from flink_triage.report import render
from flink_triage.settings import Settings
from flink_triage.spark.pipeline import diagnose_again, run
from flink_triage.spark.query.read_result import read_result, read_table
from tests.crash.workload import write
from tests.spark.faults import Faults, faults_in_workers

SETTINGS = Settings(settle_seconds=-1e9, max_diagnosis_seconds=1)
OPTIONS = Options(settings=SETTINGS)
SLOW = "not diagnosed: it takes more than 1 s of CPU time"
HEALTHY = ("clicks", "payments")
SIGNATURE = """
title: Event was slow
severity: minor
role: trigger
match:
  any:
    - literal: was slow and nobody said so
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


class Fleet:
    """Four deployments and their warehouse."""

    def __init__(self, spark: SparkSession, folder: Path, faults: Faults) -> None:
        self.spark, self.folder, self.faults = spark, folder, faults
        self.logs, self.warehouse = str(folder / "logs"), str(folder / "warehouse")
        self._events = 0
        for name in ("orders", "slow", *HEALTHY):
            self.write(name)

    def write(self, name: str) -> None:
        path = Path(self.logs) / name / "jobmanager.log"
        numbers = range(self._events, self._events + 24)
        self._events += 24
        write(path, numbers, is_appended=path.exists())

    def run(self, options: Options = OPTIONS) -> Result:
        self.run_id = run(self.spark, [self.logs], self.warehouse, options)
        return read_result(self.spark, self.warehouse)

    def told(self) -> dict[str, list[tuple[object, ...]]]:
        """The incidents that one run over all logs tells of."""
        return incidents_of(run_local([self.logs], OPTIONS))


def incidents_of(result: Result) -> dict[str, list[tuple[object, ...]]]:
    found: dict[str, list[tuple[object, ...]]] = {}
    for incident in result.incidents:
        row = (incident.incident_id, incident.verdict, incident.outcome, incident.ended_at)
        found.setdefault(incident.deployment, []).append(row)
    return found


def failures_of(result: Result) -> dict[str, str]:
    return {
        q.path: q.reason for q in result.coverage.quarantined if q.reason.startswith(UNDIAGNOSED)
    }


@pytest.fixture
def fleet(spark: SparkSession, tmp_path: Path) -> Iterator[Fleet]:
    with faults_in_workers(spark, tmp_path / "faults") as faults:
        yield Fleet(spark, tmp_path, faults)


def test_the_others_are_published_and_the_bad_ones_recover(fleet: Fleet) -> None:
    fleet.faults.set({"orders": "raise", "slow": "burn"})
    first = fleet.run()
    assert incidents_of(first) == {name: fleet.told()[name] for name in HEALTHY}
    failures = failures_of(first)
    assert failures.keys() == {"orders", "slow"}
    assert failures["slow"] == SLOW
    assert failures["orders"].startswith("not diagnosed: RecursionError at faults.py:")
    assert (exit_code(first, "none", False), exit_code(first, "none", True)) == (0, 3)
    for form in ("text", "json", "markdown", "html", "sarif", "github"):
        assert SLOW in render(first, form), form

    # Nothing of theirs has changed: they are reported again, and not tried again.
    fleet.faults.set({})
    fleet.write("clicks")
    second = fleet.run()
    assert failures_of(second) == failures
    assert incidents_of(second) == {name: fleet.told()[name] for name in HEALTHY}
    run_id = fleet.run_id
    assert failures_of(fleet.run()) == failures
    assert fleet.run_id == run_id

    fleet.write("orders")
    third = fleet.run()
    assert failures_of(third) == {"slow": SLOW}
    assert incidents_of(third)["orders"] == fleet.told()["orders"]

    # Signatures that were changed are a reason to try again, without a new line of a log.
    pack = fleet.folder / "signatures" / "own"
    pack.mkdir(parents=True)
    (pack / "slow.yaml").write_text(SIGNATURE)
    fourth = fleet.run(replace(OPTIONS, signature_directories=(pack.parent,)))
    assert failures_of(fourth) == {}
    assert incidents_of(fourth) == fleet.told()
    assert exit_code(fourth, "none", True) == 0


def test_what_was_told_before_a_failure_counts_until_the_deployment_recovers(
    fleet: Fleet,
) -> None:
    before = fleet.run()
    fleet.faults.set({"orders": "burn"})
    fleet.write("orders")
    failed = fleet.run()
    assert failures_of(failed) == {"orders": SLOW}
    assert incidents_of(failed) == incidents_of(before)
    assert incidents_of(failed)["orders"] != fleet.told()["orders"]
    # The news are told of in whichever way the deployment is diagnosed next.
    assert read_table(fleet.spark, fleet.warehouse, "incidents").count() > 0
    fleet.faults.set({})
    fleet.write("orders")
    recovered = fleet.run()
    assert failures_of(recovered) == {}
    assert incidents_of(recovered) == fleet.told()


def test_a_fleet_of_bad_ones_is_no_success_and_diagnosing_all_again_tries_all_again(
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
    told = fleet.told()
    del told["slow"]
    assert incidents_of(result) == told
