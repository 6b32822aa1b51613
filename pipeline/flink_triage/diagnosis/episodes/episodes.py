"""A deployment's timeline in, episodes out: last healthy point, faults, restarts, how it ended.

A job that fails over and over prints one fault and its consequences again and again.  Failures
with the same cause are one episode; a completed checkpoint followed by a failure with another
cause begins a new one, and so does any fault after hours without one.
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
    """The faults between one failure of the job and the one before it.

    ``well_at`` is when the last checkpoint in between completed.
    """

    failed_at: datetime | None
    faults: tuple[Moment, ...]
    well_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Episode:
    """One stretch of trouble of one job, or of the cluster when ``job_id`` is ``None``.

    ``parts`` are the episodes of single jobs that were joined because one fault hit them all;
    ``aftermath`` are faults that followed from these and failed nothing themselves.
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
        """Whether it is made of exceptions that own code went on from: trouble of nobody."""
        return all(moment.is_handled for moment in self.faults)

    @property
    def has_failed(self) -> bool:
        """Whether the job failed, rather than went on in trouble."""
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
    """All episodes of a deployment, in time order; a healthy deployment has none.

    Exceptions that own code went on from are in none but their own: they neither begin the trouble
    of a job, nor are they its first fault, nor join what has nothing else in common.
    """
    by_job: dict[str | None, list[Moment]] = {}
    caught: dict[str | None, list[Moment]] = {}
    for moment in timeline.moments:
        lanes = caught if moment.is_handled else by_job
        lanes.setdefault(moment.job_id, []).append(moment)
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
    for job_id, moments in caught.items():
        episodes += _episodes_of_job(job_id, _History.of(moments), pack)
    return sorted(episodes, key=_episode_order)


def _episode_order(episode: Episode) -> tuple[datetime, str]:
    return episode.first_fault.at, episode.job_id or ""


@dataclass(frozen=True, slots=True)
class _History:
    """The moments of one job in time order, with what is looked up by time."""

    moments: Sequence[Moment]
    times: Sequence[datetime]
    checkpoints: Sequence[Moment]
    checkpoint_times: Sequence[datetime]

    @classmethod
    def of(cls, moments: Sequence[Moment]) -> _History:
        checkpoints = [m for m in moments if m.kind == "checkpoint-completed"]
        return cls(moments, [m.at for m in moments], checkpoints, [m.at for m in checkpoints])

    def between(self, start: datetime, end: datetime | None) -> Sequence[Moment]:
        """Moments of [start, end), or of [start, ...) for ``None``."""
        first = bisect_left(self.times, start)
        return self.moments[first : None if end is None else bisect_left(self.times, end)]

    def has_checkpoint_between(self, after: datetime, before: datetime) -> bool:
        position = bisect_right(self.checkpoint_times, after)
        return position < len(self.checkpoints) and self.checkpoint_times[position] < before

    def last_checkpoint(self, at: datetime) -> Moment | None:
        position = bisect_right(self.checkpoint_times, at)
        return self.checkpoints[position - 1] if position else None


def is_fault(moment: Moment, pack: SignaturePack) -> bool:
    """Whether a moment says that something went wrong: more than a benign match or a warning."""
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
        of_attempt = _trouble_keys(attempt, pack)
        goes_on = bool(groups) and not _is_over(last_fault, attempt.faults[0].at)
        if goes_on and _is_same_trouble(groups[-1][-1], attempt, history, keys, of_attempt):
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
    """When the job failed: its state says so, or else its restarts, or else its tasks."""
    told = [(m, word) for m in moments if (word := failure_rank(m.observation)) is not None]
    if not told:
        return []
    best = min(word for _, word in told)
    times = sorted({m.at for m, word in told if word == best and not (m.is_witness or m.is_stop)})
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
    # Of the faults those before were long over when the next one came.
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
    """Whether all that a fault tells is that somebody stopped something in order."""
    signatures = [pack.signatures[match.signature] for match in moment.observation.matches]
    return bool(signatures) and all(signature.is_order for signature in signatures)


