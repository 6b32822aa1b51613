"""Drops routine events: completed checkpoints between two others of the same file, job, and minute.

Completed checkpoints are often the most frequent notable events. They show when the job was last
healthy before a failure, and when it recovered. Between two other notable events, the first and the
last completed checkpoint of a minute are sufficient.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable
from datetime import datetime
from typing import TypeVar

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


def drop_routine(items: Iterable[T], key_of: Callable[[T], Hashable | None]) -> list[T]:
    """All items, except those between two others with the same key.

    An item with the key ``None`` is kept, and separates the items before it from those after it.
    The function is idempotent. The result is the same if the function is first applied to
    consecutive parts of the items, and then to their concatenated results.
    """
    kept: dict[int, T] = {}
    ends: dict[Hashable, list[int]] = {}
    for index, item in enumerate(items):
        kept[index] = item
        key = key_of(item)
        if key is None:
            ends = {}
            continue
        of_key = ends.setdefault(key, [])
        if len(of_key) == 2:
            del kept[of_key.pop()]
        of_key.append(index)
    return list(kept.values())


def routine_key(event: Event) -> tuple[str, str | None, datetime] | None:
    """File, job, and minute of a completed checkpoint; ``None`` for all other events.

    Also ``None`` for a completed checkpoint whose event has no time or more than one line.
    """
    lifecycle = event.lifecycle
    if lifecycle is None or lifecycle.kind != COMPLETED or event.continuation is not None:
        return None
    if event.logged_at is None:
        return None
    return event.path, lifecycle.job_id, event.logged_at.replace(second=0, microsecond=0)


def job_of_completed(data: bytes) -> bytes | None:
    """The ID of the job whose completed checkpoint an event reports; ``None`` for other events."""
    found = _LINE.search(data)
    return None if found is None else found[1]
