"""The run: inputs and a warehouse in, the id of a published run out.

list, plan, stage, append events, diagnose, append the rest, ledger, verify, publish.  Whatever ends
a run before its row in `runs` is written leaves rows that no reader sees; the next run over the
same bytes has the same batch, skips what was written, and publishes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timezone

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from flink_triage import __version__
from flink_triage.errors import CorruptStateError, UsageError
from flink_triage.local import Options, ignored_in, pack_of, with_layouts
from flink_triage.logs.files import Listing, deployment_of, list_inputs
from flink_triage.signatures import SignaturePack
from flink_triage.spark import stages
from flink_triage.spark.content import open_plain
from flink_triage.spark.ledger import WorkPlan, batch_id, plan_work
from flink_triage.spark.ledger_rows import finished_rows, latest_files, read_entries
from flink_triage.spark.schemas import (
    DIAGNOSES,
    EVENTS,
    FLINK_CONFIG,
    INCIDENTS,
    LOG_FILES,
    LOG_VOLUME,
    MATCHES,
    RUNS,
    STACK_TRACES,
    Table,
    arrow_schema,
)
from flink_triage.spark.tables import Warehouse
from flink_triage.spark.tasks import FileToRead, cut_ranges, pack_tasks, prepare

# Raised whenever the rows that one byte gives change.
PARSER_VERSION = "1"
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Batch:
    """What one run works on, once it is known that there is something new."""

    run_id: str
    started_at: datetime
    plan: WorkPlan
    files: tuple[FileToRead, ...]
    deployments: tuple[str, ...]
    pack: SignaturePack
    options: Options


def run(
    spark: SparkSession,
    inputs: Sequence[str],
    warehouse: Warehouse | str,
    options: Options | None = None,
    progress: Progress = lambda message: None,
) -> str:
    """Read what is new in ``inputs``, diagnose what it touches, publish; returns the run's id.

    With nothing new nothing is written, and the id is that of the last published run.  Raises
    ``UsageError`` (nothing to read), ``SignaturePackError``, ``OutputHeldError``,
    ``EnvironmentProblem`` or ``CorruptStateError``.
    """
    options = with_layouts(options or Options())
    house = Warehouse(warehouse) if isinstance(warehouse, str) else warehouse
    started_at = datetime.now(timezone.utc)
    pack = pack_of(options)
    listing = list_inputs(inputs, options.settings)
    if not listing.files and not listing.quarantined:
        raise UsageError(f"nothing to read: {', '.join(inputs)} hold no files")
    with house.hold(started_at):
        plan = _plan(spark, listing, house, options, started_at)
        if plan.is_empty:
            progress(f"nothing new in {len(plan.unchanged)} files")
            return last_run_id(spark, house)
        batch = _batch(plan, listing, pack, options, started_at)
        if house.exists(spark, RUNS) and _is_published(spark, house, batch.run_id):
            return batch.run_id
        _execute(spark, house, batch, progress)
    return batch.run_id


def diagnose_again(
    spark: SparkSession,
    warehouse: Warehouse | str,
    options: Options | None = None,
    progress: Progress = lambda message: None,
) -> str:
    """Diagnose all stored events anew, with today's signatures' roles and advice, and publish.

    No log is read, and events keep the matches that they were stored with.  Raises as `run` does.
    """
    options = options or Options()
    house = Warehouse(warehouse) if isinstance(warehouse, str) else warehouse
    started_at = datetime.now(timezone.utc)
    pack = pack_of(options)
    with house.hold(started_at):
        newest = last_run_id(spark, house)
        files = latest_files(spark, house).where(F.col("deployment").isNotNull())
        names = files.select("deployment").distinct().toArrow().column(0).to_pylist()
        asked = json.dumps(options_of(options), sort_keys=True)
        basis = "\0".join(("again", newest, PARSER_VERSION, __version__, pack.digest, asked))
        run_id = batch_id(WorkPlan(), basis)
        batch = Batch(run_id, started_at, WorkPlan(), (), tuple(sorted(names)), pack, options)
        _execute(spark, house, batch, progress)
    return run_id


def last_run_id(spark: SparkSession, house: Warehouse) -> str:
    """The newest published run; ``UsageError`` when there is none."""
    if house.exists(spark, RUNS):
        newest = house.read(spark, RUNS).orderBy(F.desc("finished_at")).select("run_id").first()
        if newest is not None:
            return str(newest[0])
    raise UsageError(f"{house.location('runs')}: no run has been published here")


def _is_published(spark: SparkSession, house: Warehouse, run_id: str) -> bool:
    return not house.read(spark, RUNS).where(F.col("run_id") == run_id).isEmpty()


def _plan(
    spark: SparkSession,
    listing: Listing,
    house: Warehouse,
    options: Options,
    now: datetime,
) -> WorkPlan:
    return plan_work(
        listing.files,
        read_entries(spark, house),
        open_plain,
        deployment_of=lambda file: deployment_of(file, options.group_by),
        refused=listing.quarantined,
        now=now,
        settle_seconds=options.settings.settle_seconds,
    )


def _batch(
    plan: WorkPlan,
    listing: Listing,
    pack: SignaturePack,
    options: Options,
    started_at: datetime,
) -> Batch:
    files = prepare(plan, listing, options)
    asked = json.dumps(options_of(options), sort_keys=True)
    run_id = batch_id(plan, "\0".join((PARSER_VERSION, __version__, pack.digest, asked)))
    deployments = tuple(sorted({f.deployment for f in files if f.profile.problem is None}))
    return Batch(run_id, started_at, plan, files, deployments, pack, options)


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


def _execute(spark: SparkSession, house: Warehouse, batch: Batch, progress: Progress) -> None:
    written: list[Table] = []
    tasks = cut_ranges(batch.files, batch.options.settings, batch.started_at)
    summaries: list[dict[str, object]] = []
    if tasks:
        progress(f"reading {len(tasks)} ranges of {len(batch.files)} files")
        config = stages.worker_config(batch.pack, batch.options)
        house.write_staging(stages.stage(spark, pack_tasks(tasks), config), batch.run_id)
        staged = house.read_staging(spark, batch.run_id, stages.STAGED_SCHEMA)
        summaries = stages.summaries(staged)
        bases = stages.line_bases(spark, tasks, summaries)
        events = stages.events(staged, bases)
        written += _append_all(
            house,
            batch.run_id,
            {
                EVENTS: events,
                STACK_TRACES: stages.stack_traces(staged),
                LOG_VOLUME: stages.log_volume(staged),
                MATCHES: stages.matches(events),
            },
        )
    derived: dict[Table, DataFrame] = {}
    if batch.deployments:
        progress(f"diagnosing {len(batch.deployments)} deployments")
        history = _history(spark, house, batch.run_id)
        incidents = stages.incidents(spark, history, batch.deployments, batch.pack, batch.options)
        written += _append_all(house, batch.run_id, {INCIDENTS: incidents})
        diagnosed = house.read(spark, INCIDENTS).where(F.col("run_id") == batch.run_id)
        derived = {
            DIAGNOSES: stages.diagnoses(diagnosed),
            FLINK_CONFIG: stages.flink_config(history, spark, batch.deployments),
        }
    ledger = finished_rows(batch.plan, batch.files, tasks, summaries, open_plain)
    if ledger:
        rows = pa.Table.from_pylist(ledger, _without_run(LOG_FILES))
        derived[LOG_FILES] = spark.createDataFrame(rows)
    if derived:
        written += _append_all(house, batch.run_id, derived)
    verified = _verify(spark, house, batch.run_id, written, summaries, len(ledger))
    _publish(spark, house, batch, summaries, verified)
    house.drop_staging(spark, batch.run_id)


def _without_run(table: Table) -> pa.Schema:
    schema = arrow_schema(table)
    return schema.remove(schema.get_field_index("run_id"))


def _history(spark: SparkSession, house: Warehouse, run_id: str) -> DataFrame:
    """Events of all published runs, and of this one."""
    events = house.read(spark, EVENTS)
    ours = F.col("run_id") == run_id
    if not house.exists(spark, RUNS):
        return events.where(ours)
    runs = house.read(spark, RUNS).select("run_id").distinct()
    return events.where(ours).unionByName(
        events.where(~ours).join(F.broadcast(runs), "run_id", "left_semi")
    )


def _append_all(house: Warehouse, run_id: str, rows: Mapping[Table, DataFrame]) -> list[Table]:
    """Append to several tables side by side: a small commit is latency, not work."""

    def append(item: tuple[Table, DataFrame]) -> None:
        table, frame = item
        house.append(frame.withColumn("run_id", F.lit(run_id)), table, run_id)

    with ThreadPoolExecutor(max_workers=len(rows)) as pool:
        for done in [pool.submit(append, item) for item in rows.items()]:
            done.result()
    return list(rows)


def _verify(
    spark: SparkSession,
    house: Warehouse,
    run_id: str,
    written: Sequence[Table],
    summaries: Sequence[Mapping[str, object]],
    ledger_count: int,
) -> dict[str, int]:
    """Rows of this run per table, as the tables have them.

    Raises ``CorruptStateError`` where they are not those that the workers counted: a commit was
    skipped or lost.
    """
    found = _count_rows(spark, house, run_id, written)
    expected = {LOG_FILES.name: ledger_count} if ledger_count else {}
    if EVENTS in written:
        expected[EVENTS.name] = _total(summaries, "event_rows")
        expected[MATCHES.name] = _total(summaries, "match_rows")
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


def _total(summaries: Sequence[Mapping[str, object]], name: str) -> int:
    return sum(int(str(summary[name] or 0)) for summary in summaries)


def _publish(
    spark: SparkSession,
    house: Warehouse,
    batch: Batch,
    summaries: Sequence[Mapping[str, object]],
    counts: Mapping[str, int],
) -> None:
    skipped = {tuple(s) for m in summaries for s in json.loads(str(m["skipped"] or "[]"))}
    skipped |= {(s.signature, s.reason) for s in ignored_in(batch.pack)}
    row = {
        "run_id": batch.run_id,
        "batch_id": batch.run_id,
        "started_at": batch.started_at,
        "finished_at": datetime.now(timezone.utc),
        "tool_version": __version__,
        "signature_set": batch.pack.digest,
        "file_count": len(batch.files),
        "read_bytes": sum(
            _total(summaries, f"{kind}_bytes")
            for kind in ("event", "counted", "quarantined", "held_back")
        ),
        "row_counts": list(counts.items()),
        "signatures_evaluated": len(batch.pack.signatures),
        "signatures_skipped": [{"signature": s, "reason": r} for s, r in sorted(skipped)],
        "options_json": json.dumps(options_of(batch.options), sort_keys=True),
    }
    rows = spark.createDataFrame(pa.Table.from_pylist([row], arrow_schema(RUNS)))
    house.append(rows, RUNS, batch.run_id)
