"""Groups the faults of a deployment into episodes, and determines the outcome of each.

A job in a restart loop repeatedly logs one fault and its consequences. A new episode begins with
faults of a different cause after a completed checkpoint, or with the first fault after
``OVER_AFTER`` without faults.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from flink_triage.diagnosis.context.failures import FAILING_STATES, failure_rank
from flink_triage.diagnosis.durations import CLUSTER_LEAD, FAILURE_SLACK, OVER_AFTER, WELL_FOR
from flink_triage.diagnosis.episodes.outcome import outcome_of
from flink_triage.diagnosis.moment import NO_TIME, Moment
from flink_triage.diagnosis.timeline.timeline import DeploymentTimeline
from flink_triage.logs.layouts import ERROR_AND_ABOVE
from flink_triage.model import Checkpoint, Outcome
from flink_triage.signatures import SignaturePack

_NEVER = datetime.max.replace(tzinfo=UTC)


FAULT_KINDS = frozenset({"task-failed", "global-failure", "taskmanager-heartbeat-lost"})


@dataclass(frozen=True, slots=True)
class Attempt:
    """The faults between a failure of the job and the previous one, or faults without a failure.

    ``failed_at`` is ``None`` if the job did not fail. ``well_at`` is the time of the last
    checkpoint that completed in between.
    """

    failed_at: datetime | None
    faults: tuple[Moment, ...]
    well_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Episode:
    """A period of failures of one job, or of the cluster if ``job_id`` is ``None``.

    ``parts`` contains the episodes of single jobs that were merged because one fault affected all
    of them. ``aftermath`` contains later effects that did not fail a job.
    """

    job_id: str | None
    attempts: tuple[Attempt, ...]
    last_healthy: Checkpoint | None
    outcome: Outcome
    restarts: int
    ended_at: datetime | None
    parts: tuple[Episode, ...] = ()
    aftermath: tuple[Moment, ...] = ()

    @property
    def job_ids(self) -> frozenset[str | None]:
        return frozenset(part.job_id for part in self.parts) or frozenset({self.job_id})

    @property
    def is_handled(self) -> bool:
        """Whether all faults are exceptions that user code handled."""
        return all(moment.is_handled for moment in self.faults)

    @property
    def has_failed(self) -> bool:
        """Whether the job failed, and not only logged faults."""
        return any(attempt.failed_at is not None for attempt in self.attempts)

    @property
    def faults(self) -> tuple[Moment, ...]:
        return tuple(moment for attempt in self.attempts for moment in attempt.faults)

    @property
    def first_fault(self) -> Moment:
        return next(attempt.faults[0] for attempt in self.attempts if attempt.faults)

    @property
    def last_fault(self) -> Moment:
        return next(attempt.faults[-1] for attempt in reversed(self.attempts) if attempt.faults)


def find_episodes(timeline: DeploymentTimeline, pack: SignaturePack) -> list[Episode]:
    """All episodes of a deployment, in time order; empty if it has no faults.

    Exceptions that user code handled have separate episodes, so that they are never the first fault
    of a failure and never join two failures.
    """
    by_job: dict[str | None, list[Moment]] = {}
    handled: dict[str | None, list[Moment]] = {}
    for moment in timeline.moments:
        group = handled if moment.is_handled else by_job
        group.setdefault(moment.job_id, []).append(moment)
    cluster = by_job.pop(None, [])
    episodes: list[Episode] = []
    for job_id, moments in by_job.items():
        episodes += _episodes_of_job(job_id, _History.of(moments), pack)
    episodes.sort(key=_episode_order)
    episodes, left = _attach(episodes, [m for m in cluster if is_fault(m, pack)])
    if left:
        of_cluster = {id(m) for m in left}
        moments = [m for m in cluster if id(m) in of_cluster or not is_fault(m, pack)]
        episodes += _episodes_of_job(None, _History.of(moments), pack)
    for job_id, moments in handled.items():
        episodes += _episodes_of_job(job_id, _History.of(moments), pack)
    return sorted(episodes, key=_episode_order)


def _episode_order(episode: Episode) -> tuple[datetime, str]:
    return episode.first_fault.at, episode.job_id or ""


@dataclass(frozen=True, slots=True)
class _History:
    """The moments of one job in time order, with indices for lookups by time."""

    moments: Sequence[Moment]
    times: Sequence[datetime]
    checkpoints: Sequence[Moment]
    checkpoint_times: Sequence[datetime]

    @classmethod
    def of(cls, moments: Sequence[Moment]) -> _History:
        checkpoints = [m for m in moments if m.kind == "checkpoint-completed"]
        return cls(moments, [m.at for m in moments], checkpoints, [m.at for m in checkpoints])

    def between(self, start: datetime, end: datetime | None) -> Sequence[Moment]:
        """Moments in [start, end), or all moments from ``start`` on if ``end`` is ``None``."""
        first = bisect_left(self.times, start)
        return self.moments[first : None if end is None else bisect_left(self.times, end)]

    def has_checkpoint_between(self, after: datetime, before: datetime) -> bool:
        position = bisect_right(self.checkpoint_times, after)
        return position < len(self.checkpoints) and self.checkpoint_times[position] < before

    def last_checkpoint(self, at: datetime) -> Moment | None:
        position = bisect_right(self.checkpoint_times, at)
        return self.checkpoints[position - 1] if position else None


def is_fault(moment: Moment, pack: SignaturePack) -> bool:
    """Whether a moment is a fault.

    Faults are lines with a match that is not benign. Among lines without a match, failures of
    tasks and jobs, lost heartbeats of TaskManagers, and stack traces at level ERROR and above, or
    without a level, are faults. Witnesses and effects of an orderly shutdown are not.
    """
    observation = moment.observation
    if moment.is_witness or moment.is_stop:
        return False
    if any(pack.signatures[m.signature].role != "benign" for m in observation.matches):
        return True
    if observation.matches:
        return False
    if moment.kind in FAULT_KINDS or (
        moment.kind == "job-state" and moment.to_state in FAILING_STATES
    ):
        return True
    return observation.fingerprint is not None and (
        observation.event.level is None or observation.event.level in ERROR_AND_ABOVE
    )


def _episodes_of_job(job_id: str | None, history: _History, pack: SignaturePack) -> list[Episode]:
    groups: list[list[Attempt]] = []
    keys: set[str] = set()
    last_fault = NO_TIME
    for attempt in _attempts(history.moments, _failure_times(history.moments), pack):
        of_attempt = _cause_keys(attempt, pack)
        goes_on = bool(groups) and not _is_over(last_fault, attempt.faults[0].at)
        if goes_on and _has_same_cause(groups[-1][-1], attempt, history, keys, of_attempt):
            groups[-1].append(attempt)
            keys |= of_attempt
        else:
            groups.append([attempt])
            keys = of_attempt
        last_fault = max(last_fault, *(moment.until for moment in attempt.faults))
    starts = [group[0].faults[0].at for group in groups]
    return [
        _episode(job_id, group, until, history)
        for group, until in itertools.zip_longest(groups, starts[1:])
    ]


def _failure_times(moments: Sequence[Moment]) -> list[datetime]:
    """The times at which the job failed, in order; empty if no failure was logged.

    They come from the states of the job, or else from its restarts and global failures, or else
    from its failed tasks. Of failures that follow each other within ``FAILURE_SLACK``, only the
    first counts.
    """
    ranked = [(m, rank) for m in moments if (rank := failure_rank(m.observation)) is not None]
    if not ranked:
        return []
    best = min(rank for _, rank in ranked)
    times = sorted({m.at for m, rank in ranked if rank == best and not (m.is_witness or m.is_stop)})
    kept = times[:1]
    kept += [b for a, b in itertools.pairwise(times) if b - a > FAILURE_SLACK]
    return kept


def _attempts(
    moments: Sequence[Moment], failures: Sequence[datetime], pack: SignaturePack
) -> list[Attempt]:
    attempts: list[Attempt] = []
    faults: list[Moment] = []
    position = 0
    last_fault = NO_TIME
    is_well_again = False
    well_at: datetime | None = None
    # The number of faults that ended long before the next one.
    long_over = 0

    def close(failed_at: datetime | None) -> None:
        nonlocal well_at, long_over
        if failed_at is not None and long_over:
            attempts.append(Attempt(None, tuple(faults[:long_over])))
            del faults[:long_over]
        if faults:
            attempts.append(Attempt(failed_at, tuple(faults), well_at))
            faults.clear()
        well_at, long_over = None, 0

    for moment in moments:
        while position < len(failures) and moment.at > failures[position] + FAILURE_SLACK:
            close(failures[position])
            position += 1
        if moment.kind == "checkpoint-completed":
            is_well_again = True
            well_at = moment.at
        elif is_fault(moment, pack):
            is_stop = is_well_again and _is_asked_for(moment, pack)
            if faults and (is_stop or _is_over(last_fault, moment.at)):
                close(None)
            if is_well_again and _is_long(last_fault, moment.at, WELL_FOR):
                long_over = len(faults)
            faults.append(moment)
            last_fault = max(last_fault, moment.until)
            is_well_again = False
    close(failures[position] if position < len(failures) else None)
    return attempts


def _is_asked_for(moment: Moment, pack: SignaturePack) -> bool:
    """Whether all matches of a fault are orderly stops."""
    signatures = [pack.signatures[match.signature] for match in moment.observation.matches]
    return bool(signatures) and all(signature.is_order for signature in signatures)


def _is_over(last_fault: datetime, at: datetime) -> bool:
    return _is_long(last_fault, at, OVER_AFTER)


def _is_long(since: datetime, at: datetime, time: timedelta) -> bool:
    return since != NO_TIME and at - since > time


def _has_same_cause(
    last: Attempt, attempt: Attempt, history: _History, keys: set[str], of_attempt: set[str]
) -> bool:
    before, after = last.faults[-1].at, attempt.faults[0].at
    if not history.has_checkpoint_between(before, after):
        return True
    return not keys.isdisjoint(of_attempt)


def _cause_keys(attempt: Attempt, pack: SignaturePack) -> set[str]:
    """The possible diagnoses of each fault, or else the fingerprint of its root cause."""
    keys: set[str] = set()
    for moment in attempt.faults:
        answers = [
            m.signature
            for m in moment.observation.matches
            if pack.signatures[m.signature].is_answer
        ]
        keys.update(answers)
        if not answers and moment.observation.fingerprint is not None:
            keys.add(moment.observation.fingerprint.root_cause)
    return keys


def _episode(
    job_id: str | None, group: Sequence[Attempt], until: datetime | None, history: _History
) -> Episode:
    started, last_fault = group[0].faults[0].at, group[-1].faults[-1].at
    if last_fault != NO_TIME and (until is None or _is_over(last_fault, until)):
        until = last_fault + OVER_AFTER
    after = history.between(last_fault, until)
    within = history.between(started - FAILURE_SLACK, last_fault + FAILURE_SLACK)
    return Episode(
        job_id=job_id,
        attempts=tuple(group),
        last_healthy=_checkpoint(history.last_checkpoint(started)),
        outcome=outcome_of(within, after),
        restarts=_restart_count(within),
        ended_at=_ended_at(last_fault, after),
    )


def _checkpoint(moment: Moment | None) -> Checkpoint | None:
    lifecycle = moment.observation.event.lifecycle if moment is not None else None
    if moment is None or lifecycle is None or lifecycle.checkpoint_id is None:
        return None
    return Checkpoint(lifecycle.checkpoint_id, moment.observation.event.logged_at)


def _restart_count(within: Sequence[Moment]) -> int:
    def count(kind: str, to_state: str | None = None) -> int:
        counted = (m for m in within if m.kind == kind and m.to_state == to_state)
        return sum(moment.observation.occurrences for moment in counted)

    return count("job-state", "RESTARTING") or count("restart")


def _ended_at(last_fault: datetime, after: Sequence[Moment]) -> datetime | None:
    healthy = next((m.at for m in after if m.kind == "checkpoint-completed"), None)
    at = healthy or last_fault
    return None if at == NO_TIME else at


def _attach(
    episodes: list[Episode], faults: Sequence[Moment]
) -> tuple[list[Episode], list[Moment]]:
    """Add faults without a job to the episodes near them; return the others separately.

    Such a fault is added to the nearby episodes that report the same failure. If there are none, it
    is added to all nearby episodes: a lost TaskManager affects all jobs that ran on it.
    """
    left: list[Moment] = []
    given: dict[int, list[Moment]] = {}
    causes = [_all_keys(episode.faults) for episode in episodes]
    starts = [e.first_fault.at for e in episodes]
    ends = [e.last_fault.at for e in episodes]
    # The latest end among each episode and all before it, at which the backward search can stop.
    latest = list(itertools.accumulate(ends, max))
    for fault in faults:
        near: list[int] = []
        for i in reversed(range(_last_to_look_at(starts, fault.at))):
            if _is_near(fault.at, starts[i], ends[i]):
                near.append(i)
            elif fault.at != NO_TIME and latest[i] + FAILURE_SLACK < fault.at:
                break
        own = _all_keys((fault,))
        for i in [i for i in near if not own.isdisjoint(causes[i])] or near:
            given.setdefault(i, []).append(fault)
        if not near:
            left.append(fault)
    return [
        _with_faults(episode, given[i]) if i in given else episode
        for i, episode in enumerate(episodes)
    ], left


def _all_keys(faults: Iterable[Moment]) -> set[str]:
    """Signatures and root cause fingerprints of faults."""
    keys: set[str] = set()
    for moment in faults:
        keys.update(match.signature for match in moment.observation.matches)
        if moment.observation.fingerprint is not None:
            keys.add(moment.observation.fingerprint.root_cause)
    return keys


def _last_to_look_at(starts: Sequence[datetime], at: datetime) -> int:
    return len(starts) if at == NO_TIME else bisect_right(starts, at + CLUSTER_LEAD)


def _is_near(at: datetime, start: datetime, end: datetime) -> bool:
    if NO_TIME in (at, start):
        return True
    return start - CLUSTER_LEAD <= at <= end + FAILURE_SLACK


def _with_faults(episode: Episode, faults: Sequence[Moment]) -> Episode:
    attempts = [list(attempt.faults) for attempt in episode.attempts]
    # Each fault belongs to the first attempt that did not fail before it.
    failures = [attempt.failed_at for attempt in episode.attempts]
    ends = [_NEVER if at is None else at + FAILURE_SLACK for at in failures]
    latest = list(itertools.accumulate(ends, max))
    for fault in faults:
        attempts[min(bisect_left(latest, fault.at), len(attempts) - 1)].append(fault)
    return replace(
        episode,
        attempts=tuple(
            replace(old, faults=tuple(sorted(new, key=in_order)))
            for old, new in zip(episode.attempts, attempts, strict=True)
        ),
    )


def in_order(moment: Moment) -> tuple[datetime, str, int]:
    """Sort key: by time, then by file and position in the file."""
    return moment.at, moment.observation.event.path, moment.observation.event.offset
