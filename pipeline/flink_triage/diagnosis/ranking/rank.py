"""Ranks the candidates of one episode, with reasons.

A candidate is a signature that matched in the episode and is not benign. ``scoring.py`` computes
its score.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from flink_triage.diagnosis.episodes.episodes import Episode
from flink_triage.diagnosis.ranking.causality import (
    SERIOUS,
    Candidate,
    Hit,
    came_afterwards,
    causes_of,
    was_overcome,
)
from flink_triage.diagnosis.ranking.scoring import Case, score
from flink_triage.signatures import Signature, SignaturePack, episode_match

# The id of the rule that ranks a serious cause before its effects, regardless of their points.
BEHIND_CAUSE = "behind-cause"


def rank(
    episode: Episode,
    pack: SignaturePack,
    hosts: frozenset[str] = frozenset(),
    without: frozenset[str] = frozenset(),
) -> list[Candidate]:
    """Candidates of ``episode``, the most likely root cause first, without benign ones.

    ``hosts`` contains the known hosts of TaskManagers, to detect a single faulty host. ``without``
    contains the ids of rules to skip.
    """
    candidates = _candidates(episode, pack)
    afterwards = {c.id for c in candidates if came_afterwards(c, candidates, episode)}
    overcome = {c.id for c in candidates if was_overcome(c, candidates, episode, pack)}
    causes = causes_of(candidates, pack, afterwards, overcome)
    scored = []
    for candidate in candidates:
        explained_by = frozenset(causes.get(candidate.id, ()))
        case = Case(
            candidate,
            episode,
            candidates,
            pack,
            explained_by,
            is_afterwards=candidate.id in afterwards,
            is_overcome=candidate.id in overcome,
        )
        points, reasons = score(case, without)
        scored.append(
            replace(
                candidate,
                score=points,
                reasons=(*reasons, *_breadth(candidate, hosts)),
                explained_by=tuple(sorted(explained_by)),
            )
        )
    if BEHIND_CAUSE not in without:
        scored = _behind_causes(scored, afterwards)
    return sorted(_with_explains(scored), key=_rank_key)


def _rank_key(candidate: Candidate) -> tuple[float, int, datetime, str]:
    depth = candidate.depth
    return (-candidate.score, 99 if depth is None else depth, candidate.first_at, candidate.id)


def _candidates(episode: Episode, pack: SignaturePack) -> list[Candidate]:
    hits: dict[str, list[Hit]] = {}
    for number, attempt in enumerate(episode.attempts):
        for moment in attempt.faults:
            for match in moment.observation.matches:
                hits.setdefault(match.signature, []).append(Hit(moment, match, number))
    candidates = []
    for signature_id, of_signature in hits.items():
        signature = pack.signatures[signature_id]
        if signature.role == "benign":
            continue
        events = [event for hit in of_signature for event in _events(hit, signature)]
        if episode_match(signature, events):
            candidates.append(Candidate.of(signature, of_signature))
    return candidates


def _events(hit: Hit, signature: Signature) -> list[tuple[datetime | None, int]]:
    """The time and alternative of each event that ``hit`` represents.

    At most as many as the ``count`` of the signature are returned. If folded events may be further
    apart than its ``within``, only the first is returned.
    """
    observation = hit.moment.observation
    first, last = observation.event.logged_at, observation.last_logged_at
    within = signature.within_seconds
    is_apart = within is not None and first and last and (last - first).total_seconds() > within
    number = 1 if is_apart else min(max(1, observation.occurrences), signature.count)
    return [(first, hit.match.alternative)] * number


def _breadth(candidate: Candidate, hosts: frozenset[str]) -> Iterable[str]:
    """Sentences about the number of hosts and subtasks with the fault; they add no points."""
    observed = [hit.moment.observation for hit in candidate.hits]
    seen_on = {host for o in observed if o.process == "taskmanager" for host in o.reach.hosts}
    if len(hosts) > 1 and seen_on:
        if len(seen_on) == 1:
            yield (
                f"seen on 1 of {len(hosts)} hosts with TaskManagers, {min(seen_on)}: check its "
                "disk and network first"
            )
        else:
            yield f"seen on {len(seen_on)} of {len(hosts)} hosts with TaskManagers"
    subtasks: dict[tuple[str, int], set[int]] = {}
    for of in frozenset().union(*(o.reach.subtasks for o in observed)):
        if of.subtask is not None and of.parallelism and of.parallelism > 1:
            subtasks.setdefault((of.task, of.parallelism), set()).add(of.subtask)
    for (task, parallelism), seen in sorted(subtasks.items()):
        if len(seen) == 1 and parallelism > 2:
            yield (
                f"seen only in subtask {min(seen)} of {parallelism} of {task}: check its data, "
                "keys and host"
            )
        elif len(seen) == parallelism:
            yield f"seen in all {parallelism} subtasks of {task}"


def _behind_causes(candidates: Sequence[Candidate], afterwards: Container[str]) -> list[Candidate]:
    """Rank each candidate below the serious cause that explains it, regardless of their roles.

    A cause that cannot be a diagnosis, is itself explained, or came ``afterwards`` is ignored.
    """
    causes = {
        c.id: c.score
        for c in candidates
        if c.signature.is_answer
        and c.signature.severity in SERIOUS
        and not c.explained_by
        and c.id not in afterwards
    }
    placed = []
    for candidate in candidates:
        best = max((causes[c] for c in candidate.explained_by if c in causes), default=None)
        if best is not None and candidate.score >= best:
            behind = best - 1.0
            reason = f"{BEHIND_CAUSE}: below its cause ({behind - candidate.score:+.0f})"
            candidate = replace(candidate, score=behind, reasons=(*candidate.reasons, reason))
        placed.append(candidate)
    return placed


def _with_explains(candidates: Sequence[Candidate]) -> list[Candidate]:
    effects: dict[str, set[str]] = {}
    for candidate in candidates:
        for cause in candidate.explained_by:
            effects.setdefault(cause, set()).add(candidate.id)
    return [replace(c, explains=tuple(sorted(effects.get(c.id, ())))) for c in candidates]
