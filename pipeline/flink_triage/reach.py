"""Collects the subtasks, hosts, and files of an observation's events in sets that can be merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

MAX_SPREAD = 1_000


@dataclass(frozen=True, slots=True)
class Subtask:
    """A subtask with its 1-based index, as in logs; the index is ``None`` if it is unknown."""

    task: str
    subtask: int | None
    parallelism: int | None


@dataclass(frozen=True, slots=True)
class Spread:
    """The subtasks, hosts, and files of events; a union keeps at most ``MAX_SPREAD`` of each."""

    subtasks: frozenset[Subtask]
    hosts: frozenset[str]
    paths: frozenset[str]

    def union(self, others: Sequence[Spread]) -> Spread:
        return Spread(
            _first(self.subtasks.union(*(other.subtasks for other in others))),
            _first(self.hosts.union(*(other.hosts for other in others))),
            _first(self.paths.union(*(other.paths for other in others))),
        )


def _first(members: frozenset[T]) -> frozenset[T]:
    """The first ``MAX_SPREAD`` members in a fixed order, so that the merge order has no effect."""
    if len(members) <= MAX_SPREAD:
        return members
    return frozenset(sorted(members, key=repr)[:MAX_SPREAD])
