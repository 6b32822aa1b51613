"""Commits the staged rows and read positions of a run as one batch, and opens such batches.

A batch is a single append to `batches`, identified by its number; a rematch adds its matches with a
second append. Before the commit, a run stores none of these rows. If a run is killed after the
commit, the next run finishes the batch with the same code and does not read the logs again. If two
runs commit the same number, Delta accepts one, and the other plans again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from flink_triage.errors import CorruptStateError
from flink_triage.json_values import decode, encode
from flink_triage.local import Options
from flink_triage.signatures import SignaturePack
from flink_triage.spark.failpoints import failpoint
from flink_triage.spark.ingest.ledger import PLANNED, Row
from flink_triage.spark.ingest.read import SUMMARY
from flink_triage.spark.tables.parcels import STAGED, RangePositions, packed, unpacked
from flink_triage.spark.tables.published_runs import PublishedRun
from flink_triage.spark.tables.row_codec import RANGE_NUMBER, array
from flink_triage.spark.tables.table_names import BATCHES
from flink_triage.spark.tables.warehouse import Warehouse

# Increase this when parcels of an earlier release can no longer be opened.
PARCEL_VERSION = 1
# Number of file rows per parcel, and number of file rows that exist as Python values at a time.
FILES_PER_PARCEL = 5_000
SUMMARIES = pa.schema([RANGE_NUMBER, *SUMMARY])

Kind = Literal["read", "again", "rematch"]


class Overtaken(Exception):
    """Another run committed a batch with the same number."""


@dataclass(frozen=True, slots=True)
class Header:
    """Header of a batch.

    ``work`` is ``read`` if the run read logs, ``again`` if it diagnoses stored events, and
    ``rematch`` if it also matches the current signatures against them.
    """

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

    ``files`` contains one row per planned path, sorted by path, and ``summaries`` one row per
    range, sorted by range number. ``positions`` are the positions of the ranges in their files.
    ``rows`` contains the parcels (Arrow streams of rows), which Spark opens.
    """

    header: Header
    files: pa.Table
    summaries: pa.Table
    positions: RangePositions
    rows: DataFrame

    @property
    def is_cut(self) -> bool:
        """Whether any file was read in several ranges."""
        return bool(pc.any(pc.greater(self.files.column("range_count"), 1)).as_py())

    def files_with_ranges(self) -> Iterator[tuple[Row, Sequence[Row]]]:
        """Each planned row with the summaries of its ranges."""
        for at in range(0, len(self.files), FILES_PER_PARCEL):
            files = self.files.slice(at, FILES_PER_PARCEL).to_pylist()
            read = [file for file in files if file["range_count"]]
            first = min((file["first_range"] for file in read), default=0)
            end = max((file["first_range"] + file["range_count"] for file in read), default=0)
            summaries = self.summaries.slice(first, end - first).to_pylist()
            for file in files:
                begin = file["first_range"] - first if file["range_count"] else 0
                yield file, summaries[begin : begin + file["range_count"]]

    def parcels(self, kind: str) -> DataFrame:
        """The parcels of one kind, as rows ``deployment, rows``."""
        return self.rows.where(F.col("kind") == kind).select("deployment", "rows")

    def total_of(self, name: str) -> int:
        return pc.sum(self.summaries.column(name)).as_py() or 0


