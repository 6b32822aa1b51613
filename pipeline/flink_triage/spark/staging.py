"""The Python side of a run: numbered byte ranges in, staged Arrow rows out."""

from __future__ import annotations

import json
import os
import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flink_triage.diagnosis.fold import Folder
from flink_triage.logs.files import open_binary
from flink_triage.logs.storage import NO_OPTIONS, StorageOptions, use_options
from flink_triage.logs.tally import Tally
from flink_triage.model import ByteRange, Observation, RangeScan
from flink_triage.pickles import pickled_by_position
from flink_triage.settings import Settings
from flink_triage.signatures import SignaturePack
from flink_triage.spark.content import (
    CHUNK_BYTES,
    hash_chunks,
    hash_prefix,
    open_plain,
    sha256,
    tail_hash,
)
from flink_triage.spark.parcels import PARCEL_ROWS, STAGED, parcels_of
from flink_triage.spark.points import reached
from flink_triage.spark.row_types import COUNT, PROBLEM, SMALL, TEXT
from flink_triage.spark.rows import (
    RANGE_NUMBER,
    array,
    count_rows,
    event_rows,
    match_rows,
    option_rows,
    trace_rows,
    volume_rows,
)
from flink_triage.spark.workers import ArrowFunction, in_worker
from flink_triage.stages import Analyzer, collector_at_rest

SUMMARY = pa.struct(
    [
        ("newline_count", COUNT),
        ("event_bytes", COUNT),
        ("counted_bytes", COUNT),
        ("quarantined_bytes", COUNT),
        ("held_back_bytes", COUNT),
        ("redactions", COUNT),
        ("decode_errors", COUNT),
        ("truncated", COUNT),
        ("event_count", COUNT),
        ("trace_count", COUNT),
        ("problems", pa.list_(PROBLEM)),
        ("failure", TEXT),
        ("first_chunk", COUNT),
        ("chunk_digests", pa.binary()),
        ("tail_end", COUNT),
        ("tail_sha256", TEXT),
        ("event_rows", COUNT),
        ("match_rows", COUNT),
        ("skipped", TEXT),
    ]
)
# Events of a range that are handed over although those behind them could be folded into them.
HANDED_OVER = 4_096
# Small files have few rows each: so many go together.
JOINED_ROWS = 1_000
# Bounds what is made of Python's values at a time: a trace takes some 10 KB on its way to a row.
BATCH_ROWS = 2 * PARCEL_ROWS


@pickled_by_position
@dataclass(frozen=True, slots=True)
class RangeTask:
    """A byte range, whose file it is, and which of the file's chunks it is to hash."""

    number: int
    byte_range: ByteRange
    file_id: str
    size_bytes: int
    first_line: int
    is_active: bool
    is_first: bool
    is_last: bool


@dataclass(frozen=True, slots=True)
class Part:
    """What rows of one kind are made of, out of one range."""

    kind: Literal["event", "trace", "count", "volume", "summary"]
    task: RangeTask
    items: Sequence[Any]


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    pack: SignaturePack
    settings: Settings
    timezone: tzinfo
    storage: StorageOptions = NO_OPTIONS


def staging_function(tasks: list[list[RangeTask]], config: WorkerConfig) -> ArrowFunction:
    """What ``mapInArrow`` calls on rows ``id``: the index of a list of ranges to stage."""
    shipped = [pickle.dumps(task) for task in tasks]
    return in_worker(__name__, "stage_bins", shipped, pickle.dumps(config))


_ANALYZERS: dict[str, Analyzer] = {}


def stage_bins(
    batches: Iterator[pa.RecordBatch], shipped: Sequence[bytes], shipped_config: bytes
) -> Iterator[pa.RecordBatch]:
    """Staged rows of the lists of ranges that rows ``id`` name, in a worker."""
    for batch in batches:
        for index in batch.column(0).to_pylist():
            with collector_at_rest():
                yield from batches_of(stage_ranges(shipped[index], shipped_config))


def stage_ranges(shipped_tasks: bytes, shipped_config: bytes) -> Iterator[Part]:
    """What some ranges hold."""
    key = sha256(shipped_config)
    config: WorkerConfig = pickle.loads(shipped_config)
    use_options(config.storage)
    analyzer = _ANALYZERS.get(key)
    if analyzer is None:
        # One at a time: a worker lives on through the runs of a session.
        _ANALYZERS.clear()
        analyzer = Analyzer(config.pack, config.settings, config.timezone)
        _ANALYZERS[key] = analyzer
    tasks: list[RangeTask] = pickle.loads(shipped_tasks)
    # A trace is handed over by the first range that saw it.  Another try of this task may be in
    # another process, so that nothing is known beyond its ranges.
    told: set[str] = set()
    for task in sorted(tasks, key=lambda task: task.number):
        reached("stage.range")
        yield from stage_range(task, analyzer, config.settings, told)
        reached("stage.range.done")


