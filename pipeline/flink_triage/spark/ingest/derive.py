"""Derives the rows of the tables from a committed batch, with the columns in schema order."""

from __future__ import annotations

from itertools import islice

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from flink_triage.spark.ingest.batch import FILES_PER_PARCEL, Batch
from flink_triage.spark.ingest.ledger import finished_row
from flink_triage.spark.tables.arrow_types import spark_schema
from flink_triage.spark.tables.parcels import OPENED, opening_function
from flink_triage.spark.tables.schemas import LOG_FILES, LOG_VOLUME, STACK_TRACES
from flink_triage.spark.tables.table_spec import Table, arrow_schema


def _data_columns(table: Table) -> list[str]:
    return [name for name in table.column_names if name != "run_id"]


def _opened(batch: Batch, kind: str) -> DataFrame:
    """The rows in the batch's parcels of one kind."""
    function = opening_function(kind, batch.positions)
    return batch.parcels(kind).select("rows").mapInArrow(function, spark_schema(OPENED[kind]))


def log_files(spark: SparkSession, batch: Batch) -> DataFrame:
    """Rows of the ledger, one per path in the plan."""
    schema = arrow_schema(LOG_FILES)
    schema = schema.remove(schema.get_field_index("run_id"))
    rows = (finished_row(file, ranges) for file, ranges in batch.files_with_ranges())
    parts = [schema.empty_table()]
    while some := list(islice(rows, FILES_PER_PARCEL)):
        parts.append(pa.Table.from_pylist(some, schema))
    return spark.createDataFrame(pa.concat_tables(parts))


def events(batch: Batch) -> DataFrame:
    """Rows of `events`; ``line`` counts from the start of the file."""
    return _opened(batch, "event")


def stack_traces(batch: Batch) -> DataFrame:
    """Rows of `stack_traces`, one for each trace.

    Counts and times cover all ranges that are not ignored. The other columns come from the first
    range with the text of the trace, even if it is ignored, because later ranges of its task only
    count the trace.
    """
    rows = _opened(batch, "trace")
    counts = ("event_count", "first_seen_at", "last_seen_at")
    ignored = batch.positions.ignored
    if ignored:
        is_counted = ~F.col("range_number").isin(*ignored)
        rows = rows.withColumns({name: F.when(is_counted, F.col(name)) for name in counts})
    folded = {"fingerprint", *counts}
    shown = [name for name in _data_columns(STACK_TRACES) if name not in folded]
    has_exemplar = F.col("exemplar").isNotNull()
    grouped = rows.groupBy("fingerprint").agg(
        F.sum("event_count").alias("event_count"),
        F.min("first_seen_at").alias("first_seen_at"),
        F.max("last_seen_at").alias("last_seen_at"),
        F.min_by(F.struct(*shown), F.when(has_exemplar, F.col("range_number"))).alias("shown"),
    )
    counted = grouped.where(F.col("event_count").isNotNull())
    return counted.select("*", "shown.*").select(*_data_columns(STACK_TRACES))


def log_volume(batch: Batch) -> DataFrame:
    """Rows of `log_volume`, with the counts of all ranges that contain the same minute."""
    rows = _opened(batch, "volume")
    if not batch.is_cut:
        # Only ranges of one file can contain the same minute twice.
        return rows.select(*_data_columns(LOG_VOLUME))
    counted = rows.groupBy("deployment", "file_id", "path", "level", "minute").agg(
        F.sum("line_count").alias("line_count"),
        F.sum("byte_count").alias("byte_count"),
        F.sum("event_count").alias("event_count"),
    )
    return counted.select(*_data_columns(LOG_VOLUME))
