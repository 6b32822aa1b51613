"""Reads new input into a warehouse, or diagnoses its stored events again, and publishes a run.

A run finishes the batches that earlier runs committed but did not publish. It then plans and reads
the inputs, if any. If there is anything to read or diagnose, it commits a batch, and finishes that
batch in the same way.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from flink_triage import __version__
from flink_triage.errors import OutputHeldError, UsageError
from flink_triage.local import Options, pack_of, with_layouts
from flink_triage.logs.inputs.files import Listing, deployment_of, list_inputs, nothing_to_read
from flink_triage.logs.inputs.storage import StorageOptions, local_path, use_options
from flink_triage.signatures import SignaturePack
from flink_triage.spark.diagnose.diagnose_batch import basis_of
from flink_triage.spark.failpoints import failpoint
from flink_triage.spark.ingest.batch import (
    PARCEL_VERSION,
    Header,
    Kind,
    Overtaken,
    Work,
    commit,
    committed_after,
    header_of,
    open_batch,
    open_own,
)
from flink_triage.spark.ingest.changed_files import WorkPlan, plan_work
from flink_triage.spark.ingest.examine_files import Look, Wanted, look_at_all
from flink_triage.spark.ingest.ledger import Row, TableLedger, planned_rows
from flink_triage.spark.ingest.ranges import cut_ranges
from flink_triage.spark.ingest.read import WorkerConfig, read_ranges
from flink_triage.spark.publish import Progress, finish_batch, options_of, skip_batch
from flink_triage.spark.runtime.explained_errors import explained
from flink_triage.spark.runtime.object_stores import options_for
from flink_triage.spark.runtime.session import suit
from flink_triage.spark.tables.published_runs import (
    PublishedRun,
    frame_of,
    newest_of,
    published_runs,
)
from flink_triage.spark.tables.table_names import BATCHES
from flink_triage.spark.tables.views import CONTENTS
from flink_triage.spark.tables.warehouse import Warehouse

# Without a lock, another run may commit first; this run then plans again.
MAX_TRIES = 5
DEFERRED = "recently written copies, or files that were replaced during planning"


def run(
    spark: SparkSession,
    inputs: Sequence[str],
    warehouse: Warehouse | str,
    options: Options | None = None,
    progress: Progress = lambda message: None,
    *,
    listing: Listing | None = None,
    skipped_batch: int | None = None,
) -> str:
    """Read new events of ``inputs``, diagnose their deployments, and publish; return the run's id.

    Batches that were committed but not published are finished first, or skipped if this release
    cannot read them. If there is then nothing new to read or diagnose, the id is that of the newest
    published run. ``listing`` is the listing of the inputs, if the caller has it. The committed
    batch with the number ``skipped_batch`` is skipped, and its files are read again; the number of
    a published batch has no effect. Raises ``UsageError`` (nothing to read, invalid options, no
    such batch), ``EnvironmentProblem``, ``OutputHeldError`` and ``CorruptStateError``.
    """
    options = with_layouts(options or Options())
    warehouse = Warehouse.at(warehouse)
    pack = pack_of(options)
    storage = options_for(spark, inputs)
    use_options(storage)
    listed = listing or list_inputs(inputs, options.settings)
    if not listed.files and not listed.quarantined:
        raise nothing_to_read(inputs)
    failpoint("listed")

    def attempt() -> str:
        runs = _finished(spark, warehouse, pack, options, progress, skipped_batch)
        # The plan is discarded before the batch is opened: both are large if there are many files.
        with _creating_tables(spark, warehouse, is_new=not runs):
            header = read_new(runs)
        if header is None:
            return newest_of(warehouse, runs).run_id
        batch = open_own(spark, warehouse, header)
        return finish_batch(spark, warehouse, Work(batch, runs, pack, options), progress).run_id

    def read_new(runs: tuple[PublishedRun, ...]) -> Header | None:
        """Commit a batch of the new input, and return its header; ``None`` if nothing is new."""
        plan = _plan(spark, listed, warehouse, runs, options, storage)
        failpoint("planned")
        if plan.deferred:
            progress(f"{len(plan.deferred)} files left to the next run: {DEFERRED}")
        again = _tried_again(runs, options, pack)
        if plan.is_empty and not again:
            progress(f"nothing new in {plan.unchanged_count} files")
            return None
        deployments = {work.deployment for work in plan.work if work.profile.problem is None}
        deployments |= again
        header = _header(
            runs, "read", listed.began_at, options, deployments, len(plan.work), inputs
        )
        config = WorkerConfig(pack, options.settings, options.timezone, storage)
        rows, staged = _staged(spark, plan, listed.began_at, config, progress)
        commit(spark, warehouse, header, rows, staged)
        return header

    return _until_published(warehouse, listed.began_at, attempt)


def diagnose_again(
    spark: SparkSession,
    warehouse: Warehouse | str,
    options: Options | None = None,
    progress: Progress = lambda message: None,
    *,
    is_rematch: bool = False,
) -> str:
    """Diagnose all stored events again with the current signatures, and publish the result.

    No log is read. Events keep their stored matches, unless ``is_rematch`` is true: then the
    current signatures are first matched against the events, and ``progress`` reports the number of
    events whose stored text is incomplete. Results of earlier runs do not change. Raises the same
    errors as `run`, and ``UsageError`` if no run has been published.
    """
    options = options or Options()
    warehouse = Warehouse.at(warehouse)
    started_at = datetime.now(UTC)
    pack = pack_of(options)

    def attempt() -> str:
        runs = _finished(spark, warehouse, pack, options, progress)
        newest_of(warehouse, runs)
        known = frame_of(spark, [run.run_id for run in runs])
        files = warehouse.current(spark, CONTENTS, known)
        named = files.where(F.col("deployment").isNotNull()).select("deployment").distinct()
        work: Kind = "rematch" if is_rematch else "again"
        header = _header(runs, work, started_at, options, named.toArrow().column(0).to_pylist())
        commit(spark, warehouse, header, (), None)
        batch = open_own(spark, warehouse, header)
        return finish_batch(spark, warehouse, Work(batch, runs, pack, options), progress).run_id

    return _until_published(warehouse, started_at, attempt)


def _until_published(warehouse: Warehouse, now: datetime, attempt: Callable[[], str]) -> str:
    """Lock a local warehouse and call ``attempt``; repeat this if another run committed first.

    Raises ``OutputHeldError`` if another run holds the lock, or after ``MAX_TRIES`` calls.
    """
    for _ in range(MAX_TRIES):
        with explained(warehouse.place), warehouse.hold(now):
            failpoint("held")
            try:
                return attempt()
            except Overtaken:
                continue
    raise OutputHeldError(
        f"{warehouse.location('runs')}: other runs were published {MAX_TRIES} times during this "
        "run; run it again when they have finished"
    )


def _finished(
    spark: SparkSession,
    warehouse: Warehouse,
    pack: SignaturePack,
    options: Options,
    progress: Progress,
    skipped: int | None = None,
) -> tuple[PublishedRun, ...]:
    """Bring the tables up to date, publish the committed batches, and return the published runs.

    The batch ``skipped``, and batches in a different format, are published as empty runs. In a new
    warehouse, only `batches` is created.
    """
    runs = published_runs(spark, warehouse)
    added = warehouse.bring_up_to_date(spark)
    # Before tables are created: a table that was just created has no batches.
    waiting = committed_after(spark, warehouse, runs[-1].batch if runs else 0)
    if not (runs or waiting):
        # The other tables of a new warehouse are created while the logs are read.
        warehouse.create(spark, (BATCHES,))
    elif added or not runs or runs[-1].tool_version != __version__:
        _create_tables(spark, warehouse)
    if skipped is not None and skipped not in {*waiting, *(run.batch for run in runs)}:
        allowed = ", ".join(map(str, waiting)) or "none, all batches are published"
        raise UsageError(f"--skip-batch: got {skipped}, allowed: {allowed}")
    for number in waiting:
        is_skipped = number == skipped
        if not is_skipped and header_of(spark, warehouse, number).parcel_version != PARCEL_VERSION:
            progress(
                f"batch {number} was written by a release with a different batch format, and "
                "cannot be read by this release"
            )
            is_skipped = True
        if is_skipped:
            progress(f"batch {number} is skipped: its files are read again if they still exist")
            done = skip_batch(spark, warehouse, number, runs, pack, options)
        else:
            progress(f"finishing batch {number}, which an earlier run committed")
            batch = open_batch(spark, warehouse, number)
            work = Work(batch, runs, pack, options, is_resumed=True)
            done = finish_batch(spark, warehouse, work, progress)
        runs = (*runs, done)
    failpoint("recovered")
    return runs


@contextmanager
def _creating_tables(spark: SparkSession, warehouse: Warehouse, *, is_new: bool) -> Iterator[None]:
    """If the warehouse ``is_new``, create its tables during the block."""
    with ThreadPoolExecutor(1) as beside:
        created = beside.submit(_create_tables, spark, warehouse) if is_new else None
        yield
        if created is not None:
            created.result()


def _create_tables(spark: SparkSession, warehouse: Warehouse) -> None:
    """Create the missing tables and, in a schema, the views."""
    warehouse.create(spark)
    failpoint("created")
    if warehouse.directory is None:
        warehouse.create_views(spark)


def _tried_again(runs: Sequence[PublishedRun], options: Options, pack: SignaturePack) -> set[str]:
    """Deployments whose last diagnosis failed with a different program, signatures or options."""
    basis = basis_of(options_of(options), pack)
    failed = runs[-1].undiagnosed if runs else ()
    return {one.deployment for one in failed if one.basis != basis}


def _next(runs: Sequence[PublishedRun]) -> int:
    return runs[-1].batch + 1 if runs else 1


def _staged(
    spark: SparkSession, plan: WorkPlan, now: datetime, config: WorkerConfig, progress: Progress
) -> tuple[Iterator[Row], DataFrame | None]:
    """The planned rows, and the parcels of the ranges; ``None`` if there is nothing to read."""
    tasks = cut_ranges(plan.work, config.settings, now)
    rows = planned_rows(plan, tasks)
    if not tasks:
        return rows, None
    progress(f"reading {len(tasks)} ranges of {len(plan.work)} files")
    suit(spark, sum(task.size_bytes for task in tasks))
    return rows, read_ranges(spark, tasks, config)


def _header(
    runs: Sequence[PublishedRun],
    work: Kind,
    at: datetime,
    options: Options,
    deployments: Iterable[str],
    file_count: int = 0,
    inputs: Sequence[str] = (),
) -> Header:
    """The header of the next batch; the id of its run is unique and sorts after earlier ids."""
    number = _next(runs)
    run_id = f"{number:08}-{at:%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
    recorded_options = options_of(options)
    roots = tuple(map(local_path, inputs))
    return Header(
        number, run_id, work, at, recorded_options, tuple(sorted(deployments)), file_count, roots
    )


def _plan(
    spark: SparkSession,
    listing: Listing,
    warehouse: Warehouse,
    runs: Sequence[PublishedRun],
    options: Options,
    storage: StorageOptions,
) -> WorkPlan:
    def look(wanted: Sequence[Wanted]) -> list[Look]:
        return look_at_all(spark, wanted, options.settings, storage)

    return plan_work(
        listing.files,
        listing.quarantined,
        TableLedger(spark, warehouse, [run.run_id for run in runs]),
        look,
        deployment_of=lambda file: deployment_of(file, options.group_by),
        now=listing.began_at,
        settle_seconds=options.settings.settle_seconds,
        salt=str(_next(runs)),
    )
