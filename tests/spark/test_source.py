"""Logs as a data source: the same events as a run stores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from flink_triage.local import Options
from flink_triage.spark.pipeline import run
from flink_triage.spark.results import read_table
from flink_triage.spark.source import SCHEMA, register

LOGS = str(Path(__file__).parents[1] / "logs" / "kafka" / "offset-commit-failed")
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture
def pushing(spark: SparkSession) -> Iterator[SparkSession]:
    spark.conf.set(PUSHDOWN, "true")
    yield spark
    spark.conf.unset(PUSHDOWN)


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


def test_filters_on_files_are_applied_to_files(pushing: SparkSession) -> None:
    register(pushing)
    events = pushing.read.format("flink_logs").option("groupBy", "file").load(LOGS)
    path = events.select("path").first()[0]
    of_one = events.where((F.col("path") == path) & (F.col("level") == "WARN"))
    assert "path" in of_one._jdf.queryExecution().optimizedPlan().toString()
    expected = events.where(F.concat("path", F.lit("")) == path).where("level = 'WARN'")
    assert told(of_one) == told(expected) != []
    assert events.where("deployment = 'none of these'").count() == 0
