"""The end of a run: rows in, appended once and counted; then the one row by which they count."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from flink_triage import __version__
from flink_triage.errors import CorruptStateError
from flink_triage.local import Options, ignored_in
from flink_triage.logs.storage import NO_OPTIONS, StorageOptions
from flink_triage.signatures import SignaturePack
from flink_triage.spark.ingest.plan import WorkPlan
from flink_triage.spark.recovery import NO_RUN, PublishedRun
from flink_triage.spark.schemas import (
    DEPLOYMENTS,
    EVENTS,
    LOG_FILES,
    MATCHES,
    RUNS,
    Table,
    arrow_schema,
)
from flink_triage.spark.tables import Warehouse


class Overtaken(Exception):
    """Another run was published since this one began."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What one run works on, once it is known that there is something new."""

    batch_id: str
    runs: tuple[PublishedRun, ...]
    started_at: datetime
    plan: WorkPlan
    deployments: tuple[str, ...]
    pack: SignaturePack
    options: Options
    storage: StorageOptions = NO_OPTIONS
    is_rematch: bool = False
    # What of the run is told beside its options.
    notes: Mapping[str, object] = field(default_factory=dict)


def options_of(options: Options) -> dict[str, str | None]:
    """What of the options changes the rows."""
    return {
        "group_by": options.group_by,
        "flink_version": options.flink_version,
        "timezone": str(options.timezone),
        "since": options.since.isoformat() if options.since else None,
        "until": options.until.isoformat() if options.until else None,
        "encoding": options.settings.reading.encoding,
        "layouts": "\n".join(options.settings.reading.layouts) or None,
        "redact": "pii" if options.settings.reading.redacts_personal else None,
    }


def append_all(house: Warehouse, run_id: str, rows: Mapping[Table, DataFrame]) -> list[Table]:
    """Append to several tables side by side: a small commit is latency, not work."""

    def append(item: tuple[Table, DataFrame]) -> None:
        table, frame = item
        house.append(frame.withColumn("run_id", F.lit(run_id)), table, run_id)

    with ThreadPoolExecutor(max_workers=max(1, len(rows))) as pool:
        for done in [pool.submit(append, item) for item in rows.items()]:
            done.result()
    return list(rows)


def verify(
    spark: SparkSession,
    house: Warehouse,
    run_id: str,
    written: Sequence[Table],
    summaries: Sequence[Mapping[str, object]],
    ledger_count: int,
    deployment_count: int,
) -> dict[str, int]:
    """Rows of this run per table, as the tables have them.

    Raises ``CorruptStateError`` where they are not those that the workers counted: a commit was
    skipped or lost.
    """
    found = _count_rows(spark, house, run_id, written)
    expected = {LOG_FILES.name: ledger_count} if ledger_count else {}
    if DEPLOYMENTS in written:
        expected[DEPLOYMENTS.name] = deployment_count
    if EVENTS in written:
        expected[EVENTS.name] = total_of(summaries, "event_rows")
        expected[MATCHES.name] = total_of(summaries, "match_rows")
    for name, wanted in expected.items():
        if found[name] != wanted:
            raise CorruptStateError(
                f"{house.location(name)}: has {found[name]} rows of run {run_id}, wrote {wanted}; "
                "a commit was lost, or another writer changed the table: the run is not published"
            )
    return found


def _count_rows(
    spark: SparkSession, house: Warehouse, run_id: str, tables: Sequence[Table]
) -> dict[str, int]:
    """Rows of the run in each table: by the Delta log where that can be read, else counted."""
    found: dict[str, int] = {}
    for table in tables:
        count = house.appended_count(table, run_id)
        if count is None:
            count = house.read(spark, table).where(F.col("run_id") == run_id).count()
        found[table.name] = count
    return found


def total_of(summaries: Sequence[Mapping[str, object]], name: str) -> int:
    return sum(int(str(summary[name] or 0)) for summary in summaries)


def publish(
    spark: SparkSession,
    house: Warehouse,
    batch: Batch,
    run_id: str,
    summaries: Sequence[Mapping[str, object]],
    counts: Mapping[str, int],
) -> None:
    """Write the row by which the run counts.

    One run only can come after another: of two that began with the same newest run Delta takes the
    first and skips, or refuses, the second.  Raises ``Overtaken`` for that one.
    """
    base = batch.runs[-1].run_id if batch.runs else NO_RUN
    finished_at = datetime.now(timezone.utc)
    if batch.runs:
        # What is newest is told by this time: a clock that was set back must not hide a run.
        finished_at = max(finished_at, batch.runs[-1].finished_at + timedelta(microseconds=1))
    skipped = {tuple(s) for m in summaries for s in json.loads(str(m["skipped"] or "[]"))}
    skipped |= {(s.signature, s.reason) for s in ignored_in(batch.pack)}
    row = {
        "run_id": run_id,
        "batch_id": batch.batch_id,
        "started_at": batch.started_at,
        "finished_at": finished_at,
        "tool_version": __version__,
        "signature_set": batch.pack.digest,
        "file_count": len(batch.plan.work),
        "read_bytes": sum(
            total_of(summaries, f"{kind}_bytes")
            for kind in ("event", "counted", "quarantined", "held_back")
        ),
        "row_counts": list(counts.items()),
        "signatures_evaluated": len(batch.pack.signatures),
        "signatures_skipped": [{"signature": s, "reason": r} for s, r in sorted(skipped)],
        "options_json": json.dumps({**options_of(batch.options), **batch.notes}, sort_keys=True),
    }
    rows = spark.createDataFrame(pa.Table.from_pylist([row], arrow_schema(RUNS)))
    house.append(rows, RUNS, run_id, application=f"flink-triage/runs/after/{base}")
    # A local warehouse is locked.
    if (
        house.local_path is None
        and house.read(spark, RUNS).where(F.col("run_id") == run_id).isEmpty()
    ):
        raise Overtaken
