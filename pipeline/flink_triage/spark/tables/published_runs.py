"""Reads the published runs of a warehouse, the newest last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from flink_triage.spark.runtime.explained_errors import damaged
from flink_triage.spark.tables.arrow_types import TEXT
from flink_triage.spark.tables.schemas import RUNS
from flink_triage.spark.tables.table_names import STORED
from flink_triage.spark.tables.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class FailedDiagnosis:
    """A deployment whose last diagnosis failed.

    ``basis`` is the digest of the signatures, options, and program version of that diagnosis.
    """

    deployment: str
    reason: str
    basis: str


@dataclass(frozen=True, slots=True)
class PublishedRun:
    """A row of `runs`; ``tables`` are the tables that it wrote to.

    ``undiagnosed`` are the deployments whose last diagnosis up to this run failed.
    """

    run_id: str
    finished_at: datetime
    batch: int = 0
    tables: tuple[str, ...] = ()
    tool_version: str = ""
    undiagnosed: tuple[FailedDiagnosis, ...] = ()


def published_runs(spark: SparkSession, warehouse: Warehouse) -> tuple[PublishedRun, ...]:
    """All published runs, in the order of their batches; empty if there are none.

    Raises ``CorruptStateError`` if `runs` is damaged or has a different table version, or if a
    table that a published run wrote to is missing, because it would be recreated without its rows.
    """
    if not warehouse.exists(spark, RUNS):
        log = Path(warehouse.location(RUNS.name)) / "_delta_log"
        # Delta writes a checksum after a commit, so a checksum proves that there was a commit.
        if warehouse.local_path is not None and any(log.glob("[0-9]*.crc")):
            raise damaged(warehouse.location(RUNS.name))
        return ()
    columns = ("run_id", "finished_at", "batch", "row_counts", "tool_version", "undiagnosed")
    rows = warehouse.read(spark, RUNS).select(*columns).toArrow().to_pylist()
    found = (
        PublishedRun(
            row["run_id"],
            row["finished_at"],
            row["batch"],
            tuple(sorted(dict(row["row_counts"]))),
            row["tool_version"],
            tuple(FailedDiagnosis(**failed) for failed in row["undiagnosed"] or ()),
        )
        for row in rows
    )
    runs = tuple(sorted(found, key=lambda run: run.batch))
    for name in sorted({name for run in runs for name in run.tables}):
        if not warehouse.exists(spark, STORED[name]):
            raise damaged(warehouse.location(name))
    return runs


def newest_of(warehouse: Warehouse, runs: Sequence[PublishedRun]) -> PublishedRun:
    """The newest run; raises ``UsageError`` if none has been published."""
    if not runs:
        raise warehouse.unpublished()
    return runs[-1]


def frame_of(spark: SparkSession, run_ids: Sequence[str]) -> DataFrame:
    """The ids as a DataFrame with the column ``run_id``, like the result of `Warehouse.runs`."""
    return spark.createDataFrame(pa.table({"run_id": pa.array(run_ids, TEXT)}))
