"""Batches that were committed and not published: finished by the next run, or left out by name."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from flink_triage.errors import CorruptStateError, UsageError
from flink_triage.spark import pipeline
from flink_triage.spark.pipeline import run
from flink_triage.spark.query.read_result import read_table
from flink_triage.spark.tables.schemas import EVENTS
from flink_triage.spark.tables.table_names import BATCHES
from flink_triage.spark.tables.warehouse import Warehouse
from tests.crash.workload import numbers_in, write

NUMBERS = range(12)


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(str(tmp_path / "warehouse"))


@pytest.fixture
def logs(
    spark: SparkSession, warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> str:
    """Logs whose only run ended right after its commit."""
    write(tmp_path / "logs" / "orders" / "jobmanager.log", NUMBERS)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(pipeline, "finish_batch", killed)
        with pytest.raises(KeyboardInterrupt):
            run(spark, [str(tmp_path / "logs")], warehouse)
    return str(tmp_path / "logs")


def test_what_was_read_is_published_although_its_log_is_gone(
    spark: SparkSession, warehouse: Warehouse, logs: str, tmp_path: Path
) -> None:
    (Path(logs) / "orders" / "jobmanager.log").unlink()
    write(Path(logs) / "clicks" / "jobmanager.log", range(20, 24))
    run(spark, [logs], warehouse)
    assert numbers_in(tmp_path / "warehouse") == Counter([*NUMBERS, *range(20, 24)])
    assert read_table(spark, warehouse, "runs").count() == 2


def test_a_batch_that_cannot_be_opened_is_left_out_by_its_number_and_read_again(
    spark: SparkSession, warehouse: Warehouse, logs: str, tmp_path: Path
) -> None:
    warehouse.delete(spark, BATCHES, "kind = 'header'")
    with pytest.raises(CorruptStateError, match=r"0 headers of batch 1, .* --skip-batch"):
        run(spark, [logs], warehouse)
    with pytest.raises(UsageError, match=r"--skip-batch: got 7, allowed: 1"):
        run(spark, [logs], warehouse, skipped_batch=7)
    told = list[str]()
    run(spark, [logs], warehouse, None, told.append, skipped_batch=1)
    assert any("batch 1 is skipped" in line for line in told)
    assert numbers_in(tmp_path / "warehouse") == Counter(NUMBERS)
    assert warehouse.read(spark, EVENTS).count() == read_table(spark, warehouse, "events").count()


def test_a_batch_of_another_release_is_read_again(
    spark: SparkSession,
    warehouse: Warehouse,
    logs: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pipeline, "PARCEL_VERSION", 99)
    told = list[str]()
    run(spark, [logs], warehouse, None, told.append)
    assert any("different batch format" in line for line in told)
    assert numbers_in(tmp_path / "warehouse") == Counter(NUMBERS)
