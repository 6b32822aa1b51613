"""The stages on Spark: each takes DataFrames and returns one, in the order of its table's schema.

Python is entered with Arrow: over the bytes, over the parcels that are staged, and over the events
of a deployment.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from flink_triage.local import Options
from flink_triage.logs.storage import StorageOptions
from flink_triage.signatures import SignaturePack
from flink_triage.spark.diagnosing import (
    DIAGNOSED_ROWS,
    STATE,
    DiagnosisConfig,
    diagnosing_function,
    parcels_function,
)
from flink_triage.spark.ingest.ranges import RangeTask
from flink_triage.spark.ingest.read import WorkerConfig, reading_function
from flink_triage.spark.parcels import OPENED, STAGED, Standing, opening_function, unpacked
from flink_triage.spark.row_types import (
    CONFIG_CHANGE,
    EVIDENCE,
    TEXT,
    spark_schema,
    spark_type,
)
from flink_triage.spark.schemas import (
    DIAGNOSES,
    EVENTS,
    FLINK_CONFIG,
    LOG_VOLUME,
    STACK_TRACES,
    Table,
)
from flink_triage.spark.workers import rows_in_tasks

STAGED_SCHEMA = spark_schema(STAGED)
# A fleet's deployments share partitions: beyond this, starting tasks costs more than evening out.
MAX_PARTITIONS = 256
# A task takes some 0.1 s to start and to end, and diagnoses so many events in half a second; a
# deployment takes as long as so many events, whatever it says.
EVENTS_PER_TASK = 8_000
DEPLOYMENT_EVENTS = 1_000


def worker_config(pack: SignaturePack, options: Options, storage: StorageOptions) -> WorkerConfig:
    return WorkerConfig(pack, options.settings, options.timezone, storage)


def _data_columns(table: Table) -> list[str]:
    return [name for name in table.column_names if name != "run_id"]


def stage(spark: SparkSession, bins: list[list[RangeTask]], config: WorkerConfig) -> DataFrame:
    """Staged rows of all ranges: one partition per bin."""
    rows = rows_in_tasks(spark, [pickle.dumps(tasks) for tasks in bins])
    return rows.mapInArrow(reading_function(config), STAGED_SCHEMA)


def _parcels(staged: DataFrame, kind: str) -> DataFrame:
    return staged.where(F.col("kind") == kind)


def _opened(staged: DataFrame, kind: str, standing: Standing) -> DataFrame:
    """The rows of a kind."""
    function = opening_function(kind, standing)
    return _parcels(staged, kind).select("rows").mapInArrow(function, spark_schema(OPENED[kind]))


def summaries(staged: DataFrame, tasks: Sequence[RangeTask]) -> list[dict[str, Any]]:
    """One summary per range, in order of their numbers, on the driver.

    A range behind one that failed states the same failure: it will be read again with it.
    """
    parcels = _parcels(staged, "summary").select("rows").toArrow().column("rows").to_pylist()
    rows = (row for parcel in parcels for row in unpacked(parcel).to_pylist())
    in_order = sorted(rows, key=lambda row: int(row["range_number"]))
    found: list[dict[str, Any]] = []
    failure = None
    for task, row in zip(tasks, in_order, strict=True):
        failure = row["failure"] if task.is_first else failure or row["failure"]
        if failure:
            row = dict.fromkeys(row) | {"range_number": task.number, "failure": failure}
        found.append(row)
    return found


def standing_of(tasks: Sequence[RangeTask], found: Sequence[Mapping[str, Any]]) -> Standing:
    """How the ranges stand in their files, by their summaries."""
    before: dict[int, int] = {}
    line = 0
    for task, summary in zip(tasks, found, strict=True):
        if task.is_first:
            line = task.first_line
        if line:
            before[task.number] = line
        line += summary["newline_count"] or 0
    return Standing(before, frozenset(row["range_number"] for row in found if row["failure"]))


def events(staged: DataFrame, standing: Standing) -> DataFrame:
    """Rows of `events`, with lines counted from the first of the file."""
    return _opened(staged, "event", standing)


def parcels(staged: DataFrame) -> DataFrame:
    """deployment, events: the same events as parcels, for the diagnosis."""
    return _parcels(staged, "event").select("deployment", F.col("rows").alias("events"))


def stack_traces(staged: DataFrame, standing: Standing) -> DataFrame:
    """Rows of `stack_traces`: the first range that saw a trace tells all but the counts.

    A range that is left out may tell of a trace that another has only counted.
    """
    rows = _opened(staged, "trace", standing)
    counts = ("event_count", "first_seen_at", "last_seen_at")
    if standing.left_out:
        is_counted = ~F.col("range_number").isin(*standing.left_out)
        rows = rows.withColumns({name: F.when(is_counted, F.col(name)) for name in counts})
    folded = {"fingerprint", *counts}
    shown = [name for name in _data_columns(STACK_TRACES) if name not in folded]
    tells_all = F.col("exemplar").isNotNull()
    grouped = rows.groupBy("fingerprint").agg(
        F.sum("event_count").alias("event_count"),
        F.min("first_seen_at").alias("first_seen_at"),
        F.max("last_seen_at").alias("last_seen_at"),
        F.min_by(F.struct(*shown), F.when(tells_all, F.col("range_number"))).alias("shown"),
    )
    counted = grouped.where(F.col("event_count").isNotNull())
    return counted.select("*", "shown.*").select(*_data_columns(STACK_TRACES))


def log_volume(staged: DataFrame, standing: Standing, tasks: Sequence[RangeTask]) -> DataFrame:
    """Rows of `log_volume`."""
    rows = _opened(staged, "volume", standing)
    if all(task.is_first for task in tasks):
        # A minute is told twice only where two ranges of a file hold it.
        return rows.select(*_data_columns(LOG_VOLUME))
    counted = rows.groupBy("deployment", "file_id", "path", "level", "minute").agg(
        F.sum("line_count").alias("line_count"),
        F.sum("byte_count").alias("byte_count"),
        F.sum("event_count").alias("event_count"),
    )
    return counted.select(*_data_columns(LOG_VOLUME))


def matches(staged: DataFrame, standing: Standing) -> DataFrame:
    """Rows of `matches`."""
    return _opened(staged, "match", standing)


def diagnosed(
    events: DataFrame,
    states: DataFrame,
    partitions: int,
    pack: SignaturePack,
    options: Options,
) -> DataFrame:
    """Rows of ``DIAGNOSED_ROWS`` for the deployments of ``states``, out of ``events``.

    ``states``: deployment, and the state that its diagnosis goes on from, null for one in whole.
    """
    columns = _data_columns(EVENTS)
    touched = _of_deployments(events, states).select(*columns, "state")
    # A deployment whose logs hold nothing notable is healthy, and is said to be.
    nothing = (
        F.lit(None).cast(spark_type(column.type)).alias(column.name)
        for column in EVENTS.columns
        if column.name not in ("run_id", "deployment")
    )
    markers = states.select("*", *nothing).select(*columns, "state")
    rows = touched.unionByName(markers).repartition(partitions, "deployment")
    ordered = rows.sortWithinPartitions("deployment", "path", "byte_offset")
    function = diagnosing_function(_diagnosis_config(pack, options, Standing()))
    return ordered.groupBy("deployment").applyInArrow(function, spark_schema(DIAGNOSED_ROWS))


def diagnosed_parcels(
    parcels: DataFrame,
    standing: Standing,
    states: DataFrame,
    partitions: int,
    pack: SignaturePack,
    options: Options,
) -> DataFrame:
    """The same, out of the parcels that were staged."""
    touched = _of_deployments(parcels, states).select("deployment", "events", "state")
    markers = states.withColumn("events", F.lit(None).cast("binary"))
    rows = touched.unionByName(markers).repartition(partitions, "deployment")
    function = parcels_function(_diagnosis_config(pack, options, standing))
    return rows.groupBy("deployment").applyInArrow(function, spark_schema(DIAGNOSED_ROWS))


def _of_deployments(rows: DataFrame, states: DataFrame) -> DataFrame:
    names = F.broadcast(states.select("deployment"))
    no_state = F.lit(None).cast(spark_type(STATE))
    return rows.join(names, "deployment", "left_semi").withColumn("state", no_state)


def _diagnosis_config(pack: SignaturePack, options: Options, standing: Standing) -> DiagnosisConfig:
    return DiagnosisConfig(
        pack, options.settings, options.flink_version, options.since, options.until, standing
    )


def partitions_for(deployments: int) -> int:
    """Enough that hashing seldom puts two deployments together: one alone takes seconds."""
    return 1 if deployments == 1 else min(2 * deployments, MAX_PARTITIONS)


def partitions_for_news(deployments: int, events: int) -> int:
    """Fewer, where what there is to diagnose is known."""
    work = events + DEPLOYMENT_EVENTS * deployments
    return min(max(2, work // EVENTS_PER_TASK), MAX_PARTITIONS, deployments)


# What `diagnoses` takes from the JSON of an incident.
_DIAGNOSIS_JSON = pa.struct(
    [
        *((column.name, column.type) for column in DIAGNOSES.columns[3:-4]),
        (
            "remediation",
            pa.struct(
                [
                    ("summary", TEXT),
                    ("steps", pa.list_(TEXT)),
                    ("config", pa.list_(CONFIG_CHANGE)),
                    ("risk", TEXT),
                ]
            ),
        ),
    ]
)
assert EVIDENCE in [field.type.value_type for field in _DIAGNOSIS_JSON if field.name == "evidence"]


def diagnoses(incidents: DataFrame) -> DataFrame:
    """Rows of `diagnoses`, out of the incidents that hold them."""
    shape = f"struct<diagnoses: array<{spark_type(_DIAGNOSIS_JSON)}>>"
    parsed = F.from_json("incident_json", shape)
    rows = incidents.select(
        "deployment", "incident_id", F.explode(parsed["diagnoses"]).alias("diagnosis")
    )
    rows = rows.select("deployment", "incident_id", "diagnosis.*").select(
        "*",
        F.col("remediation.summary").alias("remediation_summary"),
        "remediation.steps",
        "remediation.config",
        "remediation.risk",
    )
    return rows.select(*_data_columns(DIAGNOSES))


def flink_config(staged: DataFrame, standing: Standing) -> DataFrame:
    """Rows of `flink_config`: what the events say last of each option."""
    return last_words(_opened(staged, "option", standing), _data_columns(FLINK_CONFIG))


def last_words(printed: DataFrame, columns: Sequence[str], *then_by: str) -> DataFrame:
    """Of each option of a deployment the row printed last, a JobManager's before others'."""
    is_manager = F.coalesce(F.col("role") == "jobmanager", F.lit(False))
    word = F.struct(is_manager, "logged_at", "path", "line", *then_by)
    others = [name for name in columns if name not in ("deployment", "key")]
    latest = printed.groupBy("deployment", "key").agg(
        F.max_by(F.struct(*others), word).alias("said")
    )
    return latest.select("*", "said.*").select(*columns)
