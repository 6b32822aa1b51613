"""A warehouse after many runs in, the same rows in fewer files out; old rows go when asked for.

Whatever is removed, the newest report can be rendered again and the next run knows what was read:
of what a deployment's or a path's newest run wrote all stays, however old, and so do the stack
traces that it cites.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from flink_triage.errors import UsageError
from flink_triage.spark.faults import explained
from flink_triage.spark.ingest.ledger import latest_files
from flink_triage.spark.points import reached
from flink_triage.spark.recovery import PublishedRun, clean, frame_of, published_runs
from flink_triage.spark.results import (
    cited_now,
    current_config,
    current_deployments,
    current_incidents,
)
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
    RUNS,
    STACK_TRACES,
    TABLES,
    Table,
)
from flink_triage.spark.tables import Warehouse

# Delta refuses less, because a reader or writer may still be at work on a file (delta-utility).
LEAST_RETENTION_HOURS = 168
TABLES_AT_ONCE = 3
# What was seen: nobody asks for it again but the next diagnosis of its deployment.
SEEN = (EVENTS, MATCHES, REMATCHES, LOG_VOLUME)
# What was made of it, of which a report shows what was told last, and what was over by then.
MADE = (INCIDENTS, DIAGNOSES, FLINK_CONFIG, DEPLOYMENTS)
# Kept as long as a newest row asks for it: a path's for the ledger, a cited trace for the report.
ASKED_FOR = (LOG_FILES, STACK_TRACES)
KEPT = (RUNS,)


@dataclass(frozen=True, slots=True)
class Upkeep:
    """``keep_days`` None keeps all rows; ``retention_hours`` is how long old files stay."""

    keep_days: float | None = None
    retention_hours: float = LEAST_RETENTION_HOURS

    def __post_init__(self) -> None:
        if self.keep_days is not None and not self.keep_days >= 1:
            raise UsageError(f"--keep-days: got {self.keep_days:g}, allowed: 1 and more")
        if not self.retention_hours >= LEAST_RETENTION_HOURS:
            raise UsageError(
                f"--retention-hours: got {self.retention_hours:g}, allowed: "
                f"{LEAST_RETENTION_HOURS} and more, because readers may be at work on older files"
            )


def maintain(
    spark: SparkSession,
    warehouse: Warehouse | str,
    upkeep: Upkeep | None = None,
    progress: Callable[[str], None] = lambda message: None,
) -> None:
    """Remove what dead runs left and rows older than asked, join small files, drop unused ones.

    It can be killed and repeated at any time.  Raises as a run does.
    """
    upkeep = upkeep or Upkeep()
    house = Warehouse(warehouse) if isinstance(warehouse, str) else warehouse
    now = datetime.now(timezone.utc)
    with explained(house), house.hold(now):
        runs = published_runs(spark, house)
        if not runs:
            raise house.unpublished()
        clean(spark, house, [run.run_id for run in runs])
        reached("maintain.cleaned")
        if upkeep.keep_days is not None:
            _forget(spark, house, runs, now - timedelta(days=upkeep.keep_days))
        tables = [table for table in TABLES.values() if house.exists(spark, table)]
        before = now - timedelta(hours=upkeep.retention_hours)

        def tidy(table: Table) -> None:
            progress(f"joining files of {table.name}")
            spark.sql(f"OPTIMIZE {house.identifier(table)}")
            reached(f"joined.{table.name}")
            if _has_unused_files(spark, house, table, before):
                spark.sql(f"VACUUM {house.identifier(table)} RETAIN {upkeep.retention_hours} HOURS")
            reached(f"vacuumed.{table.name}")

        # Of a small table it is all latency.
        with ThreadPoolExecutor(TABLES_AT_ONCE) as pool:
            list(pool.map(tidy, tables))


def _has_unused_files(
    spark: SparkSession, house: Warehouse, table: Table, before: datetime
) -> bool:
    """Whether a folder of this machine has files that VACUUM could remove; elsewhere it may.

    It is four fifths of the upkeep of a small table, and removes nothing from most.
    """
    if house.local_path is None:
        return True
    old: set[str] = set()
    for folder, folders, names in os.walk(house.location(table.name)):
        # Hidden ones are the log's and checksums, which VACUUM leaves alone.
        folders[:] = [name for name in folders if name[0] not in "._"]
        files = [f"{folder}/{name}" for name in names if name[0] not in "._"]
        old.update(file for file in files if os.path.getmtime(file) < before.timestamp())
    if not old:
        return False
    used = {unquote(urlsplit(uri).path) for uri in house.read(spark, table).inputFiles()}
    return not old <= used


def _forget(
    spark: SparkSession, house: Warehouse, runs: Sequence[PublishedRun], before: datetime
) -> None:
    """Delete rows of runs that were published before; those that are still the newest word stay.

    A kill between two tables leaves rows that nobody misses; the next pass deletes them.
    """
    old = {run.run_id for run in runs if run.finished_at < before}
    known = frame_of(spark, runs)
    for table in SEEN:
        _delete(spark, house, table, old)
    if house.exists(spark, DEPLOYMENTS):
        told = _ids(current_incidents(spark, house, known))
        newest = {
            INCIDENTS: told,
            DIAGNOSES: told,
            FLINK_CONFIG: _ids(current_config(spark, house, known)),
            DEPLOYMENTS: _ids(current_deployments(spark, house, known)),
        }
        for table in MADE:
            _delete(spark, house, table, old - newest[table])
    _delete(spark, house, STACK_TRACES, old, cited_now(spark, house, known))
    _delete(spark, house, LOG_FILES, old - _ids(latest_files(spark, house, known)))


def _ids(rows: DataFrame) -> set[str]:
    return set(rows.select("run_id").distinct().toArrow().column(0).to_pylist())


def _delete(
    spark: SparkSession,
    house: Warehouse,
    table: Table,
    run_ids: set[str],
    but_fingerprints: Iterable[str] = (),
) -> None:
    if not run_ids or not house.exists(spark, table):
        return
    gone = f"run_id IN ({_listed(run_ids)})"
    if but := set(but_fingerprints):
        gone += f" AND fingerprint NOT IN ({_listed(but)})"
    # An empty DELETE would still be a commit.
    if not house.read(spark, table).where(F.expr(gone)).isEmpty():
        spark.sql(f"DELETE FROM {house.identifier(table)} WHERE {gone}")
    reached(f"forgotten.{table.name}")


def _listed(names: set[str]) -> str:
    """Ids and fingerprints, which are hex digits and colons, for SQL."""
    return ", ".join(f"'{name}'" for name in sorted(names))
