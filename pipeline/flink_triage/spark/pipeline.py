"""The run: inputs and a warehouse in, the id of a published run out.

list, plan, stage, append events, diagnose, append the rest, ledger, verify, publish.  Whatever ends
a run before its row in `runs` is written leaves rows that no reader sees; the next run reads the
same bytes again under an id of its own, publishes, and removes what the dead one left.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from flink_triage import __version__
from flink_triage.errors import OutputHeldError
from flink_triage.local import Options, pack_of, with_layouts
from flink_triage.logs.files import Listing, deployment_of, list_inputs, nothing_to_read
from flink_triage.logs.storage import StorageOptions, use_options
from flink_triage.signatures import SignaturePack
from flink_triage.spark import stages
from flink_triage.spark.continuing import News, diagnose_batch
from flink_triage.spark.faults import explained
from flink_triage.spark.ingest.identify import Look, Wanted, look_at_all
from flink_triage.spark.ingest.ledger import TableLedger, finished_rows, latest_files
from flink_triage.spark.ingest.plan import WorkPlan, plan_work
from flink_triage.spark.ingest.ranges import RangeTask, cut_ranges, pack_tasks
from flink_triage.spark.points import reached
from flink_triage.spark.publishing import (
    Batch,
    Overtaken,
    append_all,
    options_of,
    publish,
    total_of,
    verify,
)
from flink_triage.spark.recovery import (
    NO_RUN,
    Attempt,
    PublishedRun,
    clean,
    drop,
    frame_of,
    open_attempt,
    published_runs,
)
from flink_triage.spark.rematching import (
    STAGED_REMATCH,
    Rematching,
    changed,
    count,
    match_stored,
)
from flink_triage.spark.row_types import spark_schema
from flink_triage.spark.schemas import (
    DEPLOYMENTS,
    DIAGNOSES,
    EVENTS,
    FLINK_CONFIG,
    INCIDENTS,
    LOG_FILES,
    LOG_VOLUME,
    MATCHES,
    REMATCHES,
    STACK_TRACES,
    Table,
    arrow_schema,
)
from flink_triage.spark.session import suit
from flink_triage.spark.storage import options_for
from flink_triage.spark.tables import Warehouse

# Raised whenever the rows that one byte gives change.
PARSER_VERSION = "16"
Progress = Callable[[str], None]
# Where no lock holds others off, another run may publish first; then the plan is made anew.
MAX_TRIES = 5
DEFERRED = "copies written to within the settling time"


def run(
    spark: SparkSession,
    inputs: Sequence[str],
    warehouse: Warehouse | str,
    options: Options | None = None,
    progress: Progress = lambda message: None,
    *,
    listing: Listing | None = None,
) -> str:
    """Read what is new in ``inputs``, diagnose what it touches, publish; returns the run's id.

    ``listing`` is that of the inputs, where the caller has it.  With nothing new nothing is
    written, and the id is that of the last published run.  Raises ``UsageError`` (nothing to
    read), ``SignaturePackError``, ``OutputHeldError``, ``EnvironmentProblem`` or
    ``CorruptStateError``.
    """
    options = with_layouts(options or Options())
    house = Warehouse(warehouse) if isinstance(warehouse, str) else warehouse
    pack = pack_of(options)
    storage = options_for(spark, inputs)
    use_options(storage)
    listed = listing or list_inputs(inputs, options.settings)
    started_at = listed.began_at
    if not listed.files and not listed.quarantined:
        raise nothing_to_read(inputs)
    reached("listed")

    def attempt() -> str:
        runs = _recovered(spark, house)
        plan = _plan(spark, listed, house, runs, options, started_at, storage)
        reached("planned")
        if plan.deferred:
            progress(f"{len(plan.deferred)} files left to the next run: {DEFERRED}")
        if plan.is_empty:
            progress(f"nothing new in {plan.unchanged_count} files")
            return _newest(house, runs).run_id
        batch = _batch(plan, runs, pack, options, started_at)
        return _execute(spark, house, replace(batch, storage=storage), progress)

    return _until_published(house, started_at, attempt)


def _until_published(house: Warehouse, now: datetime, attempt: Callable[[], str]) -> str:
    """Hold the warehouse and try; tries again when another run, elsewhere, was published first."""
    for _ in range(MAX_TRIES):
        with explained(house), house.hold(now):
            reached("held")
            try:
                return attempt()
            except Overtaken:
                continue
    raise OutputHeldError(
        f"{house.location('runs')}: other runs were published {MAX_TRIES} times while this one "
        "worked; run it again when they are done"
    )


def _recovered(spark: SparkSession, house: Warehouse) -> tuple[PublishedRun, ...]:
    """The published runs, after what dead ones left was removed."""
    runs = published_runs(spark, house)
    if not runs or runs[-1].tool_version != __version__:
        house.bring_up_to_date(spark)
    clean(spark, house, [run.run_id for run in runs])
    reached("recovered")
    return runs


def diagnose_again(
    spark: SparkSession,
    warehouse: Warehouse | str,
    options: Options | None = None,
    progress: Progress = lambda message: None,
    *,
    is_rematch: bool = False,
) -> str:
    """Diagnose all stored events anew, with today's signatures' roles and advice, and publish.

    No log is read, and events keep the matches that they were stored with; with ``is_rematch``
    today's signatures are looked for in them first, and ``progress`` is told how far their text
    allowed that.  What earlier runs published stays as it is.  Raises as `run` does.
    """
    options = options or Options()
    house = Warehouse(warehouse) if isinstance(warehouse, str) else warehouse
    started_at = datetime.now(timezone.utc)
    pack = pack_of(options)

    def attempt() -> str:
        runs = _recovered(spark, house)
        newest = _newest(house, runs).run_id
        files = latest_files(spark, house, frame_of(spark, runs)).where(
            F.col("deployment").isNotNull()
        )
        names = files.select("deployment").distinct().toArrow().column(0).to_pylist()
        asked = json.dumps(options_of(options), sort_keys=True)
        kind = "rematch" if is_rematch else "again"
        basis = "\0".join((kind, newest, PARSER_VERSION, __version__, pack.digest, asked))
        again = batch_id(WorkPlan(), basis)
        deployments = tuple(sorted(names))
        batch = Batch(again, runs, started_at, WorkPlan(), deployments, pack, options)
        batch = replace(batch, is_rematch=is_rematch)
        return _execute(spark, house, batch, progress)

    return _until_published(house, started_at, attempt)


def last_run_id(spark: SparkSession, house: Warehouse) -> str:
    """The newest published run; ``UsageError`` when there is none."""
    return _newest(house, published_runs(spark, house)).run_id


def _newest(house: Warehouse, runs: Sequence[PublishedRun]) -> PublishedRun:
    if not runs:
        raise house.unpublished()
    return runs[-1]


def _plan(
    spark: SparkSession,
    listing: Listing,
    house: Warehouse,
    runs: Sequence[PublishedRun],
    options: Options,
    now: datetime,
    storage: StorageOptions,
) -> WorkPlan:
    def look(wanted: Sequence[Wanted]) -> list[Look]:
        return look_at_all(spark, wanted, options.settings, storage)

    return plan_work(
        listing.files,
        listing.quarantined,
        TableLedger(spark, house, frame_of(spark, runs) if runs else None),
        look,
        deployment_of=lambda file: deployment_of(file, options.group_by),
        now=now,
        settle_seconds=options.settings.settle_seconds,
        salt=runs[-1].run_id if runs else NO_RUN,
    )


def _batch(
    plan: WorkPlan,
    runs: tuple[PublishedRun, ...],
    pack: SignaturePack,
    options: Options,
    started_at: datetime,
) -> Batch:
    asked = json.dumps(options_of(options), sort_keys=True)
    base = runs[-1].run_id if runs else NO_RUN
    basis = "\0".join((base, PARSER_VERSION, __version__, pack.digest, asked))
    deployments = tuple(sorted({w.deployment for w in plan.work if w.profile.problem is None}))
    named = batch_id(plan, basis)
    return Batch(named, runs, started_at, plan, deployments, pack, options)


def batch_id(plan: WorkPlan, basis: str) -> str:
    """The same bytes of the same files, read in the same way, are the same batch."""
    digest = hashlib.sha256(basis.encode())
    for work in plan.work:
        read = f"{work.known.consumed_bytes}\0{work.file.size_bytes}"
        digest.update(f"{work.file_id}\0{work.generation}\0{read}\n".encode())
    for alias in plan.aliases:
        line = f"alias\0{alias.path}\0{alias.entry.path}\0{alias.size_bytes}\0{alias.modified_at}\n"
        digest.update(line.encode("utf-8", "surrogateescape"))
    for bad in plan.unreadable:
        digest.update(f"unreadable\0{bad.path}\0{bad.reason}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _execute(spark: SparkSession, house: Warehouse, batch: Batch, progress: Progress) -> str:
    """Do the work of the batch, publish it, and return the id of its run."""
    base = batch.runs[-1].run_id if batch.runs else NO_RUN
    attempt = open_attempt(house, batch.batch_id, base)
    run_id = attempt.run_id
    tasks = cut_ranges(batch.plan.work, batch.options.settings, batch.started_at)
    staged = Staged()
    if tasks:
        progress(f"reading {len(tasks)} ranges of {len(batch.plan.work)} files")
        suit(spark, sum(task.size_bytes for task in tasks))
        staged = _stage(spark, house, batch, attempt, tasks)
    written: list[Table] = []
    if batch.is_rematch:
        rematched = _match_again(spark, house, batch, attempt)
        written.append(REMATCHES)
        batch = replace(batch, notes={"rematched": asdict(rematched)})
        progress(rematched.sentence)
    summaries = staged.summaries

    def append_read() -> tuple[list[Table], int]:
        """Append what was read, and the ledger's rows, which are counted."""
        rows = dict(staged.rows)
        ledger = finished_rows(batch.plan, tasks, summaries)
        if ledger:
            known = pa.Table.from_pylist(ledger, _without_run(LOG_FILES))
            rows[LOG_FILES] = spark.createDataFrame(known)
        return append_all(house, run_id, rows), len(ledger)

    # What was read is written while it is diagnosed.
    with ThreadPoolExecutor(1) as beside:
        appended = beside.submit(append_read)
        if batch.deployments:
            progress(f"diagnosing {len(batch.deployments)} deployments")
            told = diagnose_batch(spark, house, batch, attempt, staged.news)
            derived = {
                INCIDENTS: told.incidents,
                DEPLOYMENTS: told.deployments,
                DIAGNOSES: stages.diagnoses(told.incidents),
            }
            written += append_all(house, run_id, derived)
        read, file_count = appended.result()
        written += read
    verified = verify(spark, house, run_id, written, summaries, file_count, len(batch.deployments))
    reached("verified")
    publish(spark, house, batch, run_id, summaries, verified)
    drop(spark, house, attempt, [*(run.run_id for run in batch.runs), run_id])
    return run_id


