"""Folds equal observations, so that a crash loop of ten million events fits in memory.

If a file has more equal observations in a minute than the limit, the first ones and the last are
kept, and the second-to-last carries the count of the others. Of observations that differ only in
their stack traces, a limited number of traces is kept. Of the other traces, the first and the last
observation are kept, and the first carries the count. Of consecutive completed checkpoints of a
job, only the first and the last are kept. The finest grain (see `fold_grains`) keeps all other
lifecycle events of ``KEPT_KINDS``. If a deployment still has more than ``max_observations``, a
coarser grain folds observations over longer periods and with fewer equal properties. Witnesses are
always kept. Folding is associative: the result does not depend on how observations are divided into
parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain

from flink_triage.fold_grains import KEPT_KINDS, LOGGED_AT_STARTUP, Grain, grains_of, period_of
from flink_triage.logs.routine import Role, Routine, Separator, drop_routine, role_of
from flink_triage.model import Observation
from flink_triage.reach import Spread
from flink_triage.settings import Settings

# Sorts after every fingerprint.
_OTHERS = "~"
# The minimum number of new observations that triggers folding.
FOLD_EVERY = 8_192
_NO_TIME = datetime(1, 1, 1, tzinfo=UTC)


class Folder:
    """Folds observations as they are added.

    It buffers as many new observations as it keeps folded ones, but at least ``FOLD_EVERY``.
    ``coarseness`` is the index of the first grain to use (see ``grains_of``).
    """

    def __init__(self, settings: Settings, coarseness: int = 0) -> None:
        self._settings = settings
        self.coarseness = coarseness
        self._kept: list[Observation] = []
        self._new: list[Observation] = []

    def add(self, observations: Iterable[Observation], coarseness: int = 0) -> int:
        """Add observations; return the number kept so far, excluding those not yet folded.

        ``coarseness`` is that of the ``Folder`` from which they were taken. If it is greater than
        the coarseness of this one, it applies to all observations from then on.
        """
        self._new += observations
        self.coarseness = max(coarseness, self.coarseness)
        # Folding at least as many as are kept each time makes the total cost linear.
        if len(self._new) >= max(FOLD_EVERY, len(self._kept)):
            self.fold()
        return len(self._kept)

    def fold(self) -> list[Observation]:
        """The kept observations, by file and offset."""
        if self._new:
            observations = [*self._kept, *self._new]
            self._new = []
            # More observations never require a finer grain.
            self._kept, self.coarseness = _fold(observations, self.coarseness, self._settings)
        return self._kept

    def take(self) -> list[Observation]:
        """The kept observations; the ``Folder`` is empty afterwards."""
        kept, self._kept = self.fold(), []
        return kept


def fold(
    observations: Iterable[Observation], settings: Settings, coarseness: int = 0
) -> list[Observation]:
    """Keep some observations of each kind per file and minute, ordered by file and offset.

    If more than ``max_observations`` would be kept, observations over longer periods count as one
    kind, and then observations that differ in task, logger, job, and file. The finest sufficient
    grain is used. The sum of ``occurrences`` does not change, except for completed checkpoints.
    """
    return _fold(observations, coarseness, settings)[0]


def _fold(
    observations: Iterable[Observation], coarseness: int, settings: Settings
) -> tuple[list[Observation], int]:
    """The observations that the finest grain within the limit keeps, and its coarseness."""
    grains = grains_of(settings.max_observations_per_key)
    kept = _fold_to(observations, grains[coarseness], settings)
    if len(kept) <= settings.max_observations:
        return kept, coarseness
    # A coarser grain keeps at most as many observations, and keeps the same ones when it is applied
    # to the result of a finer grain.
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
    """The observations that the grain keeps, ordered by file and offset."""
    kinds: dict[tuple[object, ...], dict[str, list[Observation]]] = {}
    kept: list[Observation] = []
    routine: list[Observation] = []
    for observation in sorted(observations, key=_moment):
        if isinstance(_role_of(observation, grain), Routine):
            routine.append(observation)
            continue
        if _is_kept(observation, grain):
            kept.append(observation)
            continue
        trace = observation.fingerprint.full if observation.fingerprint else ""
        kinds.setdefault(_kind_of(observation, grain), {}).setdefault(trace, []).append(observation)
    # The last grain keeps only the first and the last checkpoint of all jobs and files. It does not
    # count the others, because finer grains have already dropped some of them.
    kept += routine[:1] + routine[1:][-1:] if grain.is_last else routine
    groups: dict[str, list[Observation]] = {}
    ends: list[list[Observation]] = []
    for key, by_trace in kinds.items():
        if len(by_trace) > settings.max_traces_per_key:
            _fold_rest(by_trace, settings.max_traces_per_key)
        if grain.is_last:
            groups |= {f"{key!r} {trace}": group for trace, group in by_trace.items()}
        else:
            ends += (_ends(group, _kept_of(group[0], grain)) for group in by_trace.values())
    most = settings.max_observations - len(kept) - sum(map(len, ends))
    if len(groups) * grain.keep > most:
        _fold_rest(groups, max(most // grain.keep - 1, 0))
    ends += (_ends(group, grain.keep) for group in groups.values())
    kept += chain.from_iterable(ends)
    kept.sort(key=_place)
    outer = {id(one) for group in ends for one in (*group[:1], *group[-1:])}
    return drop_routine(
        kept, lambda one: Separator(None) if id(one) in outer else _role_of(one, grain)
    )


def _fold_rest(groups: dict[str, list[Observation]], keep: int) -> None:
    """Keep ``keep`` groups; of the others, keep the first (with the count) and last observation.

    Only the names determine which groups are kept, so that folding a subset of the observations
    never omits a group that folding all of them keeps.
    """
    others = [observation for name in sorted(groups)[keep:] for observation in groups.pop(name)]
    groups[_OTHERS] = _ends(sorted(others, key=_moment), 2)


def _ends(group: list[Observation], keep: int) -> list[Observation]:
    """The first ``keep - 1`` observations and the last one.

    The second-to-last of these also counts the omitted observations.
    """
    if len(group) <= keep:
        return group
    first = group[: keep - 1]
    first[-1] = _absorb(first[-1], group[keep - 1 : -1])
    return [*first, group[-1]]


def _role_of(observation: Observation, grain: Grain) -> Role:
    """`role_of` the event, with the period and the details of the grain.

    Witnesses, and completed checkpoints that match a signature, separate others.
    """
    event, role = observation.event, role_of(observation.event)
    if observation.occurrences == 0 or (role is not None and observation.matches):
        return Separator(None)
    if role is None:
        return None
    job = None if "job" in grain.drops else role.job
    if isinstance(role, Separator):
        return Separator(job)
    return Routine(job, (event.path, job, period_of(event.logged_at, grain.minutes)))


def _place(observation: Observation) -> tuple[str, int]:
    return observation.event.path, observation.event.offset


def _moment(observation: Observation) -> tuple[datetime, str, int]:
    event = observation.event
    return event.logged_at or _NO_TIME, event.path, event.offset


def _is_kept(observation: Observation, grain: Grain) -> bool:
    """Whether the grain always keeps the observation.

    This is the case for witnesses, and at the finest grain for all ``KEPT_KINDS``.
    """
    lifecycle = observation.event.lifecycle
    if observation.occurrences == 0:
        return True
    return grain.is_finest and lifecycle is not None and lifecycle.kind in KEPT_KINDS


def _kept_of(observation: Observation, grain: Grain) -> int:
    """The number of observations to keep of the kind and trace of ``observation``."""
    lifecycle = observation.event.lifecycle
    if lifecycle is not None and lifecycle.kind in LOGGED_AT_STARTUP:
        return 2
    is_plain = lifecycle is None and not observation.matches and observation.fingerprint is None
    return grain.kept_of(is_plain=is_plain)


def _kind_of(observation: Observation, grain: Grain) -> tuple[object, ...]:
    """The properties that observations of one kind share."""
    event, lifecycle = observation.event, observation.event.lifecycle
    kind = lifecycle.kind if lifecycle is not None else None
    drops = grain.drops
    path = None if "path" in drops else event.path
    if lifecycle is not None and kind in LOGGED_AT_STARTUP:
        return path, kind, lifecycle.key, lifecycle.value
    state: tuple[object, ...] = ()
    if lifecycle is not None and kind in KEPT_KINDS:
        state = None if "job" in drops else lifecycle.job_id, lifecycle.to_state
    return (
        path,
        period_of(event.logged_at, grain.minutes),
        kind,
        event.level,
        None if "logger" in drops else event.logger,
        None if "job" in drops else event.job_id,
        tuple((m.signature, m.alternative) for m in observation.matches),
        None if "task" in drops else observation.task,
        *state,
    )


def _absorb(kept: Observation, others: Sequence[Observation]) -> Observation:
    """``kept`` with the count and the last time of the ``others``."""
    known = [at for at in (_last(kept), *map(_last, others)) if at is not None]
    return replace(
        kept,
        occurrences=kept.occurrences + sum(other.occurrences for other in others),
        last_logged_at=max(known) if known else None,
        spread=_spread(kept, others),
    )


def _spread(kept: Observation, others: Sequence[Observation]) -> Spread | None:
    """The subtasks, hosts, and files of all; unchanged if the kept observation has them already."""
    elsewhere = {_source_of(other): other for other in others if other.spread is None}
    elsewhere.pop(_source_of(kept), None)
    spreads = [other.reach for other in elsewhere.values()]
    spreads += [other.reach for other in others if other.spread is not None]
    if not spreads:
        return kept.spread
    reach = kept.reach
    together = reach.union(spreads)
    return kept.spread if together == reach else together


def _source_of(observation: Observation) -> tuple[object, ...]:
    o = observation
    return o.task, o.subtask, o.parallelism, o.host, o.event.path


def is_thinned(observation: Observation) -> bool:
    """Whether ``observation`` counts events of several minutes, because the limit was exceeded."""
    first, last = observation.event.logged_at, observation.last_logged_at
    if first is None or last is None:
        return False
    return period_of(first, 1) != period_of(last, 1)


def _last(observation: Observation) -> datetime | None:
    return observation.last_logged_at or observation.event.logged_at
