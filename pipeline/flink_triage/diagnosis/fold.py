"""Many equal observations in, few out: what keeps a crash loop of ten million events in memory.

Of the observations that say the same thing in one file within one minute the first few are kept and
the last; the one before the last counts the rest.  Of a flood of traces that differ in nothing but
the trace some are kept, and the first of the others counts them.  Of a deployment that is more than
memory should hold even so, fewer of longer times are kept.  Folding is associative, so that it does
not matter in which parts, or how often, it is done.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache

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
_SAID_AT_START = frozenset({"config", "version"})

# No fingerprint is this.
_OTHERS = "others"
# Observations that are folded at a time.
FOLD_EVERY = 8_192


@dataclass(frozen=True, slots=True)
class _Grain:
    """How finely observations are told apart: so many are kept of a kind in so many minutes.

    ``minutes`` is ``None`` for all time.  A coarser grain's minutes are a multiple, and it keeps no
    more: what it keeps is among what a finer one kept.  The finest keeps all of ``_KEPT_KINDS``.
    """

    minutes: int | None
    keep: int
    is_finest: bool = False


_FEW = 10
_COARSER = tuple(_Grain(minutes, _FEW) for minutes in (1, 5, 15, 60, 180, 720, 1440, 10080, None))


class Folder:
    """Folds observations as they come: what is held is what is kept, and as much again."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._grains = _grains(settings.max_observations_per_key)
        self._kept: list[Observation] = []
        self._new: list[Observation] = []

    @property
    def coarseness(self) -> int:
        """How many grains were too fine so far for what came."""
        return 1 + len(_COARSER) - len(self._grains)

    def add(self, observations: Iterable[Observation], coarseness: int = 0) -> int:
        """The number of observations that are kept so far, not counting those not yet folded.

        ``coarseness`` is that of the folder that they were taken from: all is folded alike.
        """
        self._new += observations
        self._grains = self._grains[max(0, coarseness - self.coarseness) :]
        # Folding as much as is kept, each time, keeps the sum of all foldings linear.
        if len(self._new) >= max(FOLD_EVERY, len(self._kept)):
            self.fold()
        return len(self._kept)

    def fold(self) -> list[Observation]:
        """All that is kept, in the order of the files."""
        if self._new:
            observations = [*self._kept, *self._new]
            self._new = []
            # What was too much once is so with more.
            self._kept, self._grains = _fold(observations, self._grains, self._settings)
        return self._kept

    def take(self) -> list[Observation]:
        """The same, and nothing is held any more."""
        kept, self._kept = self.fold(), []
        return kept


def fold(observations: Iterable[Observation], settings: Settings) -> list[Observation]:
    """Keep some observations of each kind per file and minute; order by file, offset.

    If more than ``max_observations`` were kept, those of a longer time are of one kind: no longer
    than has to be.  The sum of ``occurrences`` is unchanged, but for checkpoints in good health.
    """
    return _fold(observations, _grains(settings.max_observations_per_key), settings)[0]


@cache
def _grains(keep: int) -> tuple[_Grain, ...]:
    """From the finest, which keeps so many, to the coarsest."""
    return _Grain(1, keep, is_finest=True), *(
        replace(grain, keep=min(grain.keep, keep)) for grain in _COARSER
    )


def _fold(
    observations: Iterable[Observation], grains: Sequence[_Grain], settings: Settings
) -> tuple[list[Observation], tuple[_Grain, ...]]:
    """What the finest grain keeps that does not keep too much, and the grains from there on."""
    kept = _fold_to(sorted(observations, key=_place), grains[0], settings)
    while len(kept) > settings.max_observations and len(grains) > 1:
        grains = grains[1:]
        kept = _fold_to(kept, grains[0], settings)
    return kept, tuple(grains)


