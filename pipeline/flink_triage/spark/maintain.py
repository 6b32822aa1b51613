"""Compacts the tables of a warehouse, and deletes old batches and, on request, other old rows.

The newest report can still be rendered, and the next run still has its ledger. The current
incidents, diagnosis states, Flink options and ledger rows are kept regardless of their age, except
the ledger rows of deleted files. The stack traces to which the current results refer are also kept.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from flink_triage.errors import EnvironmentProblem, UsageError
from flink_triage.logs.inputs.files import list_inputs
from flink_triage.logs.inputs.storage import use_options
from flink_triage.spark.failpoints import failpoint
from flink_triage.spark.query.read_result import cited_now
from flink_triage.spark.runtime.explained_errors import explained
from flink_triage.spark.runtime.object_stores import options_for
from flink_triage.spark.tables.arrow_types import TEXT
from flink_triage.spark.tables.published_runs import (
    PublishedRun,
    frame_of,
    newest_of,
    published_runs,
)
from flink_triage.spark.tables.schemas import (
    DEPLOYMENTS,
    EVENTS,
    FLINK_CONFIG,
    INCIDENTS,
    LOG_FILES,
    LOG_VOLUME,
    REMATCHES,
    RUNS,
    STACK_TRACES,
)
from flink_triage.spark.tables.table_names import BATCHES, DIAGNOSED, STORED
from flink_triage.spark.tables.table_spec import Table
from flink_triage.spark.tables.views import CONTENTS
from flink_triage.spark.tables.warehouse import Warehouse, listed

# Delta's default for VACUUM: younger files may still be in use, although no table refers to them.
LEAST_RETENTION_HOURS = 168
TABLES_AT_ONCE = 3
# Published batches are kept at least this long, so that the input of a run can be inspected.
BATCH_DAYS = 7


@dataclass(frozen=True, slots=True)
class Upkeep:
    """How long rows and unused files are kept.

    If ``keep_days`` is None, all rows except old batches are kept. Files that Delta no longer uses
    are kept for at least ``retention_hours``. Raises ``UsageError`` if ``keep_days`` is less than
    1, or ``retention_hours`` less than ``LEAST_RETENTION_HOURS``.
    """

    keep_days: float | None = None
    retention_hours: float = LEAST_RETENTION_HOURS

    def __post_init__(self) -> None:
        if self.keep_days is not None and not self.keep_days >= 1:
            raise UsageError(f"--keep-days: got {self.keep_days:g}, allowed: at least 1")
        if not self.retention_hours >= LEAST_RETENTION_HOURS:
            raise UsageError(
                f"--retention-hours: got {self.retention_hours:g}, allowed: "
                f"at least {LEAST_RETENTION_HOURS}, because readers may still use older files"
            )


def maintain(
    spark: SparkSession,
    warehouse: Warehouse | str,
    upkeep: Upkeep | None = None,
    progress: Callable[[str], None] = lambda message: None,
) -> None:
    """Delete old batches and rows, compact small files, and remove unused files.

    Maintenance can be interrupted and repeated at any time. Raises ``UsageError`` if no run has
    been published, ``OutputHeldError`` if another process has locked the warehouse,
    ``CorruptStateError`` if a table is damaged, and ``EnvironmentProblem`` if storage or memory is
    not sufficient or not accessible.
    """
    upkeep = upkeep or Upkeep()
    warehouse = Warehouse.at(warehouse)
    now = datetime.now(UTC)
    with explained(warehouse.place), warehouse.hold(now):
        runs = published_runs(spark, warehouse)
        newest_of(warehouse, runs)
        _forget_batches(spark, warehouse, runs, now - timedelta(days=BATCH_DAYS))
        failpoint("maintain.cleaned")
        if upkeep.keep_days is not None:
            old_since = now - timedelta(days=upkeep.keep_days)
            _forget_missing(spark, warehouse, runs, old_since)
            _forget(spark, warehouse, runs, old_since)
        tables = [table for table in STORED.values() if warehouse.exists(spark, table)]
        before = now - timedelta(hours=upkeep.retention_hours)

        def tidy(table: Table) -> None:
            progress(f"compacting files of {table.name}")
            spark.sql(f"OPTIMIZE {warehouse.identifier(table)}")
            failpoint(f"joined.{table.name}")
            if _has_unused_files(spark, warehouse, table, before):
                spark.sql(
                    f"VACUUM {warehouse.identifier(table)} RETAIN {upkeep.retention_hours} HOURS"
                )
            failpoint(f"vacuumed.{table.name}")

        # On small tables, these commands mostly wait.
        with ThreadPoolExecutor(TABLES_AT_ONCE) as pool:
            list(pool.map(tidy, tables))


def _has_unused_files(
    spark: SparkSession, warehouse: Warehouse, table: Table, before: datetime
) -> bool:
    """Whether VACUUM could remove files that were last modified earlier than ``before``.

    Always true if the table is not in a local folder. VACUUM takes four fifths of the maintenance
    time of a small table and usually removes nothing.
    """
    if warehouse.local_path is None:
        return True
    old: set[str] = set()
    for folder, folders, names in os.walk(warehouse.location(table.name)):
        # Hidden files belong to the log or are checksums; VACUUM does not remove them.
        folders[:] = [name for name in folders if name[0] not in "._"]
        files = [f"{folder}/{name}" for name in names if name[0] not in "._"]
        old.update(file for file in files if os.path.getmtime(file) < before.timestamp())
    if not old:
        return False
    used = {unquote(urlsplit(uri).path) for uri in warehouse.read(spark, table).inputFiles()}
    return not old <= used


def _forget_batches(
    spark: SparkSession, warehouse: Warehouse, runs: Sequence[PublishedRun], before: datetime
) -> None:
    """Delete batches whose runs were published earlier than ``before``."""
    old = [run.batch for run in runs if run.finished_at < before]
    if old:
        # Batches are published in order.
        warehouse.delete(spark, BATCHES, f"batch <= {max(old)}")
    failpoint("forgotten.batches")


def _forget(
    spark: SparkSession, warehouse: Warehouse, runs: Sequence[PublishedRun], before: datetime
) -> None:
    """Delete the rows of runs that were published before ``before``.

    Rows that the current results or the next run require are kept, and so are all rows of `runs`.
    If the process is killed between two tables, unused rows remain until the next pass.
    """
    old = {run.run_id for run in runs if run.finished_at < before}
    known = frame_of(spark, [run.run_id for run in runs])

    def writers_of(name: str) -> set[str]:
        rows = warehouse.current(spark, name, known).select("run_id").distinct()
        return set(rows.toArrow().column(0).to_pylist())

    def forget(table: Table, needed: str = "false") -> None:
        if old and warehouse.exists(spark, table):
            warehouse.delete(spark, table, f"run_id IN ({listed(old)}) AND NOT ({needed})")
        failpoint(f"forgotten.{table.name}")

    if warehouse.exists(spark, EVENTS):
        # The current value of an option may be old.
        printed = "coalesce(lifecycle.kind = 'config', false)"
        forget(EVENTS, f"{printed} AND {_is_of(writers_of(FLINK_CONFIG.name))}")
    forget(REMATCHES)
    forget(LOG_VOLUME)
    if warehouse.exists(spark, DIAGNOSED):
        forget(DIAGNOSED, _is_of(writers_of(INCIDENTS.name) | writers_of(DEPLOYMENTS.name)))
    forget(STACK_TRACES, _is_of(cited_now(spark, warehouse, known), "fingerprint"))
    forget(LOG_FILES, _is_of(writers_of(CONTENTS)))


def _forget_missing(
    spark: SparkSession, warehouse: Warehouse, runs: Sequence[PublishedRun], before: datetime
) -> None:
    """Delete the ledger rows of deleted files whose last change was published before ``before``.

    A file counts as deleted if its path now has different content, or if an input of a recent run
    covers its path but no longer contains the file. An input that cannot be listed here, or is
    empty, may be temporarily unavailable, so the rows of its files are kept.
    """
    old = [run.run_id for run in runs if run.finished_at < before]
    if not old or not warehouse.exists(spark, LOG_FILES):
        return
    files = warehouse.current(spark, CONTENTS, frame_of(spark, [run.run_id for run in runs]))
    files = files.join(F.broadcast(frame_of(spark, old)), "run_id", "left_semi")
    inputs = _inputs_since(spark, warehouse, before)
    use_options(options_for(spark, sorted(inputs)))
    roots, paths = _listed_now(inputs)
    there = spark.createDataFrame(pa.table({"path": pa.array(sorted(paths), TEXT)}))
    is_below = F.lit(False)
    for root in roots:
        within = (f"{root.rstrip('/')}/", f"{root}!/")
        is_below |= F.col("path") == root
        is_below |= F.col("path").startswith(within[0]) | F.col("path").startswith(within[1])
    missing = files.where(F.col("is_current") & is_below).join(there, "path", "left_anti")
    gone = files.where(~F.col("is_current")).unionByName(missing)
    warehouse.delete_matching(spark, LOG_FILES, gone, ("file_id", "generation"))
    failpoint("forgotten.missing")


def _inputs_since(spark: SparkSession, warehouse: Warehouse, since: datetime) -> set[str]:
    """The inputs of the runs published since ``since``, or else of the newest run."""
    rows = warehouse.read(spark, RUNS).select("finished_at", "options_json").toArrow().to_pylist()
    since = min(since, max(row["finished_at"] for row in rows))
    recorded_options = (
        json.loads(row["options_json"]) for row in rows if row["finished_at"] >= since
    )
    return {root for options in recorded_options for root in options.get("inputs") or ()}


def _listed_now(inputs: Iterable[str]) -> tuple[list[str], set[str]]:
    """The inputs that contain files, and all listed paths, including quarantined ones."""
    roots: list[str] = []
    paths: set[str] = set()
    for root in sorted(inputs):
        try:
            listing = list_inputs([root])
        except (UsageError, OSError, EnvironmentProblem):
            continue
        if listing.files:
            roots.append(root)
        paths.update(file.path for file in listing.files)
        paths.update(bad.path for bad in listing.quarantined)
    return roots, paths


def _is_of(names: Iterable[str], column: str = "run_id") -> str:
    """The SQL condition that a column has one of the values; ``false`` without values."""
    names = set(names)
    return f"{column} IN ({listed(names)})" if names else "false"