@dataclass(frozen=True, slots=True)
class Staged:
    """What the workers handed over: rows of the tables, and one summary per range."""

    rows: Mapping[Table, DataFrame] = field(default_factory=dict)
    summaries: Sequence[Mapping[str, object]] = ()
    news: News | None = None


def _stage(
    spark: SparkSession,
    house: Warehouse,
    batch: Batch,
    attempt: Attempt,
    tasks: Sequence[RangeTask],
) -> Staged:
    """Read the ranges, and stage what comes out."""
    config = stages.worker_config(batch.pack, batch.options, batch.storage)
    house.write_staging(stages.stage(spark, pack_tasks(tasks), config), attempt.staging)
    reached("staged")
    staged = house.read_staging(spark, attempt.staging, stages.STAGED_SCHEMA)
    summaries = stages.summaries(staged, tasks)
    standing = stages.standing_of(tasks, summaries)
    events = stages.events(staged, standing)
    rows = {
        EVENTS: events,
        STACK_TRACES: stages.stack_traces(staged, standing),
        LOG_VOLUME: stages.log_volume(staged, standing, tasks),
        MATCHES: stages.matches(staged, standing),
        FLINK_CONFIG: stages.flink_config(staged, standing),
    }
    news = News(events, stages.parcels(staged), standing, total_of(summaries, "event_rows"))
    return Staged(rows, summaries, news)


def _match_again(
    spark: SparkSession, house: Warehouse, batch: Batch, attempt: Attempt
) -> Rematching:
    """Append to `rematches` what today's signatures find in the stored events."""
    ids = [run.run_id for run in batch.runs]
    found = match_stored(spark, house, ids, batch.pack, batch.options.settings)
    house.write_staging(found, attempt.staging)
    reached("rematched")
    staged = house.read_staging(spark, attempt.staging, spark_schema(STAGED_REMATCH))
    append_all(house, attempt.run_id, {REMATCHES: changed(staged, batch.pack)})
    return count(spark, house, staged, ids)


def _without_run(table: Table) -> pa.Schema:
    schema = arrow_schema(table)
    return schema.remove(schema.get_field_index("run_id"))
