"""Reads numbered byte ranges into staged Arrow rows, in a Python task.

One open file handle is used to verify the file, to scan the range, and to compute the digests. The
staged rows therefore describe the bytes that were read, even if the path is renamed or replaced in
the meantime.
"""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from flink_triage.analyzer import Analyzer, collector_at_rest
from flink_triage.diagnosis.timeline.fold import Folder
from flink_triage.logs.inputs.archives import DamagedMember
from flink_triage.logs.inputs.storage import NO_OPTIONS, StorageOptions, is_object, use_options
from flink_triage.logs.readers.byte_account import Tally
from flink_triage.model import Observation, RangeScan
from flink_triage.settings import Settings
from flink_triage.signatures import SignaturePack
from flink_triage.spark.failpoints import failpoint
from flink_triage.spark.ingest.content_identity import OpenFile
from flink_triage.spark.ingest.ranges import RangeTask, pack_tasks
from flink_triage.spark.runtime.workers import in_worker, rows_in_tasks
from flink_triage.spark.tables.arrow_types import COUNT, PROBLEM, SMALL, TEXT, spark_schema
from flink_triage.spark.tables.parcels import PARCEL_ROWS, STAGED, parcels_of
from flink_triage.spark.tables.row_codec import (
    RANGE_NUMBER,
    array,
    count_rows,
    event_rows,
    trace_rows,
    volume_rows,
)

SUMMARY = pa.struct(
    [
        ("newline_count", COUNT),
        ("event_bytes", COUNT),
        ("counted_bytes", COUNT),
        ("quarantined_bytes", COUNT),
        ("held_back_bytes", COUNT),
        ("redactions", COUNT),
        ("redactions_by_kind", pa.map_(TEXT, COUNT)),
        ("decode_errors", COUNT),
        ("truncated", COUNT),
        ("event_count", COUNT),
        ("trace_count", COUNT),
        ("problems", pa.list_(PROBLEM)),
        ("failure", TEXT),
        ("consumed_bytes", COUNT),
        ("head_digests", pa.binary()),
        ("window_digest", pa.binary()),
        ("event_rows", COUNT),
        ("skipped", TEXT),
    ]
)
# A range emits its events when it has collected this many, although later events could still be
# folded into them.
HANDED_OVER = 4_096
# Rows of many small files are joined up to this count.
JOINED_ROWS = 1_000
# Maximum number of rows that exist as Python values at a time: a trace takes about 10 KB until it
# is converted to a row.
BATCH_ROWS = 2 * PARCEL_ROWS
# Number of tasks that are pickled together.
PICKLED_TASKS = 1_000


@dataclass(frozen=True, slots=True)
class Part:
    """Items of one kind from one range, before they become rows."""

    kind: Literal["event", "trace", "count", "volume", "summary"]
    task: RangeTask
    items: Sequence[Any]


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    pack: SignaturePack
    settings: Settings
    timezone: tzinfo
    storage: StorageOptions = NO_OPTIONS


def read_ranges(spark: SparkSession, tasks: Sequence[RangeTask], config: WorkerConfig) -> DataFrame:
    """Read the ranges, one partition per bin; return parcels as rows ``kind, deployment, rows``."""
    rows = rows_in_tasks(spark, map(_shipped, pack_tasks(tasks)))
    function = in_worker(__name__, "stage_bins", pickle.dumps(config))
    return rows.mapInArrow(function, spark_schema(STAGED))


def _shipped(tasks: Sequence[RangeTask]) -> bytes:
    """The compressed pickles of the ranges, which are pickled in portions.

    A pickler keeps all objects that it has pickled in memory.
    """
    at_once = range(0, len(tasks), PICKLED_TASKS)
    pickles = (pickle.dumps(tasks[at : at + PICKLED_TASKS]) for at in at_once)
    return zlib.compress(b"".join(pickles), level=1)


def _unshipped(shipped: bytes) -> Iterator[RangeTask]:
    pickles = io.BytesIO(zlib.decompress(shipped))
    while pickles.tell() < len(pickles.getbuffer()):
        yield from pickle.load(pickles)


_ANALYZERS: dict[bytes, Analyzer] = {}


def stage_bins(
    batches: Iterator[pa.RecordBatch], shipped_config: bytes
) -> Iterator[pa.RecordBatch]:
    """Read the lists of ranges in rows ``id, work``, and yield their parcels; runs in a worker."""
    for batch in batches:
        for work in batch.column("work").to_pylist():
            with collector_at_rest():
                yield from batches_of(stage_ranges(work, shipped_config))


