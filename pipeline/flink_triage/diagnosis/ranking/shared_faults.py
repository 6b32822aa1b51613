"""Ranks episodes, and merges the episodes of several jobs that share a fault.

A lost TaskManager, an unavailable file system, or a JobManager without leadership usually fails all
jobs that depend on it, immediately or within a checkpoint interval. This is one incident: episodes
of several jobs are merged and ranked again if they follow each other within ``CLUSTER_LEAD``, and
if their first diagnoses are the same fault of the cluster or explain each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import regex as re

from flink_triage.diagnosis.durations import CLUSTER_LEAD, FAILURE_SLACK
from flink_triage.diagnosis.episodes.episodes import Attempt, Episode, in_order
from flink_triage.diagnosis.episodes.unknown_failures import first_unknown
from flink_triage.diagnosis.moment import NO_TIME, Moment
from flink_triage.diagnosis.ranking.causality import Candidate, reachable
from flink_triage.diagnosis.ranking.rank import rank
from flink_triage.diagnosis.timeline.timeline import DeploymentTimeline
from flink_triage.model import AffectedJob, BlastRadius, MinuteCount, Outcome
from flink_triage.signatures import SignaturePack

Ranked = tuple[Episode, list[Candidate]]

# The role and severity of symptoms that may follow an incident without failing a job.
_MINOR_SYMPTOMS = frozenset({("symptom", "minor"), ("symptom", "info")})
_OUTCOMES: tuple[Outcome, ...] = ("failed", "ongoing", "unknown", "recovered")
# The first minutes with faults show how the failure began and spread.
_MAX_MINUTES = 120
# Execution.transitionState: "... switched from RUNNING to FAILED on <resource id> @ <host> (...)".
_FAILED_ON = re.compile(r" to FAILED on (?P<id>\S{1,300}) @ (?P<host>\S{1,300})")
_MAX_MESSAGE_CHARS = 8192


def rank_episodes(
    episodes: Sequence[Episode],
    pack: SignaturePack,
    hosts: Mapping[str, datetime] | None = None,
    without: frozenset[str] = frozenset(),
) -> list[Ranked]:
    """Each episode with its candidates, in time order; episodes with a shared fault are merged.

    ``hosts`` contains the TaskManager hosts with the time of their first line. An episode counts
    hosts that existed at its end, so that later hosts do not change an earlier result. ``without``
    contains the ids of scoring rules to skip.
    """
    hosts = hosts or {}
    groups: list[_Group] = []
    open_: list[_Group] = []
    for episode in episodes:
        ranked = rank(episode, pack, _hosts_by(episode, hosts), without)
        best = next((c for c in ranked if c.signature.is_answer), None)
        start = episode.first_fault.at
        open_ = [g for g in open_ if g.end == NO_TIME or g.end + CLUSTER_LEAD >= start]
        group = next((g for g in open_ if g.shares(best, start, pack)), None)
        if group is not None:
            group.add(episode, ranked)
            continue
        group = _Group([(episode, ranked)], best, episode.last_fault.at)
        groups.append(group)
        if best is not None and best.signature.reach == "cluster":
            open_.append(group)
    joined = [one for group in groups for one in group.result(pack, hosts, without)]
    return _with_aftermath(joined, pack)


def _with_aftermath(episodes: Sequence[Ranked], pack: SignaturePack) -> list[Ranked]:
    """Merge each episode with the minor symptoms that it explains and that did not fail a job.

    For example, a process may look for a lost TaskManager after the job has recovered.
    """
    kept: list[Ranked] = []
    # Positions of episodes that ended shortly before.
    near: list[int] = []
    for episode, ranked in episodes:
        start = episode.first_fault.at
        near = [i for i in near if kept[i][0].last_fault.at + CLUSTER_LEAD >= start]
        left_by = None
        if _is_left_over(episode, ranked, pack):
            left_by = next(
                (i for i in reversed(near) if _leads(kept[i], episode, ranked, pack)), None
            )
        if left_by is not None:
            before, its = kept[left_by]
            kept[left_by] = replace(before, aftermath=(*before.aftermath, *episode.faults)), its
            continue
        if episode.last_fault.at != NO_TIME:
            near.append(len(kept))
        kept.append((episode, ranked))
    return kept


def _is_left_over(episode: Episode, ranked: Sequence[Candidate], pack: SignaturePack) -> bool:
    kinds = [(c.signature.role, c.signature.severity) for c in ranked]
    is_minor = bool(kinds) and all(kind in _MINOR_SYMPTOMS for kind in kinds)
    return is_minor and not episode.has_failed and first_unknown(episode, pack) is None


def _leads(
    earlier: Ranked, episode: Episode, ranked: Sequence[Candidate], pack: SignaturePack
) -> bool:
    """Whether the first diagnosis of an ``earlier`` episode explains all candidates of a later one.

    The episodes must not overlap. They must belong to the same job, or one of them to the cluster.
    """
    before, its = earlier
    jobs, others = before.job_ids, episode.job_ids
    if before.last_fault.at >= episode.first_fault.at:
        return False
    best = next((c for c in its if c.signature.is_answer), None)
    if best is None or not (None in jobs | others or jobs & others):
        return False
    return {candidate.id for candidate in ranked} <= reachable(best.id, pack)


@dataclass(slots=True)
class _Group:
    """Episodes that may share a fault; ``best`` is the first diagnosis of the first episode."""

    members: list[Ranked]
    best: Candidate | None
    end: datetime

    def shares(self, best: Candidate | None, start: datetime, pack: SignaturePack) -> bool:
        if best is None or self.best is None or best.signature.reach != "cluster":
            return False
        if (start == NO_TIME) != (self.end == NO_TIME):
            return False
        mine, other = self.best.id, best.id
        return mine == other or other in reachable(mine, pack) or mine in reachable(other, pack)

    def add(self, episode: Episode, ranked: list[Candidate]) -> None:
        self.members.append((episode, ranked))
        self.end = max(self.end, episode.last_fault.at)

    def result(
        self, pack: SignaturePack, hosts: Mapping[str, datetime], without: frozenset[str]
    ) -> list[Ranked]:
        if len({episode.job_id for episode, _ in self.members}) < 2:
            return self.members
        joined = _joined([episode for episode, _ in self.members])
        return [(joined, rank(joined, pack, _hosts_by(joined, hosts), without))]


def _hosts_by(episode: Episode, hosts: Mapping[str, datetime]) -> frozenset[str]:
    end = max(moment.at for moment in episode.faults)
    return frozenset(host for host, since in hosts.items() if since <= end or end == NO_TIME)


def _joined(parts: Sequence[Episode]) -> Episode:
    ends = [part.ended_at for part in parts]
    known = [at for at in ends if at is not None]
    return Episode(
        job_id=None,
        attempts=tuple(_joined_attempts(parts)),
        last_healthy=None,
        outcome=min((part.outcome for part in parts), key=_OUTCOMES.index),
        restarts=sum(part.restarts for part in parts),
        ended_at=max(known) if len(known) == len(ends) else None,
        parts=tuple(parts),
    )


def _joined_attempts(parts: Iterable[Episode]) -> list[Attempt]:
    """Merge simultaneous failures of several jobs; count a shared fault once."""
    attempts = [attempt for part in parts for attempt in part.attempts]
    attempts.sort(key=lambda a: (a.failed_at or a.faults[-1].at, in_order(a.faults[0])))
    seen: set[int] = set()
    joined: list[tuple[list[Attempt], list[Moment]]] = []
    for attempt in attempts:
        faults = [moment for moment in attempt.faults if id(moment) not in seen]
        seen.update(id(moment) for moment in faults)
        at = attempt.failed_at
        last = joined[-1][0][0].failed_at if joined else None
        if joined and (not faults or (at and last and at - last <= FAILURE_SLACK)):
            joined[-1][0].append(attempt)
            joined[-1][1].extend(faults)
        elif faults:
            joined.append(([attempt], faults))
    return [
        Attempt(of_jobs[0].failed_at, tuple(sorted(faults, key=in_order)), _all_well_at(of_jobs))
        for of_jobs, faults in joined
    ]


def _all_well_at(attempts: Sequence[Attempt]) -> datetime | None:
    times = [attempt.well_at for attempt in attempts]
    known = [at for at in times if at is not None]
    return min(known) if len(known) == len(times) else None


# --- blast radius --------------------------------------------------------------------------------


def blast_radius(timeline: DeploymentTimeline, episode: Episode) -> BlastRadius:
    """The affected jobs in time order, the hosts and TaskManagers, and the faults per minute.

    Only the first ``_MAX_MINUTES`` minutes with faults are included.
    """
    parts = sorted(episode.parts or (episode,), key=lambda part: in_order(part.first_fault))
    faults = episode.faults
    hosts = {o.host for moment in faults if (o := moment.observation).host}
    return BlastRadius(
        jobs=tuple(_affected(timeline, part) for part in parts if part.job_id is not None),
        hosts=tuple(sorted(hosts)),
        taskmanagers=tuple(sorted(taskmanagers_named(faults))),
        per_minute=_per_minute(faults),
    )


def _affected(timeline: DeploymentTimeline, part: Episode) -> AffectedJob:
    return AffectedJob(
        job_id=part.job_id,
        job_name=timeline.job_names.get(part.job_id) if part.job_id else None,
        started_at=part.first_fault.observation.event.logged_at,
        outcome=part.outcome,
        restarts=part.restarts,
        last_healthy=part.last_healthy,
    )


def taskmanagers_named(faults: Iterable[Moment]) -> dict[str, datetime]:
    """Resource ids of the TaskManagers in ``faults``, with the time of the first fault of each."""
    named: dict[str, datetime] = {}
    for moment in faults:
        lifecycle = moment.observation.event.lifecycle
        name = lifecycle.resource_id if lifecycle is not None else None
        if name is None and moment.kind == "task-failed":
            found = _FAILED_ON.search(moment.observation.event.message[:_MAX_MESSAGE_CHARS])
            name = found["id"] if found is not None else None
        if name is not None:
            named.setdefault(name, moment.at)
    return named


def _per_minute(faults: Iterable[Moment]) -> tuple[MinuteCount, ...]:
    count: Counter[datetime] = Counter()
    jobs: dict[datetime, set[str]] = {}
    for moment in faults:
        at = moment.observation.event.logged_at
        if at is None:
            continue
        minute = at.replace(second=0, microsecond=0)
        count[minute] += moment.observation.occurrences
        hit = jobs.setdefault(minute, set())
        if moment.job_id is not None:
            hit.add(moment.job_id)
    return tuple(
        MinuteCount(minute, count[minute], len(jobs[minute]))
        for minute in sorted(count)[:_MAX_MINUTES]
    )


__all__ = ["blast_radius", "rank_episodes", "taskmanagers_named"]
