"""Splits files into byte ranges, and groups work into bins of about equal size."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from flink_triage.model import ByteRange, FileProfile
from flink_triage.settings import Settings

T = TypeVar("T")


def plan_ranges(
    files: Iterable[tuple[FileProfile, str]], settings: Settings, *, generation: int = 0
) -> list[ByteRange]:
    """The byte ranges of the files, which together cover every byte exactly once.

    ``files`` are (profile, deployment) pairs. The last range of a file is open-ended.
    """
    ranges: list[ByteRange] = []
    for profile, deployment in files:
        starts = range_starts(profile, profile.size_bytes, settings)
        for start, end in zip(starts, [*starts[1:], None], strict=True):
            ranges.append(ByteRange(profile, deployment, start, end, generation))
    return ranges


def range_starts(
    profile: FileProfile, size_bytes: int, settings: Settings, first: int = 0
) -> list[int]:
    """The byte offsets at which the ranges of a file start; the first one is ``first``.

    A splittable file is split at multiples of ``settings.range_bytes``. If the last range would
    have at most a quarter of this size, it is merged into the previous range.
    """
    if not profile.is_splittable or profile.problem is not None:
        return [first]
    step = max(settings.range_bytes, 1)
    return [first, *range((first // step + 1) * step, size_bytes - step // 4, step)]


def binned(items: Iterable[T], work: Callable[[T], int], size: float) -> list[list[T]]:
    """Group adjacent items into bins; a bin is full when its total ``work`` reaches ``size``."""
    bins: list[list[T]] = []
    room = 0.0
    for item in items:
        if room <= 0:
            bins.append([])
            room = size
        bins[-1].append(item)
        room -= work(item)
    return bins
