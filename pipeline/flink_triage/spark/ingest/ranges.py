"""Cuts planned files into numbered byte ranges, and packs the ranges into bins for Spark tasks."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from flink_triage.logs.inputs.byte_ranges import range_starts
from flink_triage.logs.inputs.files import InputFile
from flink_triage.model import ByteRange
from flink_triage.pickles import pickled_by_position
from flink_triage.settings import MIB, Settings
from flink_triage.spark.ingest.changed_files import FileWork
from flink_triage.spark.ingest.content_identity import Mark

# A Spark task reads one bin. It takes 0.1 s to start and end, and emits each of its distinct traces
# again. If there would be more bins than this, they are made larger, up to ``LARGEST_BIN_BYTES``.
MANY_BINS = 128
SMALLEST_BIN_BYTES = 64 * MIB
LARGEST_BIN_BYTES = 256 * MIB


@pickled_by_position
@dataclass(frozen=True, slots=True)
class RangeTask:
    """A byte range, and the data that identifies the planned file when a task reads it.

    ``tail`` identifies the end of the file when it was planned; ``known`` marks the part that
    earlier runs read. ``is_recent``: the file was written within the settling time.
    """

    number: int
    byte_range: ByteRange
    file: InputFile
    file_id: str
    size_bytes: int
    first_line: int
    is_recent: bool
    is_first: bool
    is_last: bool
    tail: bytes
    known: Mark


def cut_ranges(
    files: Sequence[FileWork], settings: Settings, now: datetime
) -> tuple[RangeTask, ...]:
    """The ranges to read, numbered in order of file and offset.

    Cuts are at multiples of ``range_bytes`` from the start of the file, not of the new part. Files
    that cannot be read as a log have no ranges.
    """
    tasks: list[RangeTask] = []
    for work in files:
        if work.profile.problem is not None:
            continue
        age = (now - work.file.modified_at).total_seconds()
        starts = range_starts(
            work.profile, work.file.size_bytes, settings, work.known.consumed_bytes
        )
        for index, start in enumerate(starts):
            is_last = index == len(starts) - 1
            end = None if is_last else starts[index + 1]
            tasks.append(
                RangeTask(
                    number=len(tasks),
                    byte_range=ByteRange(
                        work.profile,
                        work.deployment,
                        start,
                        end,
                        work.generation,
                        is_continued=index == 0 and start > 0,
                    ),
                    file=work.file,
                    file_id=work.file_id,
                    size_bytes=(end or max(work.file.size_bytes, start)) - start,
                    first_line=work.start_line,
                    is_recent=age <= settings.settle_seconds,
                    is_first=index == 0,
                    is_last=is_last,
                    tail=work.tail,
                    known=work.known,
                )
            )
    return tuple(tasks)


def pack_tasks(tasks: Sequence[RangeTask], slots: int = 2) -> list[list[RangeTask]]:
    """Bins of similar size, each with one large range or several smaller ones.

    There are at least ``slots`` bins, if there are as many ranges. ``tasks`` must not be empty.
    """
    total = sum(task.size_bytes for task in tasks)
    largest = max(task.size_bytes for task in tasks)
    size = min(max(total // MANY_BINS, SMALLEST_BIN_BYTES), LARGEST_BIN_BYTES)
    wanted = max(slots, -(-total // max(largest, size)))
    count = min(len(tasks), wanted)
    bins: list[list[RangeTask]] = [[] for _ in range(count)]
    heap = [(0, index) for index in range(count)]
    for task in sorted(tasks, key=lambda task: (-task.size_bytes, task.number)):
        load, index = heapq.heappop(heap)
        bins[index].append(task)
        # Each file has a fixed cost.
        heapq.heappush(heap, (load + task.size_bytes + 4096, index))
    return bins