def _is_over(last_fault: datetime, at: datetime) -> bool:
    return _is_long(last_fault, at, OVER_AFTER)


def _is_long(since: datetime, at: datetime, time: timedelta) -> bool:
    return since != NO_TIME and at - since > time


def _is_same_trouble(
    last: Attempt, attempt: Attempt, history: _History, keys: set[str], of_attempt: set[str]
) -> bool:
    before, after = last.faults[-1].at, attempt.faults[0].at
    if not history.has_checkpoint_between(before, after):
        return True
    return not keys.isdisjoint(of_attempt)


def _trouble_keys(attempt: Attempt, pack: SignaturePack) -> set[str]:
    """What tells one trouble from another: its signatures, or else its unknown root causes."""
    keys: set[str] = set()
    for moment in attempt.faults:
        telling = [
            m.signature
            for m in moment.observation.matches
            if pack.signatures[m.signature].is_answer
        ]
        keys.update(telling)
        if not telling and moment.observation.fingerprint is not None:
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
        told = (m for m in within if m.kind == kind and m.to_state == to_state)
        return sum(moment.observation.occurrences for moment in told)

    return count("job-state", "RESTARTING") or count("restart")


def _ended_at(last_fault: datetime, after: Sequence[Moment]) -> datetime | None:
    healthy = next((m.at for m in after if m.kind == "checkpoint-completed"), None)
    at = healthy or last_fault
    return None if at == NO_TIME else at


def _attach(
    episodes: list[Episode], faults: Sequence[Moment]
) -> tuple[list[Episode], list[Moment]]:
    """Give faults that name no job to the episodes near them; the rest is the cluster's.

    A job that reports the same itself is the one that such a fault speaks of.  Where none does, it
    is a fault of each: a lost TaskManager is one of all jobs that ran on it.
    """
    left: list[Moment] = []
    given: dict[int, list[Moment]] = {}
    told = [_told(episode.faults) for episode in episodes]
    starts = [e.first_fault.at for e in episodes]
    ends = [e.last_fault.at for e in episodes]
    # The latest end among each episode and those before it says where looking back can stop.
    latest = list(itertools.accumulate(ends, max))
    for fault in faults:
        near: list[int] = []
        for i in reversed(range(_last_to_look_at(starts, fault.at))):
            if _is_near(fault.at, starts[i], ends[i]):
                near.append(i)
            elif fault.at != NO_TIME and latest[i] + FAILURE_SLACK < fault.at:
                break
        own = _told((fault,))
        for i in [i for i in near if not own.isdisjoint(told[i])] or near:
            given.setdefault(i, []).append(fault)
        if not near:
            left.append(fault)
    return [
        _with_faults(episode, given[i]) if i in given else episode
        for i, episode in enumerate(episodes)
    ], left


def _told(faults: Iterable[Moment]) -> set[str]:
    """What faults say went wrong: signatures, and identities of root causes."""
    told: set[str] = set()
    for moment in faults:
        told.update(match.signature for match in moment.observation.matches)
        if moment.observation.fingerprint is not None:
            told.add(moment.observation.fingerprint.root_cause)
    return told


def _last_to_look_at(starts: Sequence[datetime], at: datetime) -> int:
    return len(starts) if at == NO_TIME else bisect_right(starts, at + CLUSTER_LEAD)


def _is_near(at: datetime, start: datetime, end: datetime) -> bool:
    if NO_TIME in (at, start):
        return True
    return start - CLUSTER_LEAD <= at <= end + FAILURE_SLACK


def _with_faults(episode: Episode, faults: Sequence[Moment]) -> Episode:
    attempts = [list(attempt.faults) for attempt in episode.attempts]
    # Each goes to the first attempt that had not failed long before it.
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
    """Sort key: by time, then as in the file."""
    return moment.at, moment.observation.event.path, moment.observation.event.offset