@dataclass(frozen=True, slots=True)
class Work:
    """A committed batch to finish, the runs published before it, and the current pack and options.

    ``is_resumed`` is true if an earlier run committed the batch, and may have started to finish it.
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
    files: Iterable[Row],
    staged: DataFrame | None,
) -> None:
    """Append the batch: its header, the planned rows ``files``, and the ``staged`` parcels."""
    parcels: list[dict[str, object]] = [
        {"kind": "header", "rows": json.dumps(encode(header)).encode()}
    ]
    left = iter(files)
    while some := list(islice(left, FILES_PER_PARCEL)):
        columns = [
            array([row.get(name) for row in some], PLANNED.field(name).type)
            for name in PLANNED.names
        ]
        rows = pa.RecordBatch.from_arrays(columns, schema=PLANNED)
        parcels.append({"kind": "file", "rows": packed(PLANNED, (rows,))})
    frame = spark.createDataFrame(pa.Table.from_pylist(parcels, STAGED))
    if staged is not None:
        frame = frame.unionByName(staged)
    append_staged(warehouse, header, frame)
    failpoint("committed")


def open_own(spark: SparkSession, warehouse: Warehouse, header: Header) -> Batch:
    """Open the batch of this run; raises ``Overtaken`` if another run committed its number."""
    batch = open_batch(spark, warehouse, header.batch)
    if batch.header.run_id != header.run_id:
        raise Overtaken
    return batch


def append_staged(warehouse: Warehouse, header: Header, staged: DataFrame, part: str = "") -> None:
    """Append the parcels ``staged``, as rows ``kind, deployment, rows``, to the batch."""
    of_run = {"run_id": F.lit(header.run_id), "batch": F.lit(header.batch).cast("bigint")}
    warehouse.append(staged.withColumns(of_run), BATCHES, header.batch, part)


def header_of(spark: SparkSession, warehouse: Warehouse, number: int) -> Header:
    """The header of the batch; raises ``CorruptStateError`` unless it has exactly one."""
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
    """The numbers of the committed batches after ``number``, in order."""
    if not warehouse.exists(spark, BATCHES):
        return []
    rows = warehouse.read(spark, BATCHES).where(F.col("batch") > number).select("batch").distinct()
    return sorted(rows.toArrow().column(0).to_pylist())


def open_batch(spark: SparkSession, warehouse: Warehouse, number: int) -> Batch:
    """Open the batch.

    Raises ``CorruptStateError`` unless it has exactly one header, and one summary per range.
    """
    rows = warehouse.read(spark, BATCHES).where(F.col("batch") == number)
    wanted = rows.where(F.col("kind").isin("header", "file", "summary")).select("kind", "rows")
    parcels: dict[str, list[bytes]] = {"header": [], "file": [], "summary": []}
    for row in wanted.toArrow().to_pylist():
        parcels[row["kind"]].append(row["rows"])
    header = _only_header(warehouse, number, parcels["header"])
    files = _joined(parcels["file"], PLANNED).sort_by("path")
    summaries = _joined(parcels["summary"], SUMMARIES).sort_by(RANGE_NUMBER.name)
    ranges = pc.sum(files.column("range_count")).as_py() or 0
    if len(summaries) != ranges:
        raise CorruptStateError(
            f"{warehouse.location(BATCHES.name)}: has {len(summaries)} summaries of batch "
            f"{number}, expected {ranges}; skip it with --skip-batch"
        )
    summaries = _failed_together(files, summaries)
    return Batch(header, files, summaries, _positions_of(files, summaries), rows)


def _joined(parcels: Sequence[bytes], schema: pa.Schema) -> pa.Table:
    tables = [schema.empty_table(), *map(unpacked, parcels)]
    return pa.concat_tables(tables, promote_options="default")


def _ranges_of(files: pa.Table) -> Iterator[range]:
    """The numbers of the ranges of each file."""
    columns = (files.column(name).to_pylist() for name in ("first_range", "range_count"))
    for first, count in zip(*columns, strict=True):
        yield range(first, first + count)


def _failed_together(files: pa.Table, summaries: pa.Table) -> pa.Table:
    """Copy a failure to the later ranges of the same file, so that they are read again."""
    if summaries.column("failure").null_count == len(summaries):
        return summaries
    rows = summaries.to_pylist()
    for numbers in _ranges_of(files):
        failure = None
        for number in numbers:
            failure = failure or rows[number]["failure"]
            if failure:
                rows[number] = {RANGE_NUMBER.name: number, "failure": failure}
    return pa.Table.from_pylist(rows, summaries.schema)


def _positions_of(files: pa.Table, summaries: pa.Table) -> RangePositions:
    before: dict[int, int] = {}
    ignored: set[int] = set()
    counts, failures = (summaries.column(name).to_pylist() for name in ("newline_count", "failure"))
    lines = files.column("consumed_lines").to_pylist()
    for numbers, line in zip(_ranges_of(files), lines, strict=True):
        for number in numbers:
            if line:
                before[number] = line
            if failures[number]:
                ignored.add(number)
            line += counts[number] or 0
    return RangePositions(before, frozenset(ignored))
