"""Tests that committed, unpublished batches are finished by the next run or skipped on request."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from flink_triage.errors import CorruptStateError, UsageError
from flink_triage.spark import pipeline
from flink_triage.spark.ingest import batch
from flink_triage.spark.ingest.ledger import PLANNED
from flink_triage.spark.pipeline import run
from flink_triage.spark.query.read_result import read_table
from flink_triage.spark.tables.parcels import RangePositions
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
    """Logs whose only run was killed right after its commit."""
    write(tmp_path / "logs" / "orders" / "jobmanager.log", NUMBERS)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(pipeline, "finish_batch", killed)
        with pytest.raises(KeyboardInterrupt):
            run(spark, [str(tmp_path / "logs")], warehouse)
    return str(tmp_path / "logs")


def test_unfinished_batch_is_published_although_its_log_is_gone(
    spark: SparkSession, warehouse: Warehouse, logs: str, tmp_path: Path
) -> None:
    (Path(logs) / "orders" / "jobmanager.log").unlink()
    write(Path(logs) / "clicks" / "jobmanager.log", range(20, 24))
    run(spark, [logs], warehouse)
    assert numbers_in(tmp_path / "warehouse") == Counter([*NUMBERS, *range(20, 24)])
    assert read_table(spark, warehouse, "runs").count() == 2


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("header", "0 headers of batch 1, "), ("summary", "0 summaries of batch 1, expected 1")],
)
def test_a_batch_that_cannot_be_opened_is_left_out_by_its_number_and_read_again(
    spark: SparkSession, warehouse: Warehouse, logs: str, tmp_path: Path, kind: str, reason: str
) -> None:
    warehouse.delete(spark, BATCHES, f"kind = '{kind}'")
    with pytest.raises(CorruptStateError, match=f"{reason}.* --skip-batch"):
        run(spark, [logs], warehouse)
    with pytest.raises(UsageError, match=r"--skip-batch: got 7, allowed: 1"):
        run(spark, [logs], warehouse, skipped_batch=7)
    messages = list[str]()
    run(spark, [logs], warehouse, None, messages.append, skipped_batch=1)
    assert any("batch 1 is skipped" in line for line in messages)
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
    messages = list[str]()
    run(spark, [logs], warehouse, None, messages.append)
    assert any("different batch format" in line for line in messages)
    assert numbers_in(tmp_path / "warehouse") == Counter(NUMBERS)


def test_each_file_of_a_batch_has_the_summaries_of_its_ranges(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batch, "FILES_PER_PARCEL", 2)
    # Files without a range, such as links, do not use a range number.
    ranges = {"a": (0, 2), "b": (0, 0), "c": (2, 1), "d": (0, 0), "e": (3, 1), "f": (0, 0)}
    files = [
        {"path": path, "first_range": first, "range_count": count}
        for path, (first, count) in ranges.items()
    ]
    opened = batch.Batch(
        cast(batch.Header, None),
        pa.Table.from_pylist(files, PLANNED),
        pa.Table.from_pylist([{"range_number": n} for n in range(4)], batch.SUMMARIES),
        RangePositions(),
        cast(DataFrame, None),
    )
    found = {
        file["path"]: [summary["range_number"] for summary in of_one]
        for file, of_one in opened.files_with_ranges()
    }
    assert found == {"a": [0, 1], "b": [], "c": [2], "d": [], "e": [3], "f": []}
