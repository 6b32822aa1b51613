"""Observations and traces to Arrow rows of the tables, and observations back.

The one boundary where text enters Arrow: lone surrogates, which Arrow refuses, are replaced here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from flink_triage.model import (
    Event,
    Fingerprint,
    Lifecycle,
    Match,
    Observation,
    StackTrace,
    Throwable,
    TraceRow,
    Volume,
)
from flink_triage.spark.schemas import EVENTS, LOG_VOLUME, STACK_TRACES, Table
from flink_triage.spark.values import to_plain

R = TypeVar("R")
Getter = Callable[[R], Any]

# What the worker cannot know yet is written natively, later.
LATER = frozenset({"run_id"})


def staged_type(table: Table) -> pa.StructType:
    """The struct in which a worker hands over rows of ``table``."""
    return pa.struct(
        [(column.name, column.type) for column in table.columns if column.name not in LATER]
    )


STAGED_EVENT = staged_type(EVENTS)
STAGED_TRACE = staged_type(STACK_TRACES)
STAGED_VOLUME = staged_type(LOG_VOLUME)


def event_rows(
    observations: Sequence[Observation], file_id: str, generation: int
) -> pa.StructArray:
    """Rows of `events`; ``line`` still counts from the first line of the range."""
    constants = {"file_id": file_id, "generation": generation}
    return _struct(STAGED_EVENT, observations, _EVENT_GETTERS, constants)


def trace_rows(traces: Sequence[TraceRow]) -> pa.StructArray:
    """Rows of `stack_traces`, one per distinct fingerprint of a range."""
    return _struct(STAGED_TRACE, traces, _TRACE_GETTERS, {})


def volume_rows(
    volumes: Sequence[Volume], deployment: str, file_id: str, path: str
) -> pa.StructArray:
    """Rows of `log_volume` of one range."""
    constants = {"deployment": deployment, "file_id": file_id, "path": path}
    return _struct(STAGED_VOLUME, volumes, _VOLUME_GETTERS, constants)


def array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """An Arrow array of any values, whatever code points their texts hold."""
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        return pa.array([scrub(value) for value in values], kind)


def scrub(value: Any) -> Any:
    """``value`` with lone surrogates in its texts replaced by U+FFFD."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, Mapping):
        return {scrub(key): scrub(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(scrub(item) for item in value)
    return value


def observations_of(rows: pa.Table) -> Iterator[Observation]:
    """The observations that rows of `events` were made of."""
    names = rows.column_names
    for batch in rows.to_batches():
        columns = [column.to_pylist() for column in batch.columns]
        for values in zip(*columns, strict=True):
            yield _observation(dict(zip(names, values, strict=True)))


def _struct(
    kind: pa.StructType,
    items: Sequence[R],
    getters: Mapping[str, Getter[R]],
    constants: Mapping[str, Any],
) -> pa.StructArray:
    columns = []
    for field in kind:
        if field.name in constants:
            columns.append(pa.repeat(pa.scalar(constants[field.name], field.type), len(items)))
        else:
            get = getters[field.name]
            columns.append(array([get(item) for item in items], field.type))
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


_LIFECYCLE_FIELDS = tuple(Lifecycle.__dataclass_fields__)


def _lifecycle_value(lifecycle: Lifecycle | None) -> dict[str, Any] | None:
    if lifecycle is None:
        return None
    return {name: getattr(lifecycle, name) for name in _LIFECYCLE_FIELDS}


def _throwable_values(trace: StackTrace) -> list[dict[str, Any]]:
    return [_throwable_value(throwable) for throwable in trace.throwables]


def _throwable_value(throwable: Throwable) -> dict[str, Any]:
    suppressed = to_plain(throwable.suppressed) if throwable.suppressed else None
    return {
        "type": throwable.type,
        "message": throwable.message,
        "frames": [to_plain(frame) for frame in throwable.frames],
        "omitted_frame_count": throwable.omitted_frame_count,
        "relation": throwable.relation,
        "is_serialized": throwable.is_serialized,
        "suppressed_json": json.dumps(suppressed) if suppressed else None,
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
    "lifecycle": lambda o: _lifecycle_value(o.event.lifecycle),
    "matches": lambda o: [match_value(match) for match in o.matches],
    "occurrences": lambda o: o.occurrences,
    "last_logged_at": lambda o: o.last_logged_at,
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
    "masked_text": lambda row: row.masked_text,
    "exemplar": lambda row: row.exemplar,
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


def _observation(row: Mapping[str, Any]) -> Observation:
    full = row["fingerprint"]
    identity = None
    if full is not None:
        identity = Fingerprint(full, row["fingerprint_root_cause"], row["fingerprint_user_frames"])
    return Observation(
        deployment=row["deployment"],
        event=_event(row),
        process=row["role"],
        host=row["host"],
        fingerprint=identity,
        exception_type=row["exception_type"],
        root_cause_type=row["root_cause_type"],
        root_cause_message=row["root_cause_message"],
        task=row["task"],
        subtask=row["subtask"],
        parallelism=row["parallelism"],
        attempt=row["attempt"],
        matches=_matches(row["matches"] or ()),
        first_user_frame=row["first_user_frame"],
        has_frames=row["has_frames"],
        product=row["product"],
        occurrences=row["occurrences"],
        last_logged_at=row["last_logged_at"],
        flink_version=row["flink_version"],
    )


def _event(row: Mapping[str, Any]) -> Event:
    return Event(
        path=row["path"],
        offset=row["byte_offset"],
        size_bytes=row["size_bytes"],
        line=row["line"],
        logged_at=row["logged_at"],
        level=row["level"],
        logger=row["logger"],
        thread=row["thread"],
        message=row["message"],
        continuation=row["continuation"],
        job_id=row["job_id"],
        lifecycle=Lifecycle(**row["lifecycle"]) if row["lifecycle"] else None,
        is_truncated=row["is_truncated"],
    )


def _matches(values: Iterable[Mapping[str, Any]]) -> tuple[Match, ...]:
    return tuple(Match(**{**value, "captures": dict(value["captures"])}) for value in values)