def stage_range(
    task: RangeTask, analyzer: Analyzer, settings: Settings, told: set[str]
) -> Iterator[Part]:
    """What one range holds, as it is read: events and traces, then volumes, and one summary.

    Of traces ``told`` only counts; those that are told now are added to them.  A summary that
    states a ``failure`` says that nothing of the range counts.
    """
    tally = Tally()
    counts: Counter[str] = Counter()
    # As the in-process runner does: what a crash loop repeats is counted, not kept.
    folder = Folder(settings)
    for portion in analyzer.read(task.byte_range, tally, is_active=task.is_active, told=told):
        if portion.trace_count:
            yield Part("trace", task, portion.traces)
            yield Part("count", task, portion.recurring)
            told.update(portion.fingerprints)
        counts["trace_count"] += portion.trace_count
        if folder.add(portion.observations) >= HANDED_OVER:
            yield _events(task, folder.take(), counts)
    yield _events(task, folder.take(), counts)
    scan = tally.finish(task.byte_range)
    try:
        hashes = _hashes(task, scan)
    except OSError as error:
        failure = f"not read: {error.strerror or error}"
        yield Part("summary", task, [{"failure": failure}])
        return
    yield Part("volume", task, scan.volumes)
    summary = _summary(scan) | counts | hashes
    if analyzer.skipped:
        skipped = sorted({(s.signature, s.reason) for s in analyzer.skipped})
        summary["skipped"] = json.dumps(skipped)
    yield Part("summary", task, [summary])


def _events(task: RangeTask, observations: Sequence[Observation], counts: Counter[str]) -> Part:
    counts["event_rows"] += len(observations)
    counts["match_rows"] += sum(len(observation.matches) for observation in observations)
    return Part("event", task, observations)


def _summary(scan: RangeScan) -> dict[str, object]:
    return {
        "newline_count": scan.newline_count,
        "event_bytes": scan.event_bytes,
        "counted_bytes": scan.counted_bytes,
        "quarantined_bytes": scan.quarantined_bytes,
        "held_back_bytes": scan.held_back_bytes,
        "redactions": scan.redactions,
        "decode_errors": scan.decode_errors,
        "truncated": scan.truncated,
        "event_count": sum(volume.event_count for volume in scan.volumes),
        "problems": [{"path": p.path, "reason": p.reason} for p in scan.problems],
    }


def _hashes(task: RangeTask, scan: RangeScan) -> dict[str, object]:
    """Digests of the chunks that begin in the range, while its pages are still in memory."""
    byte_range = task.byte_range
    path = byte_range.profile.path
    consumed = byte_range.start + scan.event_bytes + scan.counted_bytes + scan.quarantined_bytes
    if not task.is_first:
        # The range begins inside an event of the one before.  Should the file have grown since it
        # was scanned, the driver sees that this does not add up, and hashes by itself.
        with open_binary(path) as stream:
            consumed = stream.seek(0, os.SEEK_END) - scan.held_back_bytes
    if byte_range.profile.compression != "none":
        prefix = hash_prefix(path, open_plain, consumed)
        return {
            "first_chunk": 0,
            "chunk_digests": prefix.digests,
            "tail_end": prefix.size_bytes,
            "tail_sha256": prefix.tail_sha256,
        }
    start = byte_range.start
    if task.is_first:
        start = start // CHUNK_BYTES * CHUNK_BYTES
    end = consumed // CHUNK_BYTES * CHUNK_BYTES if task.is_last else byte_range.end or consumed
    first, digests = hash_chunks(path, open_binary, start, end)
    hashes: dict[str, object] = {"first_chunk": first, "chunk_digests": digests}
    if task.is_last:
        hashes |= {"tail_end": consumed, "tail_sha256": tail_hash(path, open_binary, consumed)}
    return hashes


def batches_of(parts: Iterable[Part]) -> Iterator[pa.RecordBatch]:
    """Parcels as rows of ``STAGED``, the parts of many small files together: each has its price."""
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
    """Events, those of each deployment apart, for its diagnosis; and what else they tell."""
    names = events.column("deployment")
    for name in names.unique():
        of_one = events.filter(pc.equal(names, name))
        yield from _rows_of("event", of_one, name.as_py())
    yield from _rows_of("match", match_rows(events))
    yield from _rows_of("option", option_rows(events))


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
    """What the task of each item says."""
    places = np.repeat(np.arange(len(parts)), [len(part.items) for part in parts])
    return array([value(part.task) for part in parts], kind).take(pa.array(places))
