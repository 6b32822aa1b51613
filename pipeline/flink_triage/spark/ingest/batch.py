"""Commits the staged rows and read positions of a run as one batch.

A batch is an append to `batches` with its number. Before the commit, a run has no effect. After the
commit, nothing is read again: the next run finishes the batch with the same code. If two runs
commit the same number, Delta accepts one, and the other plans again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from flink_triage.errors import CorruptStateError
from flink_triage.json_values import decode, encode
from flink_triage.local import Options
from flink_triage.signatures import SignaturePack
from flink_triage.spark.failpoints import failpoint
from flink_triage.spark.ingest.ledger import PLANNED
from flink_triage.spark.tables.parcels import STAGED, Standing, packed, unpacked
from flink_triage.spark.tables.published_runs import PublishedRun
from flink_triage.spark.tables.row_codec import array
from flink_triage.spark.tables.table_names import BATCHES
from flink_triage.spark.tables.warehouse import Warehouse

# Increase this when parcels of an earlier release can no longer be opened.
PARCEL_VERSION = 1
# Rows of files per parcel.
FILES_PER_PARCEL = 5_000


Kind = Literal["read", "again", "rematch"]


class Overtaken(Exception):
    """Another run committed the same number."""


@dataclass(frozen=True, slots=True)
class Header:
    """Header of a batch; ``work`` states whether it read logs or reuses stored events."""

    batch: int
    run_id: str
    work: Kind
    started_at: datetime
    options: Mapping[str, str | None]
    deployments: tuple[str, ...]
    file_count: int = 0
    inputs: tuple[str, ...] = ()
    parcel_version: int = PARCEL_VERSION


@dataclass(frozen=True, slots=True)
class Batch:
    """A committed batch.

    ``files`` are its planned ledger rows, ``summaries`` the summaries of its ranges by number, and
    ``standing`` the position of the ranges in their files. ``rows`` are the parcels that Spark
    opens.
    """

    header: Header
    files: tuple[dict[str, Any], ...]
    summaries: tuple[dict[str, Any], ...]
    standing: Standing
    rows: DataFrame

    @property
    def is_cut(self) -> bool:
        """Whether any file was read in several ranges."""
        return any(file["range_count"] > 1 for file in self.files)

    def ranges_of(self, file: Mapping[str, Any]) -> Sequence[dict[str, Any]]:
        return _ranges_of(file, self.summaries)

    def parcels(self, kind: str) -> DataFrame:
        """deployment, rows: the parcels of one kind."""
        return self.rows.where(F.col("kind") == kind).select("deployment", "rows")

    def total_of(self, name: str) -> int:
        return sum(int(summary[name] or 0) for summary in self.summaries)


@dataclass(frozen=True, slots=True)
class Work:
    """A batch to finish after ``runs`` were published, with the current pack and options.

    ``is_resumed``: another process may have started to finish it.
    """

    batch: Batch
    runs: tuple[PublishedRun, ...]
    pack: SignaturePack
    options: Options
    is_resumed: bool = False

    @property
    def header(self) -> Header:
        return self.batch.header

    @property
    def run_ids(self) -> list[str]:
        return [run.run_id for run in self.runs]


def commit(
    spark: SparkSession,
    warehouse: Warehouse,
    header: Header,
    files: Sequence[Mapping[str, Any]],
    staged: DataFrame | None,
) -> Batch:
    """Append the batch and open it; raises ``Overtaken`` if another run committed its number."""
    told: list[dict[str, object]] = [
        {"kind": "header", "rows": json.dumps(encode(header)).encode()}
    ]
    for at in range(0, len(files), FILES_PER_PARCEL):
        some = files[at : at + FILES_PER_PARCEL]
        columns = [
            array([row.get(name) for row in some], PLANNED.field(name).type)
            for name in PLANNED.names
        ]
        rows = pa.RecordBatch.from_arrays(columns, schema=PLANNED)
        told.append({"kind": "file", "rows": packed(PLANNED, (rows,))})
    frame = spark.createDataFrame(pa.Table.from_pylist(told, STAGED))
    if staged is not None:
        frame = frame.unionByName(staged)
    append_staged(warehouse, header, frame)
    failpoint("committed")
    batch = open_batch(spark, warehouse, header.batch)
    if batch.header.run_id != header.run_id:
        raise Overtaken
    return batch


def append_staged(warehouse: Warehouse, header: Header, staged: DataFrame, part: str = "") -> None:
    """Append rows of ``STAGED`` to the batch."""
    of_run = {"run_id": F.lit(header.run_id), "batch": F.lit(header.batch).cast("bigint")}
    warehouse.append(staged.withColumns(of_run), BATCHES, header.batch, part)


def header_of(spark: SparkSession, warehouse: Warehouse, number: int) -> Header:
    """The header; raises ``CorruptStateError`` if the batch has none."""
    rows = warehouse.read(spark, BATCHES).where(
        (F.col("batch") == number) & (F.col("kind") == "header")
    )
    return _only_header(warehouse, number, rows.select("rows").toArrow().column(0).to_pylist())


def _only_header(warehouse: Warehouse, number: int, found: Sequence[bytes]) -> Header:
    if len(found) != 1:
        raise CorruptStateError(
            f"{warehouse.location(BATCHES.name)}: has {len(found)} headers of batch {number}, "
            "expected 1; skip it with --skip-batch"
        )
    return decode(Header, json.loads(found[0]), "header")


def committed_after(spark: SparkSession, warehouse: Warehouse, number: int) -> list[int]:
    """Numbers of the unpublished batches after ``number``, in order."""
    if not warehouse.exists(spark, BATCHES):
        return []
    rows = warehouse.read(spark, BATCHES).where(F.col("batch") > number).select("batch").distinct()
    return sorted(rows.toArrow().column(0).to_pylist())


def open_batch(spark: SparkSession, warehouse: Warehouse, number: int) -> Batch:
    """Open the batch; raises ``CorruptStateError`` if it has no header."""
    rows = warehouse.read(spark, BATCHES).where(F.col("batch") == number)
    wanted = rows.where(F.col("kind").isin("header", "file", "summary")).select("kind", "rows")
    told: dict[str, list[bytes]] = {"header": [], "file": [], "summary": []}
    for row in wanted.toArrow().to_pylist():
        told[row["kind"]].append(row["rows"])
    header = _only_header(warehouse, number, told["header"])
    files = [row for parcel in told["file"] for row in unpacked(parcel).to_pylist()]
    summaries = [row for parcel in told["summary"] for row in unpacked(parcel).to_pylist()]
    summaries.sort(key=lambda row: int(row["range_number"]))
    files.sort(key=lambda row: str(row["path"]))
    for file in files:
        _fail_together(_ranges_of(file, summaries))
    return Batch(header, tuple(files), tuple(summaries), _standing(files, summaries), rows)


def _ranges_of(
    file: Mapping[str, Any], summaries: Sequence[dict[str, Any]]
) -> Sequence[dict[str, Any]]:
    first = file["first_range"]
    return summaries[first : first + file["range_count"]]


def _fail_together(ranges: Sequence[dict[str, Any]]) -> None:
    """Copy a failure to the later ranges of the same file, so that they are read again."""
    failure = None
    for summary in ranges:
        failure = failure or summary["failure"]
        if failure:
            number = summary["range_number"]
            summary |= dict.fromkeys(summary) | {"range_number": number, "failure": failure}


def _standing(files: Sequence[Mapping[str, Any]], summaries: Sequence[dict[str, Any]]) -> Standing:
    before: dict[int, int] = {}
    left_out: set[int] = set()
    for file in files:
        line = file["consumed_lines"]
        for summary in _ranges_of(file, summaries):
            if line:
                before[summary["range_number"]] = line
            if summary["failure"]:
                left_out.add(summary["range_number"])
            line += summary["newline_count"] or 0
    return Standing(before, frozenset(left_out))
