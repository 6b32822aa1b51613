"""Profiles in, the byte ranges to read out; work in, tasks of about equal size out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from flink_triage.model import ByteRange, FileProfile
from flink_triage.settings import Settings

T = TypeVar("T")


def plan_ranges(
    files: Iterable[tuple[FileProfile, str]], settings: Settings, *, generation: int = 0
) -> list[ByteRange]:
    """Ranges of (profile, deployment) pairs that together own every byte exactly once.

    A splittable file is cut every ``settings.range_bytes``; its last range is open-ended.  A last
    piece of under a quarter of that is joined to the one before it.
    """
    ranges: list[ByteRange] = []
    for profile, deployment in files:
        cuts = [0]
        if profile.is_splittable and profile.problem is None:
            step = max(settings.range_bytes, 1)
            cuts.extend(range(step, profile.size_bytes - step // 4, step))
        for start, end in zip(cuts, [*cuts[1:], None], strict=True):
            ranges.append(ByteRange(profile, deployment, start, end, generation))
    return ranges


def binned(items: Iterable[T], work: Callable[[T], int], size: float) -> list[list[T]]:
    """Neighbours together, in bins of about ``size`` in ``work``."""
    bins: list[list[T]] = []
    room = 0.0
    for item in items:
        if room <= 0:
            bins.append([])
            room = size
        bins[-1].append(item)
        room -= work(item)
    return bins