def stage_ranges(shipped_tasks: bytes, shipped_config: bytes) -> Iterator[Part]:
    """The contents of the ranges of one Spark task."""
    key = hashlib.sha256(shipped_config).digest()
    config: WorkerConfig = pickle.loads(shipped_config)
    use_options(config.storage)
    analyzer = _ANALYZERS.get(key)
    if analyzer is None:
        # Keep only one, because a worker may serve several runs of a session.
        _ANALYZERS.clear()
        analyzer = Analyzer(config.pack, config.settings, config.timezone)
        _ANALYZERS[key] = analyzer
    # The first range of the task that contains a trace emits it. A retry of the task may run in
    # another process, so nothing is shared beyond the task's ranges.
    known_traces: set[str] = set()
    for task in sorted(_unshipped(shipped_tasks), key=lambda task: task.number):
        failpoint("stage.range")
        yield from stage_range(task, analyzer, config.settings, known_traces)
        failpoint("stage.range.done")


class _Changed(Exception):
    """The open file is not, or no longer, the planned one; the message is the reason."""


CHANGED = "changed while it was read"
GROWING = "was still being written"


def stage_range(
    task: RangeTask, analyzer: Analyzer, settings: Settings, known_traces: set[str]
) -> Iterator[Part]:
    """Yield the contents of one range as it is read: events and traces, then volumes and a summary.

    Traces whose fingerprints are in ``known_traces`` are only counted; the fingerprints of emitted
    traces are added to it. If the summary has a ``failure``, the rows of the range are ignored,
    except for the texts of traces that other ranges only counted.
    """
    try:
        with OpenFile(task.file, settings.max_file_bytes) as file:
            _verify(file, task)
            yield from _stage_open(file, task, analyzer, settings, known_traces)
    except FileNotFoundError:
        size = task.byte_range.profile.size_bytes
        yield _failed(task, f"deleted before it was read ({size} bytes)")
    except OSError as error:
        yield _failed(task, f"not read: {error.strerror or error}")
    except _Changed as change:
        yield _failed(task, str(change))


def _failed(task: RangeTask, failure: str) -> Part:
    return Part("summary", task, [{"failure": failure}])


def _stage_open(
    file: OpenFile, task: RangeTask, analyzer: Analyzer, settings: Settings, known_traces: set[str]
) -> Iterator[Part]:
    tally = Tally()
    counts: Counter[str] = Counter()
    # Repeated observations are folded, as in the local runner. The limit on observations
    # applies later, when a whole deployment is folded together.
    folder = Folder(replace(settings, max_observations=sys.maxsize))
    portions = analyzer.read(
        task.byte_range,
        tally,
        is_active=task.is_recent and file.is_plain,
        known_traces=known_traces,
        raw=file.rewound(),
    )
    for portion in portions:
        if portion.trace_count:
            yield Part("trace", task, portion.traces)
            yield Part("count", task, portion.recurring)
            known_traces.update(portion.fingerprints)
        counts["trace_count"] += portion.trace_count
        if folder.add(portion.observations) >= HANDED_OVER:
            yield _events(task, folder.take(), counts)
    yield _events(task, folder.take(), counts)
    if tally.read_error is not None and not isinstance(tally.read_error, DamagedMember):
        raise tally.read_error  # the next run may be able to read it
    scan = tally.finish(task.byte_range)
    marked = _marked(file, tally, task.known.head)
    if task.is_recent and not file.is_plain and scan.problems:
        raise _Changed(GROWING)
    _verify(file, task)
    yield Part("volume", task, scan.volumes)
    summary = _summary(scan) | counts | marked
    if analyzer.skipped:
        skipped = sorted({(s.signature, s.reason) for s in analyzer.skipped})
        summary["skipped"] = json.dumps(skipped)
    yield Part("summary", task, [summary])


def _verify(file: OpenFile, task: RangeTask) -> None:
    """Raise ``_Changed`` unless the open file is the planned one, possibly with more at its end."""
    planned, stamp = task.byte_range.profile.size_bytes, file.stamp()
    is_grown = stamp.size_bytes > planned or stamp.modified_at != task.file.modified_at
    # A store replaces objects as a whole: the name may now refer to a different object.
    if stamp.size_bytes < planned or (is_object(task.file.path) and is_grown):
        raise _Changed(CHANGED)
    if file.tail(planned) != task.tail:
        raise _Changed(CHANGED)


