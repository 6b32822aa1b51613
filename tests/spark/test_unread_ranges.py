"""A file that goes away while it is read, and is back for the next run: nothing is told twice."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from flink_triage.local import Options, pack_of
from flink_triage.logs.files import deployment_of, list_inputs
from flink_triage.logs.profile import probe
from flink_triage.settings import Settings
from flink_triage.spark import stages
from flink_triage.spark.content import open_plain
from flink_triage.spark.ledger import LedgerEntry, plan_work
from flink_triage.spark.ledger_rows import entry_of, finished_rows
from flink_triage.spark.staging import Part, RangeTask, batches_of, stage_range
from flink_triage.spark.tasks import cut_ranges, files_of, prepare
from flink_triage.stages import Analyzer

OPTIONS = Options(settings=Settings(settle_seconds=-1e9, range_bytes=20_000))
ANALYZER = Analyzer(pack_of(OPTIONS), OPTIONS.settings, timezone.utc)
LOGS = (
    "kafka/offset-commit-failed/broker-frozen-1.20.1",
    "checkpoint/tolerable-threshold-exceeded/disk-full-1.16.0",
)


@dataclass(frozen=True)
class Run:
    """What a run would publish."""

    events: list[dict[str, object]]
    traces: dict[str, int]
    lines: int
    ledger: list[LedgerEntry]


@pytest.fixture
def logs(recorded_logs: Path, tmp_path: Path) -> Path:
    for name in LOGS:
        shutil.copytree(recorded_logs / name / "logs", tmp_path / "logs" / Path(name).name)
    return tmp_path / "logs"


def planned(logs: Path, ledger: Sequence[LedgerEntry]):  # type: ignore[no-untyped-def]
    listing = list_inputs([str(logs)])
    now = datetime.now(timezone.utc)
    plan = plan_work(
        listing.files, ledger, open_plain, deployment_of=deployment_of, now=now, settle_seconds=-1e9
    )
    wanted = files_of(plan, listing)
    profiles = [probe(file, OPTIONS.settings) for file in wanted]
    files = prepare(plan, wanted, profiles, OPTIONS)
    return plan, files, cut_ranges(files, OPTIONS.settings, now)


def read(
    spark: SparkSession,
    logs: Path,
    gone: frozenset[int] = frozenset(),
    ledger: Sequence[LedgerEntry] = (),
) -> Run:
    """One run; of the ranges ``gone`` the file goes away as soon as its events are handed over."""
    plan, files, tasks = planned(logs, ledger)
    told: set[str] = set()
    batches = []
    for task in tasks:
        parts = stage_range(task, ANALYZER, OPTIONS.settings, told)
        batches += batches_of(leaving(parts, task) if task.number in gone else parts)
    staged = spark.createDataFrame(pa.Table.from_batches(batches))
    summaries = stages.summaries(staged, tasks)
    standing = stages.standing_of(tasks, summaries)
    traces = rows_of(stages.stack_traces(staged, standing))
    assert all(row["masked_text"] for row in traces)
    return Run(
        rows_of(stages.events(staged, standing)),
        {str(row["fingerprint"]): int(str(row["event_count"])) for row in traces},
        sum(
            int(str(row["line_count"]))
            for row in rows_of(stages.log_volume(staged, standing, tasks))
        ),
        [entry_of(row) for row in finished_rows(plan, files, tasks, summaries, open_plain)],
    )


def leaving(parts: Iterator[Part], task: RangeTask) -> Iterator[Part]:
    path = Path(task.byte_range.profile.path)
    away = path.with_name("away")
    for part in parts:
        yield part
        if part.kind == "event":
            path.rename(away)
    away.rename(path)


def rows_of(frame: DataFrame) -> list[dict[str, object]]:
    found: list[dict[str, object]] = frame.toArrow().to_pylist()
    return found


def places(events: Iterable[dict[str, object]]) -> list[tuple[object, ...]]:
    return sorted((e["path"], e["byte_offset"], e["line"], e["message"]) for e in events)  # type: ignore[type-var]


def inside(tasks: Sequence[RangeTask]) -> RangeTask:
    """A range with others of its file before and behind it."""
    return next(t for t in tasks[1:] if not t.is_first and not t.is_last)


def test_what_stands_behind_a_range_that_could_not_be_read_waits_for_it(
    spark: SparkSession, logs: Path
) -> None:
    whole = read(spark, logs)
    _, _, tasks = planned(logs, ())
    failed = inside(tasks)
    first = read(spark, logs, gone=frozenset({failed.number}))
    (entry,) = (one for one in first.ledger if one.path == failed.byte_range.profile.path)
    assert entry.state == "partial"
    assert 0 < len(first.events) < len(whole.events)
    second = read(spark, logs, ledger=first.ledger)
    assert places([*first.events, *second.events]) == places(whole.events)
    assert first.lines + second.lines == whole.lines
    for name, count in whole.traces.items():
        assert first.traces.get(name, 0) + second.traces.get(name, 0) == count
