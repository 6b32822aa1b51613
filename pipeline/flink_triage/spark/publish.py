"""Turns a committed batch into a published run.

The rows of the tables are derived from the batch, its deployments are diagnosed, the numbers of
rows are verified, and the run is published. Every append is idempotent, because Delta skips a write
whose batch number it has already applied. To finish a killed run, all of these steps are repeated.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from flink_triage import __version__
from flink_triage.errors import CorruptStateError
from flink_triage.local import Options, ignored_in
from flink_triage.signatures import SignaturePack
from flink_triage.spark.diagnose.diagnose_batch import diagnose_batch
from flink_triage.spark.diagnose.rematch import rematch_batch
from flink_triage.spark.failpoints import failpoint
from flink_triage.spark.ingest import derive
from flink_triage.spark.ingest.batch import Work
from flink_triage.spark.tables.published_runs import FailedDiagnosis, PublishedRun
from flink_triage.spark.tables.schemas import (
    EVENTS,
    LOG_FILES,
    LOG_VOLUME,
    REMATCHES,
    RUNS,
    STACK_TRACES,
)
from flink_triage.spark.tables.table_names import BATCHES, DIAGNOSED, STORED
from flink_triage.spark.tables.table_spec import Table, arrow_schema
from flink_triage.spark.tables.warehouse import Warehouse, listed

Progress = Callable[[str], None]


def finish_batch(
    spark: SparkSession,
    warehouse: Warehouse,
    work: Work,
    progress: Progress,
) -> PublishedRun:
    """Derive the rows of the batch, diagnose its deployments, and publish its run.

    Raises ``CorruptStateError`` if the tables do not have the expected number of rows.
    """
    failpoint("opened")
    notes: dict[str, object] = {}
    counts: dict[str, int] = {}
    failed: Sequence[FailedDiagnosis] = ()
    if work.header.work == "rematch":
        rematched = rematch_batch(spark, warehouse, work)
        notes["rematched"] = asdict(rematched)
        counts |= _counts(spark, warehouse, work, [REMATCHES])
        progress(rematched.sentence)
    # The append of the read rows and the diagnosis run in parallel.
    with ThreadPoolExecutor(1) as beside:
        appended = beside.submit(_append_read, spark, warehouse, work)
        if work.header.deployments:
            progress(f"diagnosing {len(work.header.deployments)} deployments")
            counts[DIAGNOSED.name], failed = diagnose_batch(spark, warehouse, work)
        counts |= appended.result()
    _verify(warehouse, work, counts)
    failpoint("verified")
    for one in failed:
        progress(f"{one.deployment}: {one.reason}")
    return _publish(spark, warehouse, work, counts, notes, failed)


def _append_read(spark: SparkSession, warehouse: Warehouse, work: Work) -> dict[str, int]:
    """Append the rows of the batch to their tables in parallel, because small commits mostly wait.

    Returns the number of rows of this run in each of these tables.
    """
    batch = work.batch
    rows: dict[Table, DataFrame] = {}
    if len(batch.files):
        rows[LOG_FILES] = derive.log_files(spark, batch)
    if len(batch.summaries):
        rows[EVENTS] = derive.events(batch)
        rows[STACK_TRACES] = derive.stack_traces(batch)
        rows[LOG_VOLUME] = derive.log_volume(batch)

    def append(item: tuple[Table, DataFrame]) -> None:
        table, frame = item
        warehouse.append(
            frame.withColumn("run_id", F.lit(work.header.run_id)), table, work.header.batch
        )

    with ThreadPoolExecutor(max_workers=max(1, len(rows))) as pool:
        list(pool.map(append, rows.items()))
    return _counts(spark, warehouse, work, list(rows))


def _counts(
    spark: SparkSession, warehouse: Warehouse, work: Work, tables: Sequence[Table]
) -> dict[str, int]:
    """The number of rows of this run in each of the tables.

    One query counts all of them, because each query has a fixed cost of half a second.
    """
    if not tables:
        return {}
    of_run = (
        warehouse.read(spark, table)
        .where(F.col("run_id") == work.header.run_id)
        .select(F.lit(table.name).alias("name"))
        for table in tables
    )
    found = reduce(DataFrame.unionAll, of_run).groupBy("name").count().toArrow().to_pylist()
    return {table.name: 0 for table in tables} | {row["name"]: row["count"] for row in found}


def _verify(warehouse: Warehouse, work: Work, found: Mapping[str, int]) -> None:
    """Compare the row counts of `log_files` and `events`, if written, with those of the batch.

    Raises ``CorruptStateError`` if they differ.
    """
    wanted = {LOG_FILES.name: len(work.batch.files), EVENTS.name: work.batch.total_of("event_rows")}
    for name, count in wanted.items():
        if name in found and found[name] != count:
            raise CorruptStateError(
                f"{warehouse.location(name)}: found {found[name]} rows of run "
                f"{work.header.run_id}, expected {count}; a commit was lost or another writer "
                "changed the table; the run was not published"
            )


def _publish(
    spark: SparkSession,
    warehouse: Warehouse,
    work: Work,
    counts: Mapping[str, int],
    notes: Mapping[str, object],
    failed: Sequence[FailedDiagnosis],
) -> PublishedRun:
    """Write the row of `runs` that makes the run visible."""
    header, batch = work.header, work.batch
    encoded = batch.summaries.column("skipped").unique().drop_null().to_pylist()
    skipped = {tuple(one) for some in encoded for one in json.loads(some)}
    skipped |= {(s.signature, s.reason) for s in ignored_in(work.pack)}
    row = {
        "run_id": header.run_id,
        "batch": header.batch,
        "started_at": header.started_at,
        "file_count": header.file_count,
        "read_bytes": sum(
            batch.total_of(f"{kind}_bytes")
            for kind in ("event", "counted", "quarantined", "held_back")
        ),
        "row_counts": list(counts.items()),
        "signatures_skipped": [{"signature": s, "reason": r} for s, r in sorted(skipped)],
        "options_json": json.dumps(
            {**header.options, "inputs": header.inputs, **notes}, sort_keys=True
        ),
    }
    before = work.runs[-1].undiagnosed if work.runs else ()
    others = [one for one in before if one.deployment not in header.deployments]
    undiagnosed = (*others, *failed)
    return _append_run(spark, warehouse, row, work.runs, work.pack, undiagnosed)


def skip_batch(
    spark: SparkSession,
    warehouse: Warehouse,
    number: int,
    runs: tuple[PublishedRun, ...],
    pack: SignaturePack,
    options: Options,
) -> PublishedRun:
    """Delete the rows that the run of the batch already wrote, and publish an empty run instead.

    The files of the batch do not enter the ledger, so they are planned again.
    """
    rows = warehouse.read(spark, BATCHES).where(F.col("batch") == number)
    run_ids = rows.select("run_id").distinct().toArrow().column(0).to_pylist()
    for table in STORED.values():
        if table not in (BATCHES, RUNS) and warehouse.exists(spark, table):
            warehouse.delete(spark, table, f"run_id IN ({listed(run_ids)})")
    row = {
        "run_id": run_ids[0],
        "batch": number,
        "started_at": datetime.now(UTC),
        "file_count": 0,
        "read_bytes": 0,
        "row_counts": [],
        "signatures_skipped": [],
        "options_json": json.dumps({**options_of(options), "skipped_batch": number}),
    }
    return _append_run(spark, warehouse, row, runs, pack, runs[-1].undiagnosed if runs else ())


def _append_run(
    spark: SparkSession,
    warehouse: Warehouse,
    row: Mapping[str, Any],
    runs: tuple[PublishedRun, ...],
    pack: SignaturePack,
    undiagnosed: tuple[FailedDiagnosis, ...],
) -> PublishedRun:
    finished_at = datetime.now(UTC)
    if runs:
        # This time determines the newest run, so a clock that was set back must not hide a run.
        finished_at = max(finished_at, runs[-1].finished_at + timedelta(microseconds=1))
    whole = {
        **row,
        "finished_at": finished_at,
        "tool_version": __version__,
        "signature_set": pack.digest,
        "signatures_evaluated": len(pack.signatures),
        "undiagnosed": [asdict(failed) for failed in undiagnosed],
    }
    rows = spark.createDataFrame(pa.Table.from_pylist([whole], arrow_schema(RUNS)))
    warehouse.append(rows, RUNS, row["batch"])
    tables = tuple(name for name, _ in row["row_counts"])
    number = row["batch"]
    return PublishedRun(row["run_id"], finished_at, number, tables, __version__, undiagnosed)


def options_of(options: Options) -> dict[str, str | None]:
    """The command-line options that affect the rows, except the signatures."""
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
