"""Examines the file at each path; large numbers of files are examined in Spark tasks."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import pyarrow as pa
from pyspark.sql import SparkSession

from flink_triage.analyzer import collector_at_rest
from flink_triage.logs.detect.profile import PROBE_BYTES, probe
from flink_triage.logs.inputs.byte_ranges import binned
from flink_triage.logs.inputs.files import InputFile
from flink_triage.logs.inputs.storage import StorageOptions, is_uri, use_options
from flink_triage.model import FileProfile
from flink_triage.pickles import pickled_by_position
from flink_triage.settings import MIB, Settings
from flink_triage.spark.ingest.content_identity import NOTHING, Mark, OpenFile
from flink_triage.spark.runtime.workers import in_worker, rows_in_tasks
from flink_triage.spark.tables.arrow_types import SMALL, spark_schema

LOOKS = pa.schema([("bin", SMALL), ("looks", pa.binary())])
# Below this size, a Spark job costs more than it saves: examining a full head takes 5 ms, and a
# small file a third of that.
FROM_BYTES = 64 * MIB
# For files in an object store, each request also adds latency.
FROM_STORED_BYTES = 16 * MIB
OPENING_BYTES = 8 * 1024
# A task takes 0.1 s to start and end: use this many bins, and more if each has much work.
FEW_BINS = 8
SMALLEST_BIN_BYTES = 4 * MIB
LARGEST_BIN_BYTES = 64 * MIB


@pickled_by_position
@dataclass(frozen=True, slots=True)
class Wanted:
    """A file to examine, the marks to compare, and the ``profile`` if its head was read before."""

    file: InputFile
    marks: tuple[Mark, ...] = ()
    profile: FileProfile | None = None


@pickled_by_position
@dataclass(frozen=True, slots=True)
class Look:
    """The file found at a path.

    ``tail`` is the digest that identifies the end of the file. ``goes_on`` states for each wanted
    mark whether the file continues after it; ``None`` if the file does not start with the marked
    content.
    ``problem`` is the reason why the path could not be opened.
    """

    size_bytes: int
    modified_at: datetime
    changed_at: datetime
    profile: FileProfile
    head: Mark = NOTHING
    tail: bytes = b""
    goes_on: tuple[bool | None, ...] = ()
    problem: str | None = None


def look_at(wanted: Wanted, settings: Settings) -> Look:
    """Examine one file; an ``OSError`` is returned as the ``problem`` of the result."""
    listed = wanted.file
    try:
        with OpenFile(listed, settings.max_file_bytes) as file:
            stamp = file.stamp()
            now = replace(listed, size_bytes=stamp.size_bytes, modified_at=stamp.modified_at)
            head = file.mark_of_head()
            goes_on = tuple(_goes_on(file, mark, head.head) for mark in wanted.marks)
            if wanted.profile is not None and goes_on[0] is not None:
                profile = replace(wanted.profile, path=now.path, size_bytes=now.size_bytes)
            else:
                profile = probe(now, settings, file.rewound())
            tail = file.tail(stamp.size_bytes)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        nothing = FileProfile(listed.path, listed.size_bytes, problem=reason)
        at = listed.modified_at
        return Look(listed.size_bytes, at, at, nothing, problem=reason)
    return Look(stamp.size_bytes, stamp.modified_at, stamp.changed_at, profile, head, tail, goes_on)


def _goes_on(file: OpenFile, mark: Mark, head: bytes) -> bool | None:
    return file.goes_on_after(mark.consumed_bytes) if file.holds(mark, head) else None


def look_at_all(
    spark: SparkSession, wanted: Sequence[Wanted], settings: Settings, storage: StorageOptions
) -> list[Look]:
    """The results for the files, in their order."""
    total = sum(map(_work, wanted))
    is_stored = any(is_uri(one.file.path) for one in wanted)
    if total < (FROM_STORED_BYTES if is_stored else FROM_BYTES):
        return [look_at(one, settings) for one in wanted]
    size = min(max(total // FEW_BINS, SMALLEST_BIN_BYTES), LARGEST_BIN_BYTES)
    bins = binned(wanted, _work, size)
    function = in_worker(__name__, "look_at_bins", pickle.dumps((settings, storage)))
    rows = rows_in_tasks(spark, map(pickle.dumps, bins))
    found = rows.mapInArrow(function, spark_schema(LOOKS)).toArrow().to_pylist()
    by_bin = {row["bin"]: pickle.loads(row["looks"]) for row in found}
    return [look for index in range(len(bins)) for look in by_bin[index]]


def _work(wanted: Wanted) -> int:
    return min(wanted.file.size_bytes, PROBE_BYTES) + OPENING_BYTES


def look_at_bins(
    batches: Iterator[pa.RecordBatch], shipped_config: bytes
) -> Iterator[pa.RecordBatch]:
    """Examine the lists of files in rows ``id, work``; yield rows ``bin, looks``, in a worker."""
    settings, storage = pickle.loads(shipped_config)
    use_options(storage)
    for batch in batches:
        for row in batch.to_pylist():
            with collector_at_rest():
                looks = [look_at(one, settings) for one in pickle.loads(row["work"])]
            rows = [{"bin": row["id"], "looks": pickle.dumps(looks)}]
            yield pa.RecordBatch.from_pylist(rows, LOOKS)
