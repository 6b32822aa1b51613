"""The deployments of a batch in, their incidents and what they carry out: most by their news alone.

A deployment goes on from what the newest published run that touched it left in `deployments`.  It
is diagnosed over all its events where there is nothing to go on from, where signatures, options or
program are others by now, and where its news change what was told for good.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from flink_triage import __version__
from flink_triage.model import SEVERITIES
from flink_triage.spark import stages
from flink_triage.spark.diagnosing import DIAGNOSED_ROWS, STATE
from flink_triage.spark.ingest.identity import sha256
from flink_triage.spark.parcels import Standing
from flink_triage.spark.points import reached
from flink_triage.spark.publishing import Batch, options_of
from flink_triage.spark.recovery import Attempt, frame_of
from flink_triage.spark.rematching import counted_runs, with_newest_matches
from flink_triage.spark.results import current_deployments, current_incidents
from flink_triage.spark.row_types import TEXT, spark_schema, spark_type
from flink_triage.spark.schemas import DEPLOYMENTS, EVENTS, INCIDENTS
from flink_triage.spark.tables import Warehouse

# Raised whenever what is carried, or what is made of it, changes.
CARRIED_VERSION = "2"
# From the best to the worst; a log that ends in trouble says neither way.
OUTCOMES = ("recovered", "unknown", "ongoing", "failed")
STAGED = DIAGNOSED_ROWS.append(pa.field("status", TEXT))


@dataclass(frozen=True, slots=True)
class _Left:
    """What a run left of a deployment: ``run_id`` told it last, ``goes_on`` if it is of use."""

    deployment: str
    run_id: str
    goes_on: bool


@dataclass(frozen=True, slots=True)
class News:
    """What this run read, as it is staged: rows of `events` without the run's id, and the same as
    parcels of ranges that stand so; and how many events that are."""

    events: DataFrame
    parcels: DataFrame
    standing: Standing
    event_count: int


@dataclass(frozen=True, slots=True)
class Diagnosed:
    """Rows of `incidents` and of `deployments`, without the run's id."""

    incidents: DataFrame
    deployments: DataFrame


def diagnose_batch(
    spark: SparkSession,
    house: Warehouse,
    batch: Batch,
    attempt: Attempt,
    news: News | None,
) -> Diagnosed:
    """Diagnose the batch's deployments; all of them over all their events where nothing is new.

    The news are read from where they are staged: their append need not be done.  What comes out is
    staged, too: it is read more than once, and made once.
    """
    basis = basis_of(batch)
    left = _left(spark, house, batch, basis)
    going = {one.deployment: one for one in left if one.goes_on and news is not None}
    parts: list[DataFrame] = []
    whole = set(batch.deployments) - set(going)
    # A killed first run may have made one table and not yet the other.
    is_told = batch.runs and all(house.exists(spark, table) for table in (DEPLOYMENTS, INCIDENTS))

    def staged(rows: DataFrame, part: str, before: DataFrame | None) -> DataFrame:
        name = house.staging_part(attempt.staging, part)
        house.write_staging(_with_status(rows, before), name)
        reached(f"diagnosed.{part}")
        return house.read_staging(spark, name, spark_schema(STAGED))

    if going and news is not None:
        states = _states(spark, house, list(going.values()))
        diagnosed = _by_news(batch, news, states, len(going))
        # What was closed by then is not told again.
        before = _rows_of(spark, house.read(spark, INCIDENTS), list(going.values()))
        rows = staged(diagnosed, "news", before)
        failed = F.col("incident").isNull() & F.col("state").isNull()
        refused = rows.where(failed).select("deployment").toArrow().column(0).to_pylist()
        whole |= set(refused)
        parts.append(rows.where(~failed))
    if whole:
        names = spark.createDataFrame(pa.table({"deployment": pa.array(sorted(whole), TEXT)}))
        states = names.withColumn("state", F.lit(None).cast(spark_type(STATE)))
        # A run that could read no file has published, and made no table of events.
        is_first = not batch.runs or not house.exists(spark, EVENTS)
        if news is not None and is_first:
            diagnosed = _by_news(batch, news, states, len(whole))
        else:
            events = _history(spark, house, batch, attempt.run_id, news)
            tasks = stages.partitions_for(len(whole))
            diagnosed = stages.diagnosed(events, states, tasks, batch.pack, batch.options)
        told = None
        if is_told:
            told = current_incidents(spark, house, frame_of(spark, batch.runs)).join(
                F.broadcast(names), "deployment", "left_semi"
            )
        parts.append(staged(diagnosed, "whole", told))
    rows = reduce(DataFrame.unionByName, parts)
    return Diagnosed(_incidents(rows, attempt.run_id), _deployments(rows, basis, attempt.run_id))


def _by_news(batch: Batch, news: News, states: DataFrame, deployments: int) -> DataFrame:
    tasks = stages.partitions_for_news(deployments, news.event_count)
    return stages.diagnosed_parcels(
        news.parcels, news.standing, states, tasks, batch.pack, batch.options
    )