def _fold_to(
    observations: Iterable[Observation], grain: _Grain, settings: Settings
) -> list[Observation]:
    kinds: dict[tuple[object, ...], dict[str, list[Observation]]] = {}
    folded: list[Observation] = []
    for observation in observations:
        if _is_kept(observation, grain):
            folded.append(observation)
            continue
        key, keep = _kind_of(observation, grain)
        trace = observation.fingerprint.full if observation.fingerprint else ""
        group = kinds.setdefault(key, {}).setdefault(trace, [])
        _keep_ends(group, observation, keep)
    for by_trace in kinds.values():
        if len(by_trace) > settings.max_traces_per_key:
            _fold_traces(by_trace, settings.max_traces_per_key)
        for group in by_trace.values():
            folded += group
    folded.sort(key=_place)
    return drop_routine(folded, lambda observation: _routine_key(observation, grain))


def _fold_traces(by_trace: dict[str, list[Observation]], keep: int) -> None:
    """Keep so many traces; of all others the first observation, which counts them, and the last.

    Which are kept follows from their fingerprints alone: a trace that is left out of a part is left
    out of the whole.
    """
    others = [by_trace.pop(trace) for trace in sorted(by_trace)[keep:]]
    group: list[Observation] = []
    for observation in sorted((o for of_trace in others for o in of_trace), key=_place):
        _keep_ends(group, observation, 2)
    by_trace[_OTHERS] = group


def _keep_ends(group: list[Observation], observation: Observation, keep: int) -> None:
    """Append to ``group``; beyond ``keep`` the one before the last counts what was between."""
    group.append(observation)
    if len(group) > keep:
        group[-3] = _absorb(group[-3], group[-2])
        del group[-2]


def _routine_key(observation: Observation, grain: _Grain) -> Hashable | None:
    if observation.occurrences == 0 or observation.matches:
        return None
    key = routine_key(observation.event)
    return None if key is None else (*key[:2], _period(key[2], grain.minutes))


def _place(observation: Observation) -> tuple[str, int]:
    return observation.event.path, observation.event.offset


def _is_kept(observation: Observation, grain: _Grain) -> bool:
    """Whether it is kept, whatever else says the same; of checkpoints neighbours decide."""
    lifecycle = observation.event.lifecycle
    if observation.occurrences == 0 or _routine_key(observation, grain) is not None:
        return True
    return grain.is_finest and lifecycle is not None and lifecycle.kind in _KEPT_KINDS


def _kind_of(observation: Observation, grain: _Grain) -> tuple[tuple[object, ...], int]:
    """What observations of one kind have in common, and how many of them are kept."""
    event, lifecycle = observation.event, observation.event.lifecycle
    kind = lifecycle.kind if lifecycle is not None else None
    if lifecycle is not None and kind in _SAID_AT_START:
        return (event.path, kind, lifecycle.key, lifecycle.value), 2
    told: tuple[object, ...] = ()
    if lifecycle is not None and kind in _KEPT_KINDS:
        told = lifecycle.job_id, lifecycle.to_state
    key = (
        event.path,
        _period(event.logged_at, grain.minutes),
        kind,
        event.level,
        event.logger,
        event.job_id,
        tuple((m.signature, m.alternative) for m in observation.matches),
        observation.task,
        observation.subtask,
        *told,
    )
    return key, grain.keep


def _period(at: datetime | None, minutes: int | None) -> int | None:
    """The number of the ``minutes`` since 1970 that hold ``at``."""
    if at is None or minutes is None:
        return None
    return int(at.timestamp() // (60 * minutes))


def _absorb(kept: Observation, other: Observation) -> Observation:
    times = [_last(kept), _last(other)]
    known = [at for at in times if at is not None]
    return replace(
        kept,
        occurrences=kept.occurrences + other.occurrences,
        last_logged_at=max(known) if known else None,
    )


def is_thinned(observation: Observation) -> bool:
    """Whether it counts events of more than its minute: more than memory should hold were told."""
    first, last = observation.event.logged_at, observation.last_logged_at
    if first is None or last is None:
        return False
    return _period(first, 1) != _period(last, 1)


def _last(observation: Observation) -> datetime | None:
    return observation.last_logged_at or observation.event.logged_at
