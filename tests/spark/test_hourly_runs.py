"""Tests that hourly runs over growing logs report the same incidents as one run over all logs."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from benchmarks import incremental as hourly
from flink_triage.local import Options, run_local
from flink_triage.spark.diagnose import diagnose_batch
from flink_triage.spark.pipeline import diagnose_again, run
from flink_triage.spark.query.read_result import read_result
from flink_triage.spark.tables.schemas import DEPLOYMENTS, INCIDENTS
from flink_triage.spark.tables.warehouse import Warehouse


def test_hourly_runs_give_the_same_result_as_one_reading(
    spark: SparkSession, tmp_path: Path, settled: Options
) -> None:
    fleet, warehouse = tmp_path / "fleet", Warehouse(str(tmp_path / "warehouse"))
    # A recurring failure, a day without failures after which all incidents are closed, the same
    # failure again, and finally logs that arrive a day late.
    runs, ids = [], []
    for hours in ((0,), (1, 2), (26,), (27,), (3,)):
        for hour in hours:
            hourly.write_hour(fleet, hour)
        runs.append(run(spark, [str(fleet)], warehouse, settled))
        found, expected = read_result(spark, warehouse), run_local([str(fleet)], settled)
        assert hourly.comparable(found) == hourly.comparable(expected), hours
        assert found.effective_config == expected.effective_config, hours
        ids.append([i.incident_id for i in found.incidents if i.deployment == "totals"])
    # One incident while the failure recurs within hours; then a second incident.
    assert ids[0] == ids[1]
    assert len(ids[0]) == 1
    assert set(ids[0]) < set(ids[2]) == set(ids[3])
    assert len(ids[2]) == 2
    rows = warehouse.published(spark, DEPLOYMENTS).where(F.col("deployment") == "totals")
    whole = {row["run_id"]: row["whole_run_id"] for row in rows.collect()}
    assert [whole[run_id] for run_id in runs] == [*[runs[0]] * 4, runs[4]]
    written = warehouse.published(spark, INCIDENTS).where("deployment = 'totals'").collect()
    assert [row["run_id"] for row in written if row["is_closed"]].count(runs[2]) == 1
    assert not [row for row in written if row["run_id"] == runs[3] and row["is_closed"]]
    # The carried state is not required: the events contain all information.
    diagnose_again(spark, warehouse, settled)
    assert hourly.comparable(read_result(spark, warehouse)) == hourly.comparable(expected)


CASES = [
    ("not seen before", "diagnosed", None, ("ongoing", "major"), "new"),
    ("new and over at once", "diagnosed", None, ("recovered", "major"), "new"),
    ("it goes on", "diagnosed", ("ongoing", "major"), ("ongoing", "major"), "ongoing"),
    ("the job failed for good", "diagnosed", ("ongoing", "major"), ("failed", "major"), "worse"),
    ("a graver cause", "diagnosed", ("ongoing", "major"), ("ongoing", "critical"), "worse"),
    ("a cause at all", "undetermined", ("ongoing", None), ("ongoing", "minor"), "worse"),
    ("it recovered", "diagnosed", ("failed", "major"), ("recovered", "major"), "resolved"),
    ("long over", "diagnosed", ("recovered", "major"), ("recovered", "major"), None),
    ("back again", "diagnosed", ("recovered", "major"), ("ongoing", "major"), "worse"),
    ("no trouble", "healthy", None, ("unknown", None), None),
]


def test_incident_status_since_the_last_run(spark: SparkSession) -> None:
    incident = "struct<incident_id: string, verdict: string, outcome: string, severity: string>"
    rows = spark.createDataFrame(
        [("orders", (name, verdict, *now), None, None) for name, verdict, _, now, _ in CASES],
        f"deployment string, incident {incident}, state string, unknown_json string",
    )
    before = spark.createDataFrame(
        [("orders", name, *was) for name, _, was, _, _ in CASES if was],
        "deployment string, incident_id string, outcome string, severity string",
    )
    compared = diagnose_batch._with_status(rows, before).collect()
    found = {row["incident"]["incident_id"]: row["status"] for row in compared}
    assert found == {case[0]: case[4] for case in CASES}