def basis_of(batch: Batch) -> str:
    """What a carried state depends on besides the events: with another it is of no use."""
    asked = json.dumps(options_of(batch.options), sort_keys=True)
    return sha256("\0".join((CARRIED_VERSION, __version__, batch.pack.digest, asked)).encode())


def _history(
    spark: SparkSession, house: Warehouse, batch: Batch, run_id: str, news: News | None
) -> DataFrame:
    """Events of all published runs, with what was last found in each, and the news."""
    published = [run.run_id for run in batch.runs]
    counted = F.broadcast(counted_runs(spark, published).select("run_id"))
    events = house.read(spark, EVENTS).join(counted, "run_id", "left_semi")
    known = with_newest_matches(spark, house, events, [*published, run_id])
    return known if news is None else known.select(*news.events.columns).unionByName(news.events)


def _left(spark: SparkSession, house: Warehouse, batch: Batch, basis: str) -> list[_Left]:
    """What the newest published run that touched each deployment of the batch left of it."""
    if not batch.runs or not house.exists(spark, DEPLOYMENTS):
        return []
    rows = current_deployments(spark, house, frame_of(spark, batch.runs)).select(
        "deployment",
        "run_id",
        ((F.col("basis") == basis) & F.col("in_time_from").isNotNull()).alias("goes_on"),
    )
    wanted = set(batch.deployments)
    found = rows.toArrow().to_pylist()
    return [_Left(**row) for row in found if row["deployment"] in wanted]


def _states(spark: SparkSession, house: Warehouse, left: Sequence[_Left]) -> DataFrame:
    """deployment, and the state that it goes on from."""
    rows = _rows_of(spark, house.read(spark, DEPLOYMENTS), left)
    return rows.select("deployment", F.struct(*(field.name for field in STATE)).alias("state"))


def _rows_of(spark: SparkSession, rows: DataFrame, left: Sequence[_Left]) -> DataFrame:
    """Rows that these runs wrote of these deployments; files of other runs are not opened."""
    pairs = pa.table(
        {
            "deployment": pa.array([one.deployment for one in left], TEXT),
            "run_id": pa.array([one.run_id for one in left], TEXT),
        }
    )
    of_runs = rows.where(F.col("run_id").isin(sorted({one.run_id for one in left})))
    wanted = F.broadcast(spark.createDataFrame(pairs))
    return of_runs.join(wanted, ["deployment", "run_id"], "left_semi")


def _deployments(rows: DataFrame, basis: str, run_id: str) -> DataFrame:
    found = rows.where(F.col("state").isNotNull()).select("deployment", "state.*", "unknown_json")
    found = found.withColumn("basis", F.lit(basis)).withColumn("run_id", F.lit(run_id))
    found = found.withColumn("whole_run_id", F.coalesce("whole_run_id", "run_id"))
    return found.select(*DEPLOYMENTS.column_names)


def _incidents(rows: DataFrame, run_id: str) -> DataFrame:
    found = rows.where(F.col("incident").isNotNull()).select("incident.*", "status")
    found = found.withColumn("run_id", F.lit(run_id))
    found = found.withColumn("whole_run_id", F.coalesce("whole_run_id", "run_id"))
    return found.select(*INCIDENTS.column_names)


# --- what became of an incident ----------------------------------------------------------------


def _with_status(rows: DataFrame, before: DataFrame | None) -> DataFrame:
    """Rows of ``STAGED``, out of ``DIAGNOSED_ROWS`` and the incidents that were told ``before``.

    Nothing is news where nothing was told.  This is read here and not by the append to `incidents`,
    which would be refused whenever another run appends to what it reads.
    """
    if before is None:
        return rows.withColumn("status", F.lit(None).cast("string"))
    told = before.select(
        F.col("deployment").alias("told_of"),
        F.col("incident_id").alias("told_id"),
        F.col("outcome").alias("was"),
        F.col("severity").alias("severity_before"),
        F.lit(True).alias("is_known"),
    )
    is_same = (F.col("deployment") == F.col("told_of")) & (
        F.col("incident.incident_id") == F.col("told_id")
    )
    joined = rows.join(F.broadcast(told), is_same, "left")
    return joined.withColumn("status", _status()).select(*STAGED.names)


def _status() -> Column:
    """new, ongoing, worse or resolved since the last run; null for what was over before, or is
    no trouble."""
    outcome, was = _place("incident.outcome", OUTCOMES), _place("was", OUTCOMES)
    # Without a diagnosis the severity is unknown, which is no worse than any.
    severity, before = (
        _place("incident.severity", SEVERITIES),
        _place("severity_before", SEVERITIES),
    )
    return (
        F.when(F.col("incident").isNull() | (F.col("incident.verdict") == "healthy"), None)
        .when(F.col("is_known").isNull(), "new")
        .when((outcome == 0) & (was > 0), "resolved")
        .when((outcome > was) | (severity < before), "worse")
        .when(outcome > 0, "ongoing")
    )


def _place(column: str, order: Sequence[str]) -> Column:
    """Index in ``order``, or its length for null."""
    place: Column = F.lit(len(order))
    for index, value in enumerate(order):
        place = F.when(F.col(column) == value, index).otherwise(place)
    return place
