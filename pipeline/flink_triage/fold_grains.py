"""Defines the grains of folding: each determines which events are kept or only counted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cache

# Kinds that a process logs at every startup, usually with the same values.
LOGGED_AT_STARTUP = frozenset({"config", "version", "java-version", "jvm-option", "classpath"})
# Kinds that report a new state of a job or of the cluster.
STATE_CHANGES = frozenset(
    {
        "job-state",
        "job-submitted",
        "job-terminal",
        "rescheduled",
        "restart",
        "restored",
        "application-state",
        "cluster-shutdown",
        "entrypoint-fatal",
    }
)
# Kinds of lifecycle events that the finest grain keeps, because the diagnosis reads or counts them
# individually. Completed checkpoints are an exception (see `logs.routine`).
KEPT_KINDS = (
    LOGGED_AT_STARTUP | STATE_CHANGES | {"task-running", "execution-graph", "checkpoint-completed"}
)


# The maximum number of events to keep of a kind without a match, lifecycle event, or stack trace.
# The ranking does not use such events.
_PLAIN_KEEP = 2


@dataclass(frozen=True, slots=True)
class Grain:
    """A grain that keeps at most ``keep`` events per kind, stack trace, and period of ``minutes``.

    ``minutes`` is ``None`` for a single, unlimited period. Events of one kind have equal details,
    such as the file and the logger, except for the details in ``drops``. The minutes of a coarser
    grain are a multiple of those of each finer grain, or unlimited. A coarser grain drops at least
    the same details, and keeps a subset of the events. The last grain also limits the number of
    kinds.

    There are exceptions. Every grain keeps all witnesses, and the finest grain keeps all events of
    ``KEPT_KINDS``. Of consecutive completed checkpoints, only the first and the last are kept. Of
    plain events (see ``kept_of``), at most two are kept. Of equal events of ``LOGGED_AT_STARTUP``,
    the other grains keep at most two in all periods together.
    """

    minutes: int | None
    keep: int
    drops: frozenset[str] = frozenset()
    is_finest: bool = False
    is_last: bool = False

    def kept_of(self, *, is_plain: bool) -> int:
        """The maximum number of events to keep of one kind and stack trace in a period.

        ``is_plain`` means that the events have no match, no lifecycle event, and no stack trace.
        """
        return min(self.keep, _PLAIN_KEEP) if is_plain else self.keep


_MINUTES = (1, 5, 15, 60, 180, 720, 1440, 10080, None)
# Details are dropped in this order; each step also drops the previous details.
_DROPPED = ("task", "logger", "job", "path")


@cache
def grains_of(keep: int) -> tuple[Grain, ...]:
    """All grains, from the finest to the coarsest; all but the last keep ``keep`` events."""
    without = (frozenset(_DROPPED[:count]) for count in range(1, 1 + len(_DROPPED)))
    return (
        Grain(1, keep, is_finest=True),
        *(Grain(minutes, keep) for minutes in _MINUTES),
        *(Grain(None, keep, drops) for drops in without),
        Grain(None, 2, frozenset(_DROPPED), is_last=True),
    )


def period_of(at: datetime | None, minutes: int | None) -> int | None:
    """The index of the period of ``minutes`` that contains ``at``, counted from 1970.

    ``None`` if the time is unknown or the period is unlimited.
    """
    if at is None or minutes is None:
        return None
    return int(at.timestamp() // (60 * minutes))
