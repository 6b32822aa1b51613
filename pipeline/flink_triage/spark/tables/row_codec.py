"""Converts observations, traces and volumes to Arrow rows, and event rows back to observations.

Text from logs enters Arrow here, so lone surrogates, which Arrow rejects, are replaced here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from datetime import UTC, datetime, timedelta
from itertools import accumulate, islice, pairwise
from operator import attrgetter
from types import MappingProxyType
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from flink_triage.json_values import decode, encode
from flink_triage.model import (
    Event,
    Fingerprint,
    Lifecycle,
    Match,
    Observation,
    StackTrace,
    Throwable,
    TraceCount,
    TraceRow,
    Volume,
)
from flink_triage.reach import Spread
from flink_triage.spark.tables.arrow_types import (
    COUNT,
    FLAG,
    LIFECYCLE,
    MATCH,
    SMALL,
    SPREAD,
    TEXT,
)
from flink_triage.spark.tables.schemas import EVENTS, LOG_VOLUME, REMATCHES, STACK_TRACES
from flink_triage.spark.tables.table_spec import Table
from flink_triage.traces import mask, render

R = TypeVar("R")
Getter = Callable[[R], Any]

# Columns that are unknown in the worker; Spark adds them later.
LATER = frozenset({"run_id"})


def staged_type(table: Table) -> pa.StructType:
    """The struct in which a worker emits rows of ``table``."""
    return pa.struct(
        [(column.name, column.type) for column in table.columns if column.name not in LATER]
    )


STAGED_EVENT = staged_type(EVENTS)
STAGED_TRACE = staged_type(STACK_TRACES)
STAGED_VOLUME = staged_type(LOG_VOLUME)
RANGE_NUMBER = pa.field("range_number", SMALL)
STAGED_REMATCH = pa.schema(
    [
        *(field for field in staged_type(REMATCHES) if field.name != "signature_set"),
        ("occurrences", COUNT),
        ("is_changed", FLAG),
    ]
)


def event_rows(
    observations: Sequence[Observation], file_id: str | pa.Array, generation: int | pa.Array
) -> pa.StructArray:
    """Rows of `events`; ``line`` still counts from the first line of the range.

    ``file_id`` and ``generation`` are one value for all observations, or one per observation.
    """
    constants = {"file_id": file_id, "generation": generation}
    return _struct(STAGED_EVENT, observations, _EVENT_GETTERS, constants, _EVENT_ARRAYS)


def trace_rows(traces: Sequence[TraceRow]) -> pa.StructArray:
    """Rows of `stack_traces` with all columns except ``run_id``."""
    return _struct(STAGED_TRACE, traces, _TRACE_GETTERS, {})


def count_rows(counts: Sequence[TraceCount]) -> pa.StructArray:
    """Rows of `stack_traces` with only the fingerprint, the count, and the times.

    Another row of the batch has the other columns.
    """
    return _struct(STAGED_TRACE, counts, _COUNT_GETTERS, {})


def volume_rows(
    volumes: Sequence[Volume],
    deployment: pa.Array,
    file_id: pa.Array,
    path: pa.Array,
) -> pa.StructArray:
    """Rows of `log_volume`; the other arguments have one value per volume."""
    constants = {"deployment": deployment, "file_id": file_id, "path": path}
    return _struct(STAGED_VOLUME, volumes, _VOLUME_GETTERS, constants)


def array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """An Arrow array of any values; lone surrogates in strings are replaced."""
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        return pa.array([scrub(value) for value in values], kind)


def scrub(value: Any) -> Any:
    """``value`` with lone surrogates in its strings replaced by U+FFFD."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, Mapping):
        return {scrub(key): scrub(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(scrub(item) for item in value)
    return value


def observations_of(rows: pa.Table) -> Iterator[Observation]:
    """The observations in rows of `events`."""
    for batch in rows.to_batches():
        yield from map(_observation, *(_values(batch.column(name)) for name in _READ))


def _struct(
    kind: pa.StructType,
    items: Sequence[R],
    getters: Mapping[str, Getter[R] | None],
    constants: Mapping[str, Any],
    arrays: Mapping[str, Callable[[Sequence[R]], pa.Array]] = MappingProxyType({}),
) -> pa.StructArray:
    columns = []
    for field in kind:
        if field.name in arrays:
            columns.append(arrays[field.name](items))
        elif field.name in constants:
            value = constants[field.name]
            is_of_each = isinstance(value, pa.Array)
            columns.append(
                value if is_of_each else pa.repeat(pa.scalar(value, field.type), len(items))
            )
        elif (get := getters[field.name]) is not None:
            columns.append(array([get(item) for item in items], field.type))
        else:
            columns.append(pa.nulls(len(items), field.type))
    return pa.StructArray.from_arrays(columns, fields=list(kind))


def match_value(match: Match) -> dict[str, Any]:
    return {
        "signature": match.signature,
        "alternative": match.alternative,
        "captures": list(match.captures.items()),
        "excerpt": match.excerpt,
        "depth_from_root": match.depth_from_root,
        "line_offset": match.line_offset,
    }


def _match_arrays(observations: Sequence[Observation]) -> pa.Array:
    matches = [match for observation in observations for match in observation.matches]
    columns = []
    for field in MATCH:
        if field.name == "captures":
            keys = [key for match in matches for key in match.captures]
            values = [value for match in matches for value in match.captures.values()]
            offsets = _offsets(match.captures for match in matches)
            columns.append(pa.MapArray.from_arrays(offsets, array(keys, TEXT), array(values, TEXT)))
        else:
            get = attrgetter(field.name)
            columns.append(array([get(match) for match in matches], field.type))
    structs = pa.StructArray.from_arrays(columns, fields=list(MATCH))
    return pa.ListArray.from_arrays(
        _offsets(observation.matches for observation in observations), structs, pa.list_(MATCH)
    )


def _offsets(items: Iterable[Sized]) -> pa.Array:
    return pa.array(list(accumulate(map(len, items), initial=0)), pa.int32())


def _lifecycle_array(observations: Sequence[Observation]) -> pa.Array:
    lifecycles = [observation.event.lifecycle for observation in observations]
    columns = [
        array([None if one is None else getattr(one, field.name) for one in lifecycles], field.type)
        for field in LIFECYCLE
    ]
    is_null = pa.array([one is None for one in lifecycles], pa.bool_())
    return pa.StructArray.from_arrays(columns, fields=list(LIFECYCLE), mask=is_null)


def _throwable_values(trace: StackTrace) -> list[dict[str, Any]]:
    return [_throwable_value(throwable) for throwable in trace.throwables]


def _throwable_value(throwable: Throwable) -> dict[str, Any]:
    suppressed = encode(throwable.suppressed) if throwable.suppressed else None
    return {
        "type": throwable.type,
        "message": throwable.message,
        "frames": [encode(frame) for frame in throwable.frames],
        "omitted_frame_count": throwable.omitted_frame_count,
        "relation": throwable.relation,
        "is_serialized": throwable.is_serialized,
        "suppressed_json": json.dumps(suppressed) if suppressed else None,
    }


# Nested columns are built as a whole, because one dict per value would dominate the run time.
_EVENT_ARRAYS: Mapping[str, Callable[[Sequence[Observation]], pa.Array]] = {
    "lifecycle": _lifecycle_array,
    "matches": _match_arrays,
}
_EVENT_GETTERS: Mapping[str, Getter[Observation]] = {
    "deployment": lambda o: o.deployment,
    "path": lambda o: o.event.path,
    "byte_offset": lambda o: o.event.offset,
    "size_bytes": lambda o: o.event.size_bytes,
    "line": lambda o: o.event.line,
    "logged_at": lambda o: o.event.logged_at,
    "level": lambda o: o.event.level,
    "logger": lambda o: o.event.logger,
    "thread": lambda o: o.event.thread,
    "message": lambda o: o.event.message,
    "continuation": lambda o: o.event.continuation,
    "exception_type": lambda o: o.exception_type,
    "root_cause_type": lambda o: o.root_cause_type,
    "root_cause_message": lambda o: o.root_cause_message,
    "fingerprint": lambda o: o.fingerprint.full if o.fingerprint else None,
    "fingerprint_root_cause": lambda o: o.fingerprint.root_cause if o.fingerprint else None,
    "fingerprint_user_frames": lambda o: o.fingerprint.user_frames if o.fingerprint else None,
    "first_user_frame": lambda o: o.first_user_frame,
    "has_frames": lambda o: o.has_frames,
    "product": lambda o: o.product,
    "flink_version": lambda o: o.flink_version,
    "job_id": lambda o: o.event.job_id,
    "task": lambda o: o.task,
    "subtask": lambda o: o.subtask,
    "parallelism": lambda o: o.parallelism,
    "attempt": lambda o: o.attempt,
    "host": lambda o: o.host,
    "role": lambda o: o.process,
    "occurrences": lambda o: o.occurrences,
    "last_logged_at": lambda o: o.last_logged_at,
    "spread": lambda o: encode(o.spread),
    "is_truncated": lambda o: o.event.is_truncated,
}

_TRACE_GETTERS: Mapping[str, Getter[TraceRow]] = {
    "fingerprint": lambda row: row.fingerprint.full,
    "fingerprint_root_cause": lambda row: row.fingerprint.root_cause,
    "fingerprint_user_frames": lambda row: row.fingerprint.user_frames,
    "exception_type": lambda row: row.trace.thrown.type,
    "root_cause_type": lambda row: row.trace.root_cause.type,
    "root_cause_message": lambda row: row.trace.root_cause.message,
    "throwables": lambda row: _throwable_values(row.trace),
    "is_truncated": lambda row: row.trace.is_truncated,
    "masked_text": lambda row: mask(render(row.trace)),
    "exemplar": lambda row: row.exemplar,
    "event_count": lambda row: row.count,
    "first_seen_at": lambda row: row.first_seen_at,
    "last_seen_at": lambda row: row.last_seen_at,
}

_COUNT_GETTERS: Mapping[str, Getter[TraceCount] | None] = {
    **dict.fromkeys(_TRACE_GETTERS),
    "fingerprint": lambda row: row.fingerprint.full,
    "event_count": lambda row: row.count,
    "first_seen_at": lambda row: row.first_seen_at,
    "last_seen_at": lambda row: row.last_seen_at,
}

_VOLUME_GETTERS: Mapping[str, Getter[Volume]] = {
    "level": lambda volume: volume.level,
    "minute": lambda volume: volume.minute,
    "line_count": lambda volume: volume.line_count,
    "byte_count": lambda volume: volume.byte_count,
    "event_count": lambda volume: volume.event_count,
}


# --- from rows to observations -----------------------------------------------------------------

# The columns passed to `_observation`, in the order of its parameters.
_READ = (
    "deployment",
    "path",
    "byte_offset",
    "size_bytes",
    "line",
    "logged_at",
    "level",
    "logger",
    "thread",
    "message",
    "continuation",
    "job_id",
    "lifecycle",
    "is_truncated",
    "role",
    "host",
    "fingerprint",
    "fingerprint_root_cause",
    "fingerprint_user_frames",
    "exception_type",
    "root_cause_type",
    "root_cause_message",
    "task",
    "subtask",
    "parallelism",
    "attempt",
    "matches",
    "first_user_frame",
    "has_frames",
    "product",
    "occurrences",
    "last_logged_at",
    "flink_version",
    "spread",
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _observation(deployment: str, *values: Any) -> Observation:
    event, (process, host, full, root_cause, user_frames) = values[:13], values[13:18]
    identity = None if full is None else Fingerprint(full, root_cause, user_frames)
    return Observation(deployment, Event(*event), process, host, identity, *values[18:])


def _values(column: pa.Array) -> list[Any]:
    """The values of a column of `events`, as the model represents them."""
    if pa.types.is_timestamp(column.type):
        return [
            None if at is None else _EPOCH + timedelta(microseconds=at)
            for at in column.cast(pa.int64()).to_pylist()
        ]
    if pa.types.is_string(column.type):
        return _texts(column)
    if column.type == SPREAD:
        return [value and decode(Spread, value, "spread") for value in column.to_pylist()]
    if pa.types.is_struct(column.type):
        rows = zip(*map(_values, column.flatten()), strict=True)
        return [Lifecycle(*one) if one[0] is not None else None for one in rows]
    if pa.types.is_list(column.type):
        return _matches(column)
    found: list[Any] = column.to_pylist()
    return found


def _texts(column: pa.StringArray) -> list[str | None]:
    """The strings of a column, one object per distinct string, because most occur in many rows."""
    encoded = column.dictionary_encode()
    words = encoded.dictionary.to_pylist()
    if 2 * len(words) < len(column):
        words = list(map(sys.intern, words))
    return [None if at is None else words[at] for at in encoded.indices.to_pylist()]


def _matches(column: pa.ListArray) -> list[tuple[Match, ...]]:
    fields = [
        _captures(field) if pa.types.is_map(field.type) else _values(field)
        for field in column.flatten().flatten()
    ]
    matches = map(Match, *fields)
    sizes = pc.list_value_length(column).to_pylist()
    return [tuple(islice(matches, size or 0)) for size in sizes]


def _captures(column: pa.MapArray) -> list[dict[str, str]]:
    offsets = column.offsets.to_pylist()
    keys, values = (
        child.slice(offsets[0], offsets[-1] - offsets[0]).to_pylist()
        for child in (column.keys, column.items)
    )
    pairs = zip(keys, values, strict=True)
    return [dict(islice(pairs, end - start)) for start, end in pairwise(offsets)]
