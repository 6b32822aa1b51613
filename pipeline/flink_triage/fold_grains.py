"""Defines the grains at which similar events are folded into one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cache

# Kinds of lifecycle events that the diagnosis counts or reads individually, and that are rare or
# have a value.
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
# Kinds that a process logs identically at every startup.
LOGGED_AT_STARTUP = frozenset({"config", "version", "java-version", "jvm-option", "classpath"})


@dataclass(frozen=True, slots=True)
class Grain:
    """A grain that keeps ``keep`` events of each kind per period of ``minutes``.

    ``minutes`` is ``None`` for a single, unlimited period; ``drops`` are the details that do not
    distinguish kinds. A coarser grain has a multiple of the minutes of a finer grain, drops at
    least the same details, and keeps a subset of the events. The finest grain keeps all events of
    ``KEPT_KINDS``. The last grain limits the number of kinds.
    """

    minutes: int | None
    keep: int
    drops: frozenset[str] = frozenset()
    is_finest: bool = False
    is_last: bool = False


_MINUTES = (1, 5, 15, 60, 180, 720, 1440, 10080, None)
# Details are dropped in this order; each step also drops the previous details.
_DROPPED = ("task", "logger", "job", "path")


@cache
def grains_of(keep: int) -> tuple[Grain, ...]:
    """All grains, from the finest to the coarsest; the finest keeps ``keep`` events of a kind."""
    without = (frozenset(_DROPPED[:count]) for count in range(1, 1 + len(_DROPPED)))
    return (
        Grain(1, keep, is_finest=True),
        *(Grain(minutes, keep) for minutes in _MINUTES),
        *(Grain(None, keep, drops) for drops in without),
        Grain(None, 2, frozenset(_DROPPED), is_last=True),
    )


def period_of(at: datetime | None, minutes: int | None) -> int | None:
    """The index of the period of ``minutes`` that contains ``at``, counted from 1970."""
    if at is None or minutes is None:
        return None
    return int(at.timestamp() // (60 * minutes))
