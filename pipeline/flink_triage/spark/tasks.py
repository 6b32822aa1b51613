"""From the plan to tasks: files are probed, cut at chunk boundaries, and packed for workers."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from flink_triage.local import Options
from flink_triage.logs.files import InputFile, Listing, deployment_of
from flink_triage.model import ByteRange, FileProfile
from flink_triage.settings import MIB, Settings
from flink_triage.spark.ledger import FileWork, WorkPlan
from flink_triage.spark.staging import RangeTask

# A task takes 0.1 s to start and to end, and each tells anew what traces it saw: beyond so many of
# them they grow before there are more.
MANY_BINS = 128
SMALLEST_BIN_BYTES = 64 * MIB
LARGEST_BIN_BYTES = 256 * MIB


@dataclass(frozen=True, slots=True)
class FileToRead:
    """A file with something new in it, and what its head tells; quarantined with a problem."""

    work: FileWork
    profile: FileProfile
    deployment: str


def files_of(plan: WorkPlan, listing: Listing) -> list[InputFile]:
    """The files of the plan."""
    by_path = {file.path: file for file in listing.files}
    return [by_path[work.path] for work in plan.work]


def prepare(
    plan: WorkPlan,
    files: Sequence[InputFile],
    profiles: Iterable[FileProfile],
    options: Options,
) -> tuple[FileToRead, ...]:
    """The ``files`` of the plan, with what their heads tell; ``profiles`` may be of others too."""
    by_path = {profile.path: profile for profile in profiles}
    return tuple(
        FileToRead(work, by_path[work.path], deployment_of(file, options.group_by))
        for work, file in zip(plan.work, files, strict=True)
    )


def cut_ranges(
    files: Sequence[FileToRead], settings: Settings, now: datetime
) -> tuple[RangeTask, ...]:
    """The ranges to read, numbered in order of file and offset.

    A splittable file is cut at multiples of ``range_bytes`` of the file, not of what is new, so
    that a range hashes whole chunks.
    """
    tasks: list[RangeTask] = []
    for file in files:
        if file.profile.problem is not None:
            continue
        work = file.work
        age = (now - work.modified_at).total_seconds()
        is_plain = file.profile.compression == "none"
        starts = _starts(file, settings)
        for index, start in enumerate(starts):
            is_last = index == len(starts) - 1
            end = None if is_last else starts[index + 1]
            tasks.append(
                RangeTask(
                    number=len(tasks),
                    byte_range=ByteRange(
                        file.profile,
                        file.deployment,
                        start,
                        end,
                        work.generation,
                        is_continued=index == 0 and start > 0,
                    ),
                    file_id=work.file_id,
                    size_bytes=(end or max(work.size_bytes, start)) - start,
                    first_line=work.start_line,
                    is_active=is_plain and age <= settings.settle_seconds,
                    is_first=index == 0,
                    is_last=is_last,
                )
            )
    return tuple(tasks)


def _starts(file: FileToRead, settings: Settings) -> list[int]:
    start, step = file.work.start, max(settings.range_bytes, 1)
    if not file.profile.is_splittable:
        return [start]
    first_cut = (start // step + 1) * step
    # A last piece of under a quarter of a range is not worth a task.
    return [start, *range(first_cut, file.work.size_bytes - step // 4, step)]


def pack_tasks(tasks: Sequence[RangeTask], slots: int = 2) -> list[list[RangeTask]]:
    """Ranges in bins of about equal size: one per large range, small files together."""
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
        # A file costs something whatever its size.
        heapq.heappush(heap, (load + task.size_bytes + 4096, index))
    return bins
