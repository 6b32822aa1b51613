"""How finely events are told apart when those that say the same are folded."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cache

# Kinds of lifecycle events that the diagnosis counts or reads one by one, and that are rare or tell
# a value.
KEPT_KINDS = frozenset(
    {
        "config",
        "version",
        "java-version",
        "jvm-option",
        "classpath",
        "task-running",
        "execution-graph",
        "job-state",
        "job-submitted",
        "job-terminal",
        "rescheduled",
        "restart",
        "restored",
        "checkpoint-completed",
        "application-state",
        "cluster-shutdown",
        "entrypoint-fatal",
    }
)
# Of these every process says the same at each start.
SAID_AT_START = frozenset({"config", "version", "java-version", "jvm-option", "classpath"})


@dataclass(frozen=True, slots=True)
class Grain:
    """So many events of a kind are kept in so many minutes.

    ``minutes`` is ``None`` for all time; ``drops`` are the details that tell no kinds apart.  A
    coarser grain's minutes are a multiple, it drops at least as much, and keeps no more: what it
    keeps is among what a finer one kept.  The finest keeps all of ``KEPT_KINDS``.  The last has a
    limit of kinds.
    """

    minutes: int | None
    keep: int
    drops: frozenset[str] = frozenset()
    is_finest: bool = False
    is_last: bool = False


_MINUTES = (1, 5, 15, 60, 180, 720, 1440, 10080, None)
# In this order, each with those before it.
_DROPPED = ("task", "logger", "job", "path")


@cache
def grains_of(keep: int) -> tuple[Grain, ...]:
    """From the finest, which keeps so many of a kind, to the coarsest."""
    without = (frozenset(_DROPPED[:count]) for count in range(1, 1 + len(_DROPPED)))
    return (
        Grain(1, keep, is_finest=True),
        *(Grain(minutes, keep) for minutes in _MINUTES),
        *(Grain(None, keep, drops) for drops in without),
        Grain(None, 2, frozenset(_DROPPED), is_last=True),
    )


def period_of(at: datetime | None, minutes: int | None) -> int | None:
    """The number of the ``minutes`` since 1970 that hold ``at``."""
    if at is None or minutes is None:
        return None
    return int(at.timestamp() // (60 * minutes))
