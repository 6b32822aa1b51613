"""Many equal observations in, few out: what keeps a crash loop of ten million events in memory.

Of the observations that say the same thing in one file within one minute the first few are kept;
the last kept one counts the rest.  Folding is associative, so that it does not matter in which
parts, or how often, it is done.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from datetime import datetime

from ..logs.routine import drop_routine, routine_key
from ..model import Observation

# Kinds that the diagnosis counts or reads one by one, and that are rare or tell a value.
_KEPT_KINDS = frozenset(
    {
        "config",
        "version",
        "execution-graph",
        "job-state",
        "job-submitted",
        "job-terminal",
        "restart",
        "restored",
        "checkpoint-completed",
    }
)


def fold(observations: Iterable[Observation], keep: int) -> list[Observation]:
    """Keep at most ``keep`` observations of each kind per file and minute; order by file, offset.

    The sum of ``occurrences`` is unchanged.
    """
    groups: dict[tuple[object, ...], list[Observation]] = {}
    folded: list[Observation] = []
    for observation in sorted(observations, key=_place):
        key = _fold_key(observation)
        if key is None:
            folded.append(observation)
            continue
        group = groups.setdefault(key, [])
        if len(group) < keep:
            group.append(observation)
        else:
            group[-1] = _absorb(group[-1], observation)
    for group in groups.values():
        folded += group
    folded.sort(key=_place)
    return drop_routine(folded, _routine_key)


def _routine_key(observation: Observation) -> Hashable | None:
    if observation.occurrences == 0:
        return None
    return None if observation.matches else routine_key(observation.event)


def _place(observation: Observation) -> tuple[str, int]:
    return observation.event.path, observation.event.offset


def _fold_key(observation: Observation) -> tuple[object, ...] | None:
    event = observation.event
    kind = event.lifecycle.kind if event.lifecycle is not None else None
    if kind in _KEPT_KINDS or observation.occurrences == 0:
        return None
    minute = event.logged_at.replace(second=0, microsecond=0) if event.logged_at else None
    return (
        event.path,
        minute,
        kind,
        event.level,
        event.logger,
        event.job_id,
        observation.fingerprint.full if observation.fingerprint else None,
        tuple((m.signature, m.alternative) for m in observation.matches),
        observation.task,
        observation.subtask,
    )


def _absorb(kept: Observation, other: Observation) -> Observation:
    times = [_last(kept), _last(other)]
    known = [at for at in times if at is not None]
    return replace(
        kept,
        occurrences=kept.occurrences + other.occurrences,
        last_logged_at=max(known) if known else None,
    )


def _last(observation: Observation) -> datetime | None:
    return observation.last_logged_at or observation.event.logged_at
