"""Diagnoses the deployments of a batch and appends the results to `diagnosed`.

A diagnosis continues from the state that the newest published run of the deployment stored in
`diagnosed` (read as `deployments`), and reads only the new events. It reads all events of the
deployment if there is no usable state, if the signatures, options or program version differ, if the
new events could affect closed incidents, or if the run reads no logs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from flink_triage import __version__
from flink_triage.local import witness_of_log
from flink_triage.model import SEVERITIES, Observation
from flink_triage.signatures import SignaturePack
from flink_triage.spark.diagnose.diagnose_deployment import (
    DIAGNOSED_ROWS,
    STATE,
    DiagnosisConfig,
    diagnosing_function,
    parcels_function,
)
from flink_triage.spark.ingest import derive
from flink_triage.spark.ingest.batch import FILES_PER_PARCEL, Work
from flink_triage.spark.ingest.ledger import profile_of
from flink_triage.spark.tables.arrow_types import TEXT, spark_schema, spark_type
from flink_triage.spark.tables.parcels import RangePositions
from flink_triage.spark.tables.published_runs import FailedDiagnosis, frame_of
from flink_triage.spark.tables.schemas import DEPLOYMENTS, EVENTS, INCIDENTS, LOG_FILES
from flink_triage.spark.tables.table_names import DIAGNOSED
from flink_triage.spark.tables.views import CONTENTS
from flink_triage.spark.tables.warehouse import Warehouse

EVENT_COLUMNS = tuple(name for name in EVENTS.column_names if name != "run_id")
# Increase this when the carried state or the rows that are derived from it change.
CARRIED_VERSION = "3"
# In a large fleet, deployments share partitions: with more partitions, starting tasks costs more
# than better balancing saves.
MAX_PARTITIONS = 256
# A task takes about 0.1 s to start and end, and diagnoses ``EVENTS_PER_TASK`` events in half a
# second. The fixed cost of a deployment equals the cost of ``DEPLOYMENT_EVENTS`` events.
EVENTS_PER_TASK = 8_000
DEPLOYMENT_EVENTS = 1_000
FAILURES = ("diagnosed", "undetermined")
# From best to worst.
OUTCOMES = ("recovered", "unknown", "ongoing", "failed")


@dataclass(frozen=True, slots=True)
class _PreviousRun:
    """The published run from whose state the diagnosis of a deployment continues."""

    deployment: str
    run_id: str


@dataclass(frozen=True, slots=True)
class _Result:
    """The rows of a run for one deployment.

    ``is_attempted`` is false if its new events do not suffice, and a full diagnosis is required.
    """

    deployment: str
    row_count: int
    is_attempted: bool
    failure: str | None


def diagnose_batch(
    spark: SparkSession, warehouse: Warehouse, work: Work
) -> tuple[int, list[FailedDiagnosis]]:
    """Diagnose the deployments of the batch and append the rows to `diagnosed`.

    Returns the number of rows and the deployments that could not be diagnosed, as read back from
    the table. If the batch read no log, all events of each deployment are diagnosed. New events are
    read from the batch, so their append to `events` may still be running.
    """
    header, basis = work.header, basis_of(work.header.options, work.pack)
    is_news = header.work == "read"
    witnesses = _witnesses(spark, warehouse, work)
    previous = _previous_runs(spark, warehouse, work, basis) if is_news else []
    going = {one.deployment: one for one in previous}
    whole = set(header.deployments) - set(going)
    results: list[_Result] = []

    def append(rows: DataFrame, before: DataFrame | None, part: str) -> None:
        warehouse.append(_rows(rows, before, basis, header.run_id), DIAGNOSED, header.batch, part)

    if going:
        states = _states(spark, warehouse, list(going.values()))
        # Closed incidents are not reported again.
        before = _rows_of(spark, warehouse.read(spark, INCIDENTS), list(going.values()))
        append(_by_news(work, states, len(going), witnesses), before, "news")
    if going or work.is_resumed:
        results = _results(spark, warehouse, header.run_id)
        # Exclude deployments that were diagnosed from their new events alone.
        attempted = {one.deployment for one in results if one.is_attempted}
        whole = set(header.deployments) - attempted
    if whole:
        names = spark.createDataFrame(pa.table({"deployment": pa.array(sorted(whole), TEXT)}))
        states = names.withColumn("state", F.lit(None).cast(spark_type(STATE)))
        if is_news and not work.runs:
            rows = _by_news(work, states, len(whole), witnesses)
        else:
            events = _history(spark, warehouse, work)
            rows = _by_events(events, states, len(whole), work, witnesses)
        known = None
        if any(DIAGNOSED.name in run.tables for run in work.runs):
            incidents = warehouse.current(spark, INCIDENTS.name, frame_of(spark, work.run_ids))
            known = incidents.join(F.broadcast(names), "deployment", "left_semi")
        append(rows, known, "whole")
        results = _results(spark, warehouse, header.run_id)
    failed = [
        FailedDiagnosis(one.deployment, one.failure, basis)
        for one in sorted(results, key=lambda one: one.deployment)
        if one.failure is not None
    ]
    return sum(one.row_count for one in results), failed


def _witnesses(spark: SparkSession, warehouse: Warehouse, work: Work) -> dict[str, Observation]:
    """At most one witness per deployment of the batch, for logs without notable events."""
    files = work.batch.files
    batches = files.to_batches(max_chunksize=FILES_PER_PARCEL)
    # Deployments that are diagnosed again may have no log files in the batch.
    if set(work.header.deployments) - set(files.column("deployment").unique().to_pylist()):
        known = warehouse.current(spark, CONTENTS, frame_of(spark, work.run_ids))
        of_one = known.where("role IS NOT NULL OR flink_version IS NOT NULL").groupBy("deployment")
        columns = F.struct(*(name for name in LOG_FILES.column_names if name != "deployment"))
        newest = of_one.agg(F.max_by(columns, "run_id").alias("file")).select(
            "deployment", "file.*"
        )
        batches += newest.toArrow().to_batches()
    found: dict[str, Observation] = {}
    for file in (row for batch in batches for row in batch.to_pylist()):
        deployment = file["deployment"]
        profile = None if deployment in found else profile_of(file)
        witness = witness_of_log(deployment, profile) if profile is not None else None
        if witness is not None:
            found[deployment] = witness
    return found


def _results(spark: SparkSession, warehouse: Warehouse, run_id: str) -> list[_Result]:
    """A summary of the rows that the run wrote to `diagnosed`, by deployment."""
    if not warehouse.exists(spark, DIAGNOSED):
        return []
    rows = warehouse.read(spark, DIAGNOSED).where(F.col("run_id") == run_id)
    by_deployment = rows.groupBy("deployment").agg(
        F.count(F.lit(1)).alias("row_count"),
        F.bool_or(F.expr("state IS NOT NULL OR failure IS NOT NULL")).alias("is_attempted"),
        F.max("failure").alias("failure"),
    )
    return [_Result(**row) for row in by_deployment.toArrow().to_pylist()]


def basis_of(options: Mapping[str, str | None], pack: SignaturePack) -> str:
    """Digest of everything on which a diagnosis depends, except the events.

    A state can be reused only if its basis is equal.
    """
    asked = json.dumps(dict(options), sort_keys=True)
    basis = "\0".join((CARRIED_VERSION, __version__, pack.digest, asked))
    return hashlib.sha256(basis.encode()).hexdigest()


def _history(spark: SparkSession, warehouse: Warehouse, work: Work) -> DataFrame:
    """Events of all published runs with their newest matches, plus the events of the batch."""
    if not len(work.batch.summaries):
        # The run may have rematched the stored events.
        return warehouse.current(
            spark, EVENTS.name, frame_of(spark, [*work.run_ids, work.header.run_id])
        )
    news = derive.events(work.batch).select(*EVENT_COLUMNS)
    if not work.runs:
        return news
    events = warehouse.current(spark, EVENTS.name, frame_of(spark, work.run_ids))
    return events.select(*EVENT_COLUMNS).unionByName(news)


def _previous_runs(
    spark: SparkSession, warehouse: Warehouse, work: Work, basis: str
) -> list[_PreviousRun]:
    """For each deployment of the batch with a usable state, the run that wrote this state.

    A state is usable if its basis is equal, if a diagnosis can continue from it (``in_time_from``
    is set), and if the last diagnosis of its deployment did not fail.
    """
    if not work.runs or not warehouse.exists(spark, DEPLOYMENTS):
        return []
    rows = warehouse.current(spark, DEPLOYMENTS.name, frame_of(spark, work.run_ids))
    of_use = rows.where((F.col("basis") == basis) & F.col("in_time_from").isNotNull())
    # The last state of a deployment whose diagnosis failed lacks the events of the failed run.
    failed = {one.deployment for one in work.runs[-1].undiagnosed}
    wanted = set(work.header.deployments) - failed
    found = of_use.select("deployment", "run_id").toArrow().to_pylist()
    return [_PreviousRun(**row) for row in found if row["deployment"] in wanted]


def _states(
    spark: SparkSession, warehouse: Warehouse, previous: Sequence[_PreviousRun]
) -> DataFrame:
    """Rows ``deployment, state``, with the state from which the diagnosis continues."""
    rows = _rows_of(spark, warehouse.read(spark, DEPLOYMENTS), previous)
    return rows.select("deployment", F.struct(*(field.name for field in STATE)).alias("state"))


def _rows_of(spark: SparkSession, rows: DataFrame, previous: Sequence[_PreviousRun]) -> DataFrame:
    """Rows that the ``previous`` runs wrote for their deployments; Delta skips other files."""
    pairs = pa.table(
        {
            "deployment": pa.array([one.deployment for one in previous], TEXT),
            "run_id": pa.array([one.run_id for one in previous], TEXT),
        }
    )
    of_runs = rows.where(F.col("run_id").isin(sorted({one.run_id for one in previous})))
    wanted = F.broadcast(spark.createDataFrame(pairs))
    return of_runs.join(wanted, ["deployment", "run_id"], "left_semi")


def _rows(rows: DataFrame, before: DataFrame | None, basis: str, run_id: str) -> DataFrame:
    """The rows to append to `diagnosed`.

    The status of each incident is relative to the incidents in ``before``, and null if ``before``
    is ``None``.
    """
    of_row = {
        "status": F.col("status"),
        "basis": F.lit(basis),
        "unknown_json": F.col("unknown_json"),
    }

    def filled(column: str) -> Column:
        whole = F.coalesce(f"{column}.whole_run_id", F.lit(run_id))
        values = of_row | {"whole_run_id": whole}
        names = [field.name for field in DIAGNOSED.type_of(column)]
        fields = [values.get(name, F.col(f"{column}.{name}")).alias(name) for name in names]
        return F.when(F.col(column).isNotNull(), F.struct(*fields)).alias(column)

    return _with_status(rows, before).select(
        F.lit(run_id).alias("run_id"),
        "deployment",
        filled("incident"),
        filled("state"),
        "failure",
    )


# --- over the deployments -----------------------------------------------------------------------


def _by_events(
    events: DataFrame,
    states: DataFrame,
    deployments: int,
    work: Work,
    witnesses: Mapping[str, Observation],
) -> DataFrame:
    """Diagnose the deployments in ``states`` from ``events``; return rows of ``DIAGNOSED_ROWS``.

    ``states`` contains each deployment and the state to continue from, or null for a full
    diagnosis.
    """
    touched = _of_deployments(events, states).select(*EVENT_COLUMNS, "state")
    # A deployment without notable events is diagnosed as well.
    nothing = (
        F.lit(None).cast(spark_type(column.type)).alias(column.name)
        for column in EVENTS.columns
        if column.name not in ("run_id", "deployment")
    )
    markers = states.select("*", *nothing).select(*EVENT_COLUMNS, "state")
    rows = touched.unionByName(markers).repartition(partitions_for(deployments), "deployment")
    ordered = rows.sortWithinPartitions("deployment", "path", "byte_offset")
    function = diagnosing_function(_diagnosis_config(work, RangePositions(), witnesses))
    return ordered.groupBy("deployment").applyInArrow(function, spark_schema(DIAGNOSED_ROWS))


def _by_news(
    work: Work, states: DataFrame, deployments: int, witnesses: Mapping[str, Observation]
) -> DataFrame:
    """Diagnose like ``_by_events``, but from the new events in the parcels of the batch."""
    parcels = work.batch.parcels("event").withColumnRenamed("rows", "events")
    touched = _of_deployments(parcels, states).select("deployment", "events", "state")
    markers = states.withColumn("events", F.lit(None).cast("binary"))
    tasks = partitions_for_news(deployments, work.batch.total_of("event_rows"))
    rows = touched.unionByName(markers.select(*touched.columns)).repartition(tasks, "deployment")
    function = parcels_function(_diagnosis_config(work, work.batch.positions, witnesses))
    return rows.groupBy("deployment").applyInArrow(function, spark_schema(DIAGNOSED_ROWS))


def _of_deployments(rows: DataFrame, states: DataFrame) -> DataFrame:
    names = F.broadcast(states.select("deployment"))
    no_state = F.lit(None).cast(spark_type(STATE))
    return rows.join(names, "deployment", "left_semi").withColumn("state", no_state)


def _diagnosis_config(
    work: Work, positions: RangePositions, witnesses: Mapping[str, Observation]
) -> DiagnosisConfig:
    asked = work.header.options
    return DiagnosisConfig(
        work.pack,
        work.options.settings,
        asked["flink_version"],
        _time(asked["since"]),
        _time(asked["until"]),
        positions,
        witnesses,
    )


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def partitions_for(deployments: int) -> int:
    """Two partitions per deployment, up to ``MAX_PARTITIONS``; one for a single deployment.

    With more partitions, fewer deployments share one. Diagnosing a deployment may take seconds.
    """
    return 1 if deployments == 1 else min(2 * deployments, MAX_PARTITIONS)


def partitions_for_news(deployments: int, events: int) -> int:
    """The number of partitions for a known number of events; at most one per deployment."""
    work = events + DEPLOYMENT_EVENTS * deployments
    return min(max(2, work // EVENTS_PER_TASK), MAX_PARTITIONS, deployments)


# --- status of an incident ---------------------------------------------------------------------


def _with_status(rows: DataFrame, before: DataFrame | None) -> DataFrame:
    """The rows with the column ``status``, which is null in every row if ``before`` is None."""
    if before is None:
        return rows.withColumn("status", F.lit(None).cast("string"))
    earlier = before.select(
        F.col("deployment").alias("known_deployment"),
        F.col("incident_id").alias("known_incident_id"),
        F.col("outcome").alias("was"),
        F.col("severity").alias("severity_before"),
        F.lit(True).alias("is_known"),
    )
    is_same = (F.col("deployment") == F.col("known_deployment")) & (
        F.col("incident.incident_id") == F.col("known_incident_id")
    )
    joined = rows.join(F.broadcast(earlier), is_same, "left")
    return joined.withColumn("status", _status()).select(*rows.columns, "status")


def _status() -> Column:
    """The status since the last run: new, ongoing, worse or resolved.

    Null for incidents that had already recovered, unless they are worse, and for verdicts that are
    not a failure.
    """
    outcome, was = _place("incident.outcome", OUTCOMES), _place("was", OUTCOMES)
    # Without a diagnosis the severity is null, which ranks below every severity.
    severity, before = (
        _place("incident.severity", SEVERITIES),
        _place("severity_before", SEVERITIES),
    )
    return (
        F.when(F.col("incident").isNull() | ~F.col("incident.verdict").isin(*FAILURES), None)
        .when(F.col("is_known").isNull(), "new")
        .when((outcome == 0) & (was > 0), "resolved")
        .when((outcome > was) | (severity < before), "worse")
        .when(outcome > 0, "ongoing")
    )


def _place(column: str, order: Sequence[str]) -> Column:
    """The index of the column's value in ``order``, or the length of ``order`` if it is null."""
    place: Column = F.lit(len(order))
    for index, value in enumerate(order):
        place = F.when(F.col(column) == value, index).otherwise(place)
    return place
