"""Many equal observations in, few out: what keeps a crash loop of ten million events in memory.

Of the observations that say the same thing in one file within one minute the first few are kept and
the last; the one before the last counts the rest.  Of a flood of traces that differ in nothing but
the trace some are kept, and the first of the others counts them.  Where a deployment has more than
``max_observations``, longer times and less detail are of one kind: never more are kept.  Folding is
associative, so that it does not matter in which parts, or how often, it is done.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import accumulate, chain

from flink_triage.grains import KEPT_KINDS, SAID_AT_START, Grain, grains_of, period_of
from flink_triage.logs.routine import routine_key
from flink_triage.model import Observation
from flink_triage.settings import Settings
from flink_triage.spread import Spread

# Stands behind every fingerprint.
_OTHERS = "~"
# Observations that are folded at a time.
FOLD_EVERY = 8_192
_NO_TIME = datetime(1, 1, 1, tzinfo=UTC)


class Folder:
    """Folds observations as they come: what is held is what is kept, and as much again.

    ``coarseness`` is that of a folder whose observations will be folded together with these.
    """

    def __init__(self, settings: Settings, coarseness: int = 0) -> None:
        self._settings = settings
        self.coarseness = coarseness
        self._kept: list[Observation] = []
        self._new: list[Observation] = []

    def add(self, observations: Iterable[Observation], coarseness: int = 0) -> int:
        """The number of observations that are kept so far, not counting those not yet folded.

        ``coarseness`` is that of the folder that they were taken from: all is folded alike.
        """
        self._new += observations
        self.coarseness = max(coarseness, self.coarseness)
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
            self._kept, self.coarseness = _fold(observations, self.coarseness, self._settings)
        return self._kept

    def take(self) -> list[Observation]:
        """The same, and nothing is held any more."""
        kept, self._kept = self.fold(), []
        return kept


def fold(
    observations: Iterable[Observation], settings: Settings, coarseness: int = 0
) -> list[Observation]:
    """Keep some observations of each kind per file and minute; order by file, offset.

    If more than ``max_observations`` were kept, those of a longer time are of one kind, then those
    that differ in task, logger, job and file: no longer and no more than has to be.  The
    sum of ``occurrences`` is unchanged, but for checkpoints in good health.
    """
    return _fold(observations, coarseness, settings)[0]


def _fold(
    observations: Iterable[Observation], coarseness: int, settings: Settings
) -> tuple[list[Observation], int]:
    """What the finest grain keeps that does not keep too much, and how coarse that is."""
    grains = grains_of(settings.max_observations_per_key)
    kept = _fold_to(observations, grains[coarseness], settings)
    if len(kept) <= settings.max_observations:
        return kept, coarseness
    # A coarser grain keeps no more than a finer one, and the same of what that one kept.
    source = kept
    finest, coarsest = coarseness + 1, len(grains) - 1
    while finest <= coarsest:
        middle = (finest + coarsest) // 2
        folded = _fold_to(source, grains[middle], settings)
        if len(folded) > settings.max_observations and not grains[middle].is_last:
            source, finest = folded, middle + 1
        else:
            kept, coarseness, coarsest = folded, middle, middle - 1
    return kept, coarseness


def _fold_to(
    observations: Iterable[Observation], grain: Grain, settings: Settings
) -> list[Observation]:
    """What the grain keeps, in the order of the files."""
    kinds: dict[tuple[object, ...], dict[str, list[Observation]]] = {}
    keep_of: dict[tuple[object, ...], int] = {}
    kept: list[Observation] = []
    routine: list[Observation] = []
    for observation in sorted(observations, key=_moment):
        if _routine_key(observation, grain) is not None:
            routine.append(observation)
            continue
        if _is_kept(observation, grain):
            kept.append(observation)
            continue
        key, keep = _kind_of(observation, grain)
        keep_of[key] = keep
        trace = observation.fingerprint.full if observation.fingerprint else ""
        kinds.setdefault(key, {}).setdefault(trace, []).append(observation)
    if grain.is_last:
        # Not counted: how many there are depends on those that finer grains left out.
        kept += routine[:1] + routine[1:][-1:]
        routine = []
    groups: dict[str, list[Observation]] = {}
    for key, by_trace in kinds.items():
        if len(by_trace) > settings.max_traces_per_key:
            _fold_rest(by_trace, settings.max_traces_per_key)
        if grain.is_last:
            groups |= {f"{key!r} {trace}": group for trace, group in by_trace.items()}
        else:
            kept += chain.from_iterable(_ends(group, keep_of[key]) for group in by_trace.values())
    most = settings.max_observations - len(kept)
    if len(groups) * grain.keep > most:
        _fold_rest(groups, max(most // grain.keep - 1, 0))
    kept += chain.from_iterable(_ends(group, grain.keep) for group in groups.values())
    return _with_routine(kept, routine, lambda observation: _routine_key(observation, grain))


def _fold_rest(groups: dict[str, list[Observation]], keep: int) -> None:
    """Keep so many groups; of all others the first observation, which counts them, and the last.

    Which are kept follows from their names alone: what is left out of a part is left out of the
    whole.
    """
    others = [observation for name in sorted(groups)[keep:] for observation in groups.pop(name)]
    groups[_OTHERS] = _ends(sorted(others, key=_moment), 2)


def _ends(group: list[Observation], keep: int) -> list[Observation]:
    """The first ones and the last; beyond ``keep`` the one before the last counts the others."""
    if len(group) <= keep:
        return group
    first = group[: keep - 1]
    first[-1] = _absorb(first[-1], group[keep - 1 : -1])
    return [*first, group[-1]]


def _with_routine(
    kept: list[Observation],
    routine: list[Observation],
    key_of: Callable[[Observation], Hashable],
) -> list[Observation]:
    """All in the order of the files; of completed checkpoints between two others, those of a job
    and period that are the first or the last.
    """
    kept.sort(key=_place)
    if not routine:
        return kept
    together = sorted([*kept, *routine], key=_place)
    is_routine = {id(observation) for observation in routine}
    # Between which others each stands.
    gaps = accumulate(id(observation) not in is_routine for observation in together)
    ends: dict[Hashable, list[Observation]] = {}
    for observation, gap in zip(together, gaps, strict=True):
        if id(observation) in is_routine:
            of_key = ends.setdefault((gap, key_of(observation)), [])
            of_key[1:] = [observation]
    kept_routine = {id(observation) for of_key in ends.values() for observation in of_key}
    return [o for o in together if id(o) not in is_routine or id(o) in kept_routine]


def _routine_key(observation: Observation, grain: Grain) -> Hashable | None:
    if observation.occurrences == 0 or observation.matches:
        return None
    key = routine_key(observation.event)
    if key is None:
        return None
    path, job_id, minute = key
    return path, None if "job" in grain.drops else job_id, period_of(minute, grain.minutes)


def _place(observation: Observation) -> tuple[str, int]:
    return observation.event.path, observation.event.offset


def _moment(observation: Observation) -> tuple[datetime, str, int]:
    event = observation.event
    return event.logged_at or _NO_TIME, event.path, event.offset


def _is_kept(observation: Observation, grain: Grain) -> bool:
    """Whether it is kept, whatever else says the same."""
    lifecycle = observation.event.lifecycle
    if observation.occurrences == 0:
        return True
    return grain.is_finest and lifecycle is not None and lifecycle.kind in KEPT_KINDS


def _kind_of(observation: Observation, grain: Grain) -> tuple[tuple[object, ...], int]:
    """What observations of one kind have in common, and how many of them are kept."""
    event, lifecycle = observation.event, observation.event.lifecycle
    kind = lifecycle.kind if lifecycle is not None else None
    drops = grain.drops
    path = None if "path" in drops else event.path
    if lifecycle is not None and kind in SAID_AT_START:
        return (path, kind, lifecycle.key, lifecycle.value), 2
    told: tuple[object, ...] = ()
    if lifecycle is not None and kind in KEPT_KINDS:
        told = None if "job" in drops else lifecycle.job_id, lifecycle.to_state
    key = (
        path,
        period_of(event.logged_at, grain.minutes),
        kind,
        event.level,
        None if "logger" in drops else event.logger,
        None if "job" in drops else event.job_id,
        tuple((m.signature, m.alternative) for m in observation.matches),
        None if "task" in drops else observation.task,
        *told,
    )
    return key, grain.keep


def _absorb(kept: Observation, others: Sequence[Observation]) -> Observation:
    """The first of some that say the same, which counts the others."""
    known = [at for at in (_last(kept), *map(_last, others)) if at is not None]
    return replace(
        kept,
        occurrences=kept.occurrences + sum(other.occurrences for other in others),
        last_logged_at=max(known) if known else None,
        spread=_spread(kept, others),
    )


def _spread(kept: Observation, others: Sequence[Observation]) -> Spread | None:
    """Where all were logged, if that is not told by the one that is kept."""
    elsewhere = {_whence(other): other for other in others if other.spread is None}
    elsewhere.pop(_whence(kept), None)
    spreads = [other.reach for other in elsewhere.values()]
    spreads += [other.reach for other in others if other.spread is not None]
    if not spreads:
        return kept.spread
    reach = kept.reach
    together = reach.union(spreads)
    return kept.spread if together == reach else together


def _whence(observation: Observation) -> tuple[object, ...]:
    o = observation
    return o.task, o.subtask, o.parallelism, o.host, o.event.path


def is_thinned(observation: Observation) -> bool:
    """Whether it counts events of more than its minute: more than memory should hold were told."""
    first, last = observation.event.logged_at, observation.last_logged_at
    if first is None or last is None:
        return False
    return period_of(first, 1) != period_of(last, 1)


def _last(observation: Observation) -> datetime | None:
    return observation.last_logged_at or observation.event.logged_at