def _marked(file: OpenFile, tally: Tally, head: bytes) -> dict[str, object]:
    """The position up to which the file was read, and the digests that identify this part.

    Quarantined bytes, such as the damaged remainder of an archive member, do not belong to it.
    """
    read = tally.event_bytes + tally.counted_bytes
    mark = file.mark(tally.began_at + read, head)
    if mark is None:
        raise _Changed(CHANGED)
    return {
        "consumed_bytes": mark.consumed_bytes,
        "head_digests": mark.head,
        "window_digest": mark.window,
    }


def _events(task: RangeTask, observations: Sequence[Observation], counts: Counter[str]) -> Part:
    counts["event_rows"] += len(observations)
    return Part("event", task, observations)


def _summary(scan: RangeScan) -> dict[str, object]:
    return {
        "newline_count": scan.newline_count,
        "event_bytes": scan.event_bytes,
        "counted_bytes": scan.counted_bytes,
        "quarantined_bytes": scan.quarantined_bytes,
        "held_back_bytes": scan.held_back_bytes,
        "redactions": scan.redactions,
        "redactions_by_kind": list(scan.redactions_by_kind.items()),
        "decode_errors": scan.decode_errors,
        "truncated": scan.truncated,
        "event_count": sum(volume.event_count for volume in scan.volumes),
        "problems": [{"path": p.path, "reason": p.reason} for p in scan.problems],
    }


def batches_of(parts: Iterable[Part]) -> Iterator[pa.RecordBatch]:
    """Convert parts to rows with parcels; small parts share a parcel to save fixed costs."""
    waiting: dict[str, list[Part]] = {}
    row_count = 0
    for part in parts:
        for at in range(0, len(part.items), BATCH_ROWS):
            some = part
            if len(part.items) > BATCH_ROWS:
                some = replace(part, items=part.items[at : at + BATCH_ROWS])
            waiting.setdefault(part.kind, []).append(some)
            row_count += len(some.items)
            if row_count >= JOINED_ROWS:
                yield _batch(waiting)
                waiting, row_count = {}, 0
    if waiting:
        yield _batch(waiting)


def _batch(waiting: Mapping[str, Sequence[Part]]) -> pa.RecordBatch:
    staged: list[dict[str, object]] = []
    for made_of, parts in waiting.items():
        numbers = _of_each(parts, lambda task: task.number, SMALL)
        rows = pa.RecordBatch.from_struct_array(_values(made_of, parts))
        rows = rows.append_column(RANGE_NUMBER, numbers)
        if made_of == "event":
            staged += _of_events(rows)
        else:
            kind = "trace" if made_of == "count" else made_of
            staged += _rows_of(kind, rows)
    return pa.RecordBatch.from_pylist(staged, STAGED)


def _rows_of(
    kind: str, rows: pa.RecordBatch, deployment: str | None = None
) -> Iterator[dict[str, object]]:
    for parcel in parcels_of(rows):
        yield {"kind": kind, "deployment": deployment, "rows": parcel}


def _of_events(events: pa.RecordBatch) -> Iterator[dict[str, object]]:
    """Rows with the events of each deployment in separate parcels, for its diagnosis."""
    names = events.column("deployment")
    for name in names.unique():
        of_one = events.filter(pc.equal(names, name))
        yield from _rows_of("event", of_one, name.as_py())


def _values(kind: str, parts: Sequence[Part]) -> pa.StructArray:
    items = [item for part in parts for item in part.items]
    if kind == "event":
        file_ids = _of_each(parts, lambda task: task.file_id, TEXT)
        generations = _of_each(parts, lambda task: task.byte_range.generation, SMALL)
        return event_rows(items, file_ids, generations)
    if kind == "volume":
        deployments = _of_each(parts, lambda task: task.byte_range.deployment, TEXT)
        file_ids = _of_each(parts, lambda task: task.file_id, TEXT)
        paths = _of_each(parts, lambda task: task.byte_range.profile.path, TEXT)
        return volume_rows(items, deployments, file_ids, paths)
    if kind == "summary":
        return array(items, SUMMARY)
    return trace_rows(items) if kind == "trace" else count_rows(items)


def _of_each(
    parts: Sequence[Part], value: Callable[[RangeTask], str | int], kind: pa.DataType
) -> pa.Array:
    """``value`` of the task of each part, repeated for each item of the part."""
    places = np.repeat(np.arange(len(parts)), [len(part.items) for part in parts])
    return array([value(part.task) for part in parts], kind).take(pa.array(places))
