"""Packs rows of one kind into a parcel, an Arrow stream that Spark moves as one opaque value.

Workers stage rows as parcels, which are opened where table rows are required.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from flink_triage.settings import MIB
from flink_triage.spark.runtime.workers import ArrowFunction, in_worker
from flink_triage.spark.tables.arrow_types import COUNT, SMALL, TEXT
from flink_triage.spark.tables.row_codec import (
    RANGE_NUMBER,
    STAGED_EVENT,
    STAGED_REMATCH,
    STAGED_TRACE,
    STAGED_VOLUME,
)

# ``deployment`` is set only for events: each parcel of events belongs to one deployment.
STAGED = pa.schema([("kind", TEXT), ("deployment", TEXT), ("rows", pa.binary())])
# Limits of one parcel. ``PARCEL_ROWS`` ordinary rows take about 100 KB; ``PARCEL_BYTES`` is the
# approximate maximum size before compression.
PARCEL_ROWS = 2_000
PARCEL_BYTES = 8 * MIB

# The schema of the opened rows, by kind.
OPENED: Mapping[str, pa.Schema] = {
    "event": pa.schema(STAGED_EVENT),
    "trace": pa.schema([RANGE_NUMBER, *STAGED_TRACE]),
    "volume": pa.schema(STAGED_VOLUME),
    "rematch": STAGED_REMATCH,
}


def parcels_of(rows: pa.RecordBatch) -> Iterator[bytes]:
    """``rows``, divided into parcels of at most ``PARCEL_ROWS`` rows."""
    size = max(1, min(PARCEL_ROWS, len(rows) * PARCEL_BYTES // max(1, rows.nbytes)))
    for at in range(0, len(rows), size):
        yield packed(rows.schema, (rows.slice(at, size),))


def packed(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> bytes:
    """Rows as a compressed Arrow stream."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        for rows in batches:
            writer.write_batch(rows)
    return bytes(sink.getvalue())


def unpacked(parcel: bytes) -> pa.Table:
    """The rows in the Arrow stream that ``packed`` returned."""
    with pa.ipc.open_stream(parcel) as reader:
        return reader.read_all()


@dataclass(frozen=True, slots=True)
class RangePositions:
    """Positions of the ranges of a batch in their files; known once all ranges are read.

    ``lines_before`` maps the number of a range to the number of lines before it in the file, unless
    that is 0. ``ignored`` contains the numbers of the ranges whose rows are ignored, because they
    or an earlier range of the file could not be read.
    """

    lines_before: Mapping[int, int] = field(default_factory=dict)
    ignored: frozenset[int] = frozenset()


def in_file(rows: pa.Table, positions: RangePositions) -> pa.Table:
    """The rows without those of ignored ranges; ``line`` is counted from the start of the file."""
    if positions.ignored:
        is_out = pc.is_in(rows.column("range_number"), pa.array(positions.ignored, SMALL))
        rows = rows.filter(pc.invert(is_out))
    numbers = rows.column("range_number")
    rows = rows.drop_columns(["range_number"])
    if "line" not in rows.schema.names:
        return rows
    before = [positions.lines_before.get(number, 0) for number in numbers.to_pylist()]
    if not any(before):
        return rows
    place = rows.schema.get_field_index("line")
    lines = pc.add(rows.column("line"), pa.array(before, COUNT))
    return rows.set_column(place, rows.schema.field(place), lines)


def opening_function(kind: str, positions: RangePositions) -> ArrowFunction:
    """Function for ``mapInArrow`` that opens parcels of one kind in the column ``rows``."""
    return in_worker(__name__, "open_parcels", pickle.dumps((kind, positions)))


def open_parcels(batches: Iterator[pa.RecordBatch], shipped: bytes) -> Iterator[pa.RecordBatch]:
    """The rows of the parcels in the column ``rows``, in a worker."""
    kind, positions = pickle.loads(shipped)
    tables = (
        _opened(parcel.as_py(), OPENED[kind], positions)
        for batch in batches
        for parcel in batch.column("rows")
    )
    for table in _joined(tables):
        yield from table.combine_chunks().to_batches()


def _opened(parcel: bytes, schema: pa.Schema, positions: RangePositions) -> pa.Table:
    rows = unpacked(parcel)
    if RANGE_NUMBER.name in rows.schema.names and RANGE_NUMBER.name not in schema.names:
        rows = in_file(rows, positions)
    return rows.select(schema.names)


def _joined(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Join small tables: each batch that is passed to the JVM has a fixed cost."""
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
