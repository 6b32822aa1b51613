"""Tests that a file that is truncated during a read and then restored is read once."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from flink_triage.analyzer import Analyzer
from flink_triage.local import Options, pack_of
from flink_triage.logs.inputs.files import list_inputs
from flink_triage.settings import Settings
from flink_triage.spark.ingest import derive
from flink_triage.spark.ingest.batch import Header, commit, open_batch
from flink_triage.spark.ingest.ledger import planned_rows
from flink_triage.spark.ingest.ranges import RangeTask, cut_ranges
from flink_triage.spark.ingest.read import CHANGED, Part, batches_of, stage_range
from flink_triage.spark.tables.warehouse import Warehouse
from tests.spark.memory_ledger import MemoryLedger, plan_over

OPTIONS = Options(settings=Settings(settle_seconds=-1e9, range_bytes=20_000))
ANALYZER = Analyzer(pack_of(OPTIONS), OPTIONS.settings, UTC)
LOGS = (
    "kafka/offset-commit-failed/broker-frozen-1.20.1",
    "checkpoint/tolerable-threshold-exceeded/disk-full-1.16.0",
)


@dataclass(frozen=True)
class Run:
    """The output of a run."""

    events: list[dict[str, object]]
    traces: dict[str, int]
    lines: int
    ledger: MemoryLedger


@pytest.fixture
def logs(recorded_logs: Path, tmp_path: Path) -> Path:
    for name in LOGS:
        shutil.copytree(recorded_logs / name / "logs", tmp_path / "logs" / Path(name).name)
    return tmp_path / "logs"


def planned(logs: Path, ledger: MemoryLedger):  # type: ignore[no-untyped-def]
    now = datetime.now(UTC)
    plan = plan_over(list_inputs([str(logs)]), ledger, OPTIONS.settings, now)
    return plan, cut_ranges(plan.work, OPTIONS.settings, now)


NOTHING = MemoryLedger()


def read(
    spark: SparkSession,
    logs: Path,
    gone: frozenset[int] = frozenset(),
    ledger: MemoryLedger = NOTHING,
) -> Run:
    """One run. While the ranges ``gone`` are read, their file is truncated, and then restored."""
    plan, tasks = planned(logs, ledger)
    told: set[str] = set()
    batches = []
    for task in tasks:
        parts = stage_range(task, ANALYZER, OPTIONS.settings, told)
        batches += batches_of(leaving(parts, task) if task.number in gone else parts)
    staged = spark.createDataFrame(pa.Table.from_batches(batches))
    warehouse = Warehouse(str(logs.parent / f"warehouse-{uuid4().hex}"))
    header = Header(1, "run", "read", datetime.now(UTC), {}, ())
    commit(spark, warehouse, header, planned_rows(plan, tasks), staged)
    batch = open_batch(spark, warehouse, 1)
    traces = rows_of(derive.stack_traces(batch))
    assert all(row["masked_text"] for row in traces)
    return Run(
        rows_of(derive.events(batch)),
        {str(row["fingerprint"]): int(str(row["event_count"])) for row in traces},
        sum(int(str(row["line_count"])) for row in rows_of(derive.log_volume(batch))),
        MemoryLedger([*ledger.rows, *rows_of(derive.log_files(spark, batch))]),
    )


def leaving(parts: Iterator[Part], task: RangeTask) -> Iterator[Part]:
    path = Path(task.byte_range.profile.path)
    whole = path.read_bytes()
    for part in parts:
        yield part
        if part.kind == "event":
            path.write_bytes(b"")
    path.write_bytes(whole)


def rows_of(frame: DataFrame) -> list[dict[str, object]]:
    found: list[dict[str, object]] = frame.toArrow().to_pylist()
    return found


def places(events: Iterable[dict[str, object]]) -> list[tuple[object, ...]]:
    return sorted((e["path"], e["byte_offset"], e["line"], e["message"]) for e in events)  # type: ignore[type-var]


def inside(tasks: Sequence[RangeTask]) -> RangeTask:
    """A range that is neither the first nor the last of its file."""
    return next(t for t in tasks[1:] if not t.is_first and not t.is_last)


def test_data_after_an_unreadable_range_waits_for_that_range(
    spark: SparkSession, logs: Path
) -> None:
    whole = read(spark, logs)
    _, tasks = planned(logs, NOTHING)
    failed = inside(tasks)
    first = read(spark, logs, gone=frozenset({failed.number}))
    (row,) = (one for one in first.ledger.rows if one["path"] == failed.file.path)
    assert (row["state"], row["reason"]) == ("partial", CHANGED)
    assert 0 < len(first.events) < len(whole.events)
    second = read(spark, logs, ledger=first.ledger)
    assert places([*first.events, *second.events]) == places(whole.events)
    assert first.lines + second.lines == whole.lines
    for name, count in whole.traces.items():
        assert first.traces.get(name, 0) + second.traces.get(name, 0) == count
