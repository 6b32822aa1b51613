"""Parcels: rows of one kind as one value, an Arrow stream that Spark moves without a look inside.

Workers stage what they read as parcels, which are opened where a table's rows are needed.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from flink_triage.settings import MIB
from flink_triage.spark.runtime.workers import ArrowFunction, in_worker
from flink_triage.spark.tables.row_types import COUNT, SMALL, TEXT
from flink_triage.spark.tables.rows import (
    RANGE_NUMBER,
    STAGED_EVENT,
    STAGED_REMATCH,
    STAGED_TRACE,
    STAGED_VOLUME,
)

# ``deployment`` is told where one parcel holds no other.
STAGED = pa.schema([("kind", TEXT), ("deployment", TEXT), ("rows", pa.binary())])
# Bounds what one value of a column holds: some 100 KB of ordinary rows, and never much more than
# so many bytes before they are compressed.
PARCEL_ROWS = 2_000
PARCEL_BYTES = 8 * MIB

# What the rows of a kind are once their parcels are open.
OPENED: Mapping[str, pa.Schema] = {
    "event": pa.schema(STAGED_EVENT),
    "trace": pa.schema([RANGE_NUMBER, *STAGED_TRACE]),
    "volume": pa.schema(STAGED_VOLUME),
    "rematch": STAGED_REMATCH,
}


def parcels_of(rows: pa.RecordBatch) -> Iterator[bytes]:
    """All of ``rows``, as parcels."""
    size = max(1, min(PARCEL_ROWS, len(rows) * PARCEL_BYTES // max(1, rows.nbytes)))
    for at in range(0, len(rows), size):
        yield packed(rows.schema, (rows.slice(at, size),))


def packed(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> bytes:
    """Rows as an Arrow stream, compressed."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        for rows in batches:
            writer.write_batch(rows)
    return bytes(sink.getvalue())


def unpacked(parcel: bytes) -> pa.Table:
    """What ``packed`` was given."""
    with pa.ipc.open_stream(parcel) as reader:
        return reader.read_all()


@dataclass(frozen=True, slots=True)
class Standing:
    """What the driver knows of ranges by their numbers, once all are read.

    ``lines_before``: of those that do not begin their file, how many lines of it stand before.
    ``left_out``: those of which no row counts, since they or what stands before them in the file
    could not be read.
    """

    lines_before: Mapping[int, int] = field(default_factory=dict)
    left_out: frozenset[int] = frozenset()


def in_file(rows: pa.Table, standing: Standing) -> pa.Table:
    """Rows that count; their ``line`` counts from the first of the file, not of their range."""
    if standing.left_out:
        is_out = pc.is_in(rows.column("range_number"), pa.array(standing.left_out, SMALL))
        rows = rows.filter(pc.invert(is_out))
    numbers = rows.column("range_number")
    rows = rows.drop_columns(["range_number"])
    if "line" not in rows.schema.names:
        return rows
    before = [standing.lines_before.get(number, 0) for number in numbers.to_pylist()]
    if not any(before):
        return rows
    place = rows.schema.get_field_index("line")
    lines = pc.add(rows.column("line"), pa.array(before, COUNT))
    return rows.set_column(place, rows.schema.field(place), lines)


def opening_function(kind: str, standing: Standing) -> ArrowFunction:
    """What ``mapInArrow`` calls on rows ``rows``, parcels of a kind, to get their rows."""
    return in_worker(__name__, "open_parcels", pickle.dumps((kind, standing)))


def open_parcels(batches: Iterator[pa.RecordBatch], shipped: bytes) -> Iterator[pa.RecordBatch]:
    """The rows of the parcels ``rows``, in a worker."""
    kind, standing = pickle.loads(shipped)
    tables = (
        _opened(parcel.as_py(), OPENED[kind], standing)
        for batch in batches
        for parcel in batch.column("rows")
    )
    for table in _joined(tables):
        yield from table.combine_chunks().to_batches()


def _opened(parcel: bytes, schema: pa.Schema, standing: Standing) -> pa.Table:
    rows = unpacked(parcel)
    if RANGE_NUMBER.name in rows.schema.names and RANGE_NUMBER.name not in schema.names:
        rows = in_file(rows, standing)
    return rows.select(schema.names)


def _joined(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Small ones together: what the JVM is handed has its price, however little it holds."""
    waiting: list[pa.Table] = []
    row_count = byte_count = 0
    for table in tables:
        waiting.append(table)
        row_count += len(table)
        byte_count += table.nbytes
        if row_count >= PARCEL_ROWS or byte_count >= PARCEL_BYTES:
            yield pa.concat_tables(waiting)
            waiting, row_count, byte_count = [], 0, 0
    if waiting:
        yield pa.concat_tables(waiting)
