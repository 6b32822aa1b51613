"""Drops routine events: completed checkpoints between two others of the same file, job, and minute.

Completed checkpoints are often the most frequent notable events. They show when the job was last
healthy before a failure, and when it recovered. The first and the last of a minute are sufficient,
unless a state change or another notable event separates them. Of notable events that are folded
together, only the first and the last separate checkpoints.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple, TypeVar

from flink_triage.fold_grains import STATE_CHANGES
from flink_triage.model import Event

T = TypeVar("T")

COMPLETED = "checkpoint-completed"
# The message of CheckpointCoordinator in Flink 1.9 to 2.3. No further text may follow: the message
# must end the line or the message field of a JSON record.
_LINE = re.compile(
    rb"Completed checkpoint [0-9]{1,19} for job ([0-9a-f]{32})"
    rb" \([0-9]+ bytes(?: in |, checkpointDuration=)[0-9]+ ms(?:, finalizationTime=[0-9]+ ms)?\)\."
    rb"(?:\"[^\\\n]*\})?\r?\n?\Z"
)


@dataclass(frozen=True, slots=True)
class Routine:
    """A routine event. Between two others with an equal ``key``, it is dropped."""

    job: Hashable
    key: Hashable


@dataclass(frozen=True, slots=True)
class Separator:
    """An event that separates the routine events of a job before it from those after it.

    ``job`` is ``None`` if it separates those of all jobs.
    """

    job: Hashable


# ``None`` is an event that is kept, and separates nothing.
Role = Routine | Separator | None


def drop_routine(items: Iterable[T], role_of: Callable[[T], Role]) -> list[T]:
    """All items, except each routine event that is between two others with the same key.

    The function is idempotent. The result is the same if the function is first applied to
    consecutive parts of the items, and then to their concatenated results.
    """
    kept: dict[int, T] = {}
    ends: dict[Hashable, dict[Hashable, list[int]]] = {}
    for index, item in enumerate(items):
        kept[index] = item
        role = role_of(item)
        if role is None:
            continue
        if isinstance(role, Separator):
            if role.job is None:
                ends = {}
            else:
                ends.pop(role.job, None)
                ends.pop(None, None)
            continue
        of_key = ends.setdefault(role.job, {}).setdefault(role.key, [])
        if len(of_key) == 2:
            del kept[of_key.pop()]
        of_key.append(index)
    return list(kept.values())


def role_of(event: Event) -> Role:
    """The role of a completed checkpoint or a state change.

    A completed checkpoint is routine if its event has a time and a single line. Its key consists of
    its file, job, and minute.
    """
    lifecycle = event.lifecycle
    if lifecycle is None:
        return None
    if lifecycle.kind in STATE_CHANGES:
        return Separator(lifecycle.job_id)
    if lifecycle.kind != COMPLETED:
        return None
    if event.continuation is not None or event.logged_at is None:
        return None
    minute = event.logged_at.replace(second=0, microsecond=0)
    return Routine(lifecycle.job_id, (event.path, lifecycle.job_id, minute))


def job_of_completed(data: bytes) -> str | None:
    """The ID of the job whose completed checkpoint an event reports; ``None`` for other events."""
    found = _LINE.search(data)
    return None if found is None else found[1].decode()


class UnbuiltRoutine(NamedTuple):
    """The position and the bytes of a routine event that has not been built."""

    offset: int
    line: int
    data: bytes
    role: Routine


def drop_unbuilt(
    events: Iterable[UnbuiltRoutine], separators: Iterable[tuple[int, Separator]]
) -> list[UnbuiltRoutine]:
    """`drop_routine` for events of one file; the separators follow their offsets."""
    items: list[tuple[int, Role, UnbuiltRoutine | None]] = [
        *((event.offset, event.role, event) for event in events),
        *((offset, separator, None) for offset, separator in separators),
    ]
    items.sort(key=itemgetter(0))
    kept = drop_routine(items, itemgetter(1))
    return [event for _, _, event in kept if event is not None]
