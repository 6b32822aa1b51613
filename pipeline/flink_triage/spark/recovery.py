"""What dead runs left behind: in goes a warehouse, out go their staged and unpublished rows.

A run opens by making its staging folder and closes by removing it, so a folder that is there tells
of a run that did not come to its end.  Its name holds the run, and the run that was the newest
when it began: once another has been published since, the dead run can never be completed.
"""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from flink_triage.errors import FlinkTriageError
from flink_triage.logs.storage import remove_stored, use_options
from flink_triage.spark.faults import damaged
from flink_triage.spark.ingest.identity import sha256
from flink_triage.spark.points import reached
from flink_triage.spark.schemas import RUNS, TABLES
from flink_triage.spark.storage import options_for
from flink_triage.spark.tables import Warehouse

STAGING = "_staging"
NAME = re.compile(
    rf"{STAGING}_(?P<run>[0-9a-f]{{16}})(?:_(?P<base>[0-9a-z]{{8}})_(?P<attempt>\d+))?"
)
RUN_CHARS, BASE_CHARS = 16, 8
# What is staged besides the rows of the byte ranges.
PARTS = ("news", "whole")


@dataclass(frozen=True, slots=True)
class PublishedRun:
    """A row of `runs`; ``tables`` are those that it wrote to."""

    run_id: str
    finished_at: datetime
    tables: tuple[str, ...] = ()
    tool_version: str = ""


# What the first run of a warehouse comes after.
NO_RUN = "nothing0"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try to publish a batch on top of the run ``base``."""

    run_id: str
    staging: str


@dataclass(frozen=True, slots=True)
class Leftover:
    """A staging folder: beginnings of the ids of its run and of the newest run at its start."""

    folder: Path
    run: str
    base: str
    attempt: int


def published_runs(spark: SparkSession, house: Warehouse) -> tuple[PublishedRun, ...]:
    """All published runs, the newest last; empty before the first.

    Raises ``CorruptStateError`` when a table that they wrote to is gone: it would be made anew, and
    without what it held.
    """
    if not house.exists(spark, RUNS):
        local = house.local_path
        # Delta writes a checksum after a commit: where there is one, there was a commit.
        if local is not None and any((local / RUNS.name / "_delta_log").glob("[0-9]*.crc")):
            raise damaged(house, RUNS.name)
        return ()
    columns = ("run_id", "finished_at", "row_counts", "tool_version")
    rows = house.read(spark, RUNS).select(*columns).toArrow().to_pylist()
    found = (
        PublishedRun(
            row["run_id"],
            row["finished_at"],
            tuple(sorted(dict(row["row_counts"]))),
            row["tool_version"],
        )
        for row in rows
    )
    runs = tuple(sorted(found, key=lambda run: (run.finished_at, run.run_id)))
    for name in runs[-1].tables if runs else ():
        if not house.exists(spark, TABLES[name]):
            raise damaged(house, name)
    return runs


def frame_of(spark: SparkSession, runs: Sequence[PublishedRun]) -> DataFrame:
    """run_id, at: what `Warehouse.runs` reads from the tables, of runs that are known already."""
    at = {run.run_id: run.finished_at for run in runs}
    columns = {
        "run_id": pa.array(list(at), pa.string()),
        "at": pa.array(list(at.values()), pa.timestamp("us", tz="UTC")),
    }
    return spark.createDataFrame(pa.table(columns))


def open_attempt(house: Warehouse, batch_id: str, base: str) -> Attempt:
    """Name the next try of a batch, and make its staging folder.

    Each try has an id of its own: a file that could not be read, a slow regex or the clock may give
    it other rows than the try before.
    """
    local = house.local_path
    if local is None:
        # Nothing tells how often it was tried: the id has to be one that nobody had.
        run_id = sha256(f"{batch_id}\0{uuid.uuid4().hex}".encode())
        return Attempt(run_id, f"{STAGING}_{run_id[:RUN_CHARS]}_{base[:BASE_CHARS]}_0")
    tries = [left.attempt for left in leftovers(local) if left.base == base[:BASE_CHARS]]
    attempt = 1 + max(tries, default=-1)
    run_id = sha256(f"{batch_id}\0{attempt}".encode()) if attempt else batch_id
    name = f"{STAGING}_{run_id[:RUN_CHARS]}_{base[:BASE_CHARS]}_{attempt}"
    (local / name).mkdir(parents=True, exist_ok=True)
    reached("stage.opened")
    return Attempt(run_id, name)


def leftovers(local: Path) -> tuple[Leftover, ...]:
    """The staging folders of a local warehouse."""
    found = []
    for folder in sorted(local.glob(f"{STAGING}_*")):
        name = NAME.fullmatch(folder.name)
        if name is not None:
            found.append(
                Leftover(folder, name["run"], name["base"] or "", int(name["attempt"] or 0))
            )
    return tuple(found)


def clean(spark: SparkSession, house: Warehouse, runs: Sequence[str]) -> int:
    """Remove what dead runs left, given the ids of the published ``runs``, the newest last.

    Rows of unpublished runs go first and the folder that tells of them last, so that a kill in
    between leaves work for the next start, and a second pass finds nothing.  Only for a local
    warehouse, whose lock is held: elsewhere a run that looks dead may be running.  Returns how many
    folders went.
    """
    local = house.local_path
    newest = runs[-1] if runs else NO_RUN
    if local is None:
        return 0
    dead = [left for left in leftovers(local) if left.base != newest[:BASE_CHARS]]
    published = {run_id[:RUN_CHARS] for run_id in runs}
    lost = [left.run for left in dead if left.run not in published]
    if lost:
        delete_rows(spark, house, lost)
    for left in dead:
        reached("clean.folder")
        shutil.rmtree(left.folder, ignore_errors=True)
    return len(dead)


def delete_rows(spark: SparkSession, house: Warehouse, lost: Sequence[str]) -> None:
    """Delete the rows of runs whose ids begin with one of ``lost`` from all tables."""
    theirs = " OR ".join(f"run_id LIKE '{run}%'" for run in lost)
    for table in TABLES.values():
        if table is RUNS or not house.exists(spark, table):
            continue
        reached(f"clean.{table.name}")
        if not house.read(spark, table).where(theirs).isEmpty():
            spark.sql(f"DELETE FROM {house.identifier(table)} WHERE {theirs}")
    reached("clean.deleted")


def drop(spark: SparkSession, house: Warehouse, attempt: Attempt, runs: Sequence[str]) -> None:
    """After ``attempt`` was published as the newest of ``runs``: nothing staged is of use."""
    reached("drop")
    if house.local_path is not None:
        clean(spark, house, runs)
    elif house.directory is not None:
        # Without rights to delete they stay; nobody reads them.
        with suppress(OSError, FlinkTriageError):
            use_options(options_for(spark, [house.directory]))
            remove_stored(house.location(attempt.staging))
    else:
        for name in (attempt.staging, *(house.staging_part(attempt.staging, p) for p in PARTS)):
            spark.sql(f"DROP TABLE IF EXISTS {house.location(name)}")
    reached("dropped")
