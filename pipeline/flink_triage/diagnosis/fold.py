"""Many equal observations in, few out: what keeps a crash loop of ten million events in memory.

Of the observations that say the same thing in one file within one minute the first few are kept;
the last kept one counts the rest.  Of a flood of traces that differ in nothing but the trace some
are kept, and the first of the others counts all others.  Folding is associative, so that it does
not matter in which parts, or how often, it is done.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from datetime import datetime

from ..logs.routine import drop_routine, routine_key
from ..model import Observation
from ..settings import Settings

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

# No fingerprint is this.
_OTHERS = "others"
# Observations that are folded at a time.
FOLD_EVERY = 8_192


class Folder:
    """Folds observations as they come: what is held is what is kept, and as much again."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._kept: list[Observation] = []
        self._new: list[Observation] = []

    def add(self, observations: Iterable[Observation]) -> int:
        """The number of observations that are kept so far, not counting those not yet folded."""
        self._new += observations
        # Folding as much as is kept, each time, keeps the sum of all foldings linear.
        if len(self._new) >= max(FOLD_EVERY, len(self._kept)):
            self.fold()
        return len(self._kept)

    def fold(self) -> list[Observation]:
        """All that is kept, in the order of the files."""
        if self._new:
            self._kept = fold([*self._kept, *self._new], self._settings)
            self._new = []
        return self._kept

    def take(self) -> list[Observation]:
        """The same, and nothing is held any more."""
        kept, self._kept = self.fold(), []
        return kept


def fold(observations: Iterable[Observation], settings: Settings) -> list[Observation]:
    """Keep so many observations of each kind per file and minute; order by file, offset.

    The sum of ``occurrences`` is unchanged.
    """
    keep = settings.max_observations_per_key
    kinds: dict[tuple[object, ...], dict[str, list[Observation]]] = {}
    folded: list[Observation] = []
    for observation in sorted(observations, key=_place):
        key = _fold_key(observation)
        if key is None:
            folded.append(observation)
            continue
        trace = observation.fingerprint.full if observation.fingerprint else ""
        group = kinds.setdefault(key, {}).setdefault(trace, [])
        if len(group) < keep:
            group.append(observation)
        else:
            group[-1] = _absorb(group[-1], observation)
    for by_trace in kinds.values():
        if len(by_trace) > settings.max_traces_per_key:
            _fold_traces(by_trace, settings.max_traces_per_key)
        for group in by_trace.values():
            folded += group
    folded.sort(key=_place)
    return drop_routine(folded, _routine_key)


def _fold_traces(by_trace: dict[str, list[Observation]], keep: int) -> None:
    """Keep so many traces; the first observation of all others stays, and counts them.

    Which are kept follows from their fingerprints alone: a trace that is left out of a part is left
    out of the whole.
    """
    others = [by_trace.pop(trace) for trace in sorted(by_trace)[keep:]]
    first, *rest = sorted((o for group in others for o in group), key=_place)
    for observation in rest:
        first = _absorb(first, observation)
    by_trace[_OTHERS] = [first]


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
