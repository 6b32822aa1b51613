"""Matches a different signature pack against stored events, without reading logs."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from flink_triage.json_values import decode
from flink_triage.logs.layouts.header_shape import JSON
from flink_triage.match_stored import KnownTrace, rematch
from flink_triage.model import Frame, StackTrace, Throwable
from flink_triage.signatures import Matcher, SignaturePack
from flink_triage.spark.failpoints import failpoint
from flink_triage.spark.ingest.batch import Work, append_staged
from flink_triage.spark.runtime.workers import in_worker
from flink_triage.spark.tables.arrow_types import spark_schema
from flink_triage.spark.tables.parcels import STAGED, RangePositions, opening_function, parcels_of
from flink_triage.spark.tables.published_runs import frame_of
from flink_triage.spark.tables.row_codec import STAGED_REMATCH, array, match_value, observations_of
from flink_triage.spark.tables.schemas import EVENTS, LOG_VOLUME, REMATCHES, STACK_TRACES
from flink_triage.spark.tables.table_names import BATCHES
from flink_triage.spark.tables.views import CONTENTS
from flink_triage.spark.tables.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class Rematching:
    """Counts of stored events.

    ``events`` were matched again, and the matches of ``changed`` events differ. The full text of
    ``unknown`` events is not stored, because they were folded, because they share a trace with
    others, or because their trace was deleted. Their matches may therefore differ from those of a
    new read (see `match_stored`). ``without_text`` events were only counted when they were read,
    because they were not notable.
    """

    events: int
    changed: int
    unknown: int
    without_text: int

    @property
    def sentence(self) -> str:
        return (
            f"{self.events:,} stored events matched again: {self.changed:,} changed, "
            f"{self.unknown:,} are not fully stored and may have incomplete matches, "
            f"{self.without_text:,} were only counted when they were read"
        )


def rematch_batch(spark: SparkSession, warehouse: Warehouse, work: Work) -> Rematching:
    """Match the current signatures against stored events; append changed matches to `rematches`.

    The matches are staged in the batch, so that they are computed only once although they are read
    twice.
    """
    header = work.header
    append_staged(warehouse, header, _match_stored(spark, warehouse, work), "rematch")
    failpoint("rematched")
    kept = warehouse.read(spark, BATCHES).where(
        (F.col("batch") == header.batch) & (F.col("kind") == "rematch")
    )
    opened = opening_function("rematch", RangePositions())
    rows = kept.select("rows").mapInArrow(opened, spark_schema(STAGED_REMATCH))
    constants = {"signature_set": F.lit(work.pack.digest), "run_id": F.lit(header.run_id)}
    warehouse.append(rows.where("is_changed").withColumns(constants), REMATCHES, header.batch)
    return _count(spark, warehouse, rows, work.run_ids)


def _match_stored(spark: SparkSession, warehouse: Warehouse, work: Work) -> DataFrame:
    """Parcels with one row per stored event, and its matches with the current signatures."""
    runs = frame_of(spark, work.run_ids)
    events = warehouse.current(spark, EVENTS.name, runs)
    kept = ("throwables", "is_truncated", "exemplar", "event_count")
    traces = warehouse.read(spark, STACK_TRACES).select(
        "run_id", "fingerprint", F.struct(*kept).alias("known_trace")
    )
    layouts = warehouse.current(spark, CONTENTS, runs).groupBy("file_id", "generation")
    is_json = F.split_part(F.max("layout"), F.lit(" "), F.lit(1)) == JSON
    lines = layouts.agg(is_json.alias("is_on_one_line"))
    rows = events.join(traces, ["run_id", "fingerprint"], "left")
    rows = rows.join(F.broadcast(lines), ["file_id", "generation"], "left")
    shipped = pickle.dumps((work.pack, work.options.settings))
    match = in_worker(__name__, "match_batches", shipped)
    return rows.mapInArrow(match, spark_schema(STAGED))


def _count(
    spark: SparkSession, warehouse: Warehouse, staged: DataFrame, run_ids: Sequence[str]
) -> Rematching:
    """Count events, not rows: a folded row counts for all its events."""
    found = staged.agg(
        F.coalesce(F.sum("occurrences"), F.lit(0)).alias("events"),
        F.coalesce(F.sum(F.when(F.col("is_changed"), F.col("occurrences"))), F.lit(0)).alias(
            "changed"
        ),
        F.coalesce(F.sum("unknown_count"), F.lit(0)).alias("unknown"),
    )
    row = found.toArrow().to_pylist()[0]
    volume = warehouse.current(spark, LOG_VOLUME.name, frame_of(spark, run_ids))
    read = volume.agg(F.sum("event_count").alias("read")).toArrow().to_pylist()[0]["read"] or 0
    return Rematching(**row, without_text=max(0, read - row["events"]))


# --- in a worker ---------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _config(shipped: bytes) -> tuple[SignaturePack, Matcher]:
    pack, settings = pickle.loads(shipped)
    return pack, Matcher(pack, settings)


def match_batches(batches: Iterator[pa.RecordBatch], shipped: bytes) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        parcels = parcels_of(rematch_rows(batch, shipped))
        rows = [{"kind": "rematch", "rows": parcel} for parcel in parcels]
        yield pa.RecordBatch.from_pylist(rows, STAGED)


def rematch_rows(batch: pa.RecordBatch, shipped: bytes) -> pa.RecordBatch:
    """Match the signatures against events joined with their stored traces; one row per event."""
    failpoint("rematch.batch")
    pack, matcher = _config(shipped)
    rows = pa.Table.from_batches([batch])
    sides = rows.select(["file_id", "generation", "known_trace", "is_on_one_line"]).to_pylist()
    out: list[dict[str, Any]] = []
    for observation, side in zip(observations_of(rows), sides, strict=True):
        known = _known_trace(side["known_trace"])
        one_line = bool(side["is_on_one_line"])
        again = rematch(observation, known, matcher, pack, is_on_one_line=one_line)
        out.append(
            {
                "deployment": observation.deployment,
                "file_id": side["file_id"],
                "generation": side["generation"],
                "path": observation.event.path,
                "byte_offset": observation.event.offset,
                "matches": [match_value(match) for match in again.matches],
                "unknown_count": again.unknown_count,
                "occurrences": observation.occurrences,
                "is_changed": again.matches != observation.matches,
            }
        )
    columns = [array([row[field.name] for row in out], field.type) for field in STAGED_REMATCH]
    return pa.RecordBatch.from_arrays(columns, schema=STAGED_REMATCH)


def _known_trace(row: Mapping[str, Any] | None) -> KnownTrace | None:
    if row is None:
        return None
    throwables = tuple(map(_throwable, row["throwables"]))
    return KnownTrace(
        StackTrace(throwables, row["is_truncated"]), row["event_count"], row["exemplar"] or ""
    )


def _throwable(row: Mapping[str, Any]) -> Throwable:
    suppressed = json.loads(row["suppressed_json"] or "[]")
    return Throwable(
        type=row["type"],
        message=row["message"],
        frames=tuple(Frame(**frame) for frame in row["frames"]),
        omitted_frame_count=row["omitted_frame_count"],
        relation=row["relation"],
        is_serialized=row["is_serialized"],
        suppressed=tuple(
            tuple(decode(Throwable, t, "suppressed_json") for t in chain) for chain in suppressed
        ),
    )
