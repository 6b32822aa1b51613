"""Tests that the data source returns the same events that a run stores."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from flink_triage.local import Options
from flink_triage.spark.pipeline import run
from flink_triage.spark.query.read_result import read_table
from flink_triage.spark.source import SCHEMA, register

LOGS = str(Path(__file__).parents[1] / "logs" / "kafka" / "offset-commit-failed")


def told(rows: DataFrame) -> list[str]:
    return sorted(rows.select(F.to_json(F.struct(*SCHEMA.names))).toArrow().column(0).to_pylist())


def test_the_events_are_those_that_a_run_stores(
    spark: SparkSession, tmp_path: Path, settled: Options
) -> None:
    register(spark)
    run(spark, [LOGS], str(tmp_path / "warehouse"), settled)
    found = spark.read.format("flink_logs").load(LOGS)
    assert found.count() > 20
    assert told(found) == told(read_table(spark, str(tmp_path / "warehouse"), "events"))
