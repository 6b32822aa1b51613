"""The faults of one episode in, its candidates out, best explanation first and each with reasons.

A candidate is a signature that matched in the episode.  Its score is a sum of named parts, each of
which leaves a sentence in ``reasons``:

    role          what the signature usually is: a trigger explains, a wrapper only reports
    specificity   it names the root cause of a chain, or only a throwable around it
    persistence   it is there at every failure, and at the last one
    precedence    it was there at the first fault
    severity      breaks near ties
    breadth       one host or subtask of many shows it: a single machine, disk or key (no points)
    explained     another fault of the episode causes it: by the causal graph, or because it wraps
                  that fault in the same stack trace
    afterwards    somebody asked for it when the trouble was there already
    overcome      somebody asked for it, and the job failed again without it
    minor         it is a warning beside something serious
    survived      the job was well again before it failed
    beside        it was only logged, and the failure's own trace tells of another fault
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from ..model import Role, Severity
from ..signatures import SignaturePack, episode_match
from .causes import (
    SERIOUS,
    Candidate,
    Hit,
    came_afterwards,
    causes_of,
    is_minor_warning,
    is_serious_trigger,
    was_beside,
    was_overcome,
    was_survived,
)
from .episodes import Episode, in_order
from .timeline import NO_TIME

_ROLE_POINTS: Mapping[Role, float] = {
    "trigger": 60.0,
    "contributing": 40.0,
    "symptom": 25.0,
    "loop-sustainer": 8.0,
    "wrapper": 5.0,
    "benign": 0.0,
}
_ROLE_REASON: Mapping[Role, str] = {
    "trigger": "it is a fault in itself, not a report of another one",
    "contributing": "it makes a failure possible or worse, but seldom starts one",
    "symptom": "it is what other faults look like from outside",
    "loop-sustainer": "it keeps a restart loop going, but did not start it",
    "wrapper": "it says that something failed, not what",
    "benign": "it is harmless",
}
_SEVERITY_POINTS: Mapping[Severity, float] = {
    "critical": 6.0,
    "major": 4.0,
    "minor": 0.0,
    "info": -20.0,
}
_EXPLAINED_POINTS = -45.0
_AFTERWARDS_POINTS = -40.0
_GENERIC_POINTS = -30.0
_OVERCOME_POINTS = -40.0
_SURVIVED_POINTS = -40.0
_WARNED_POINTS = -15.0
_MINOR_POINTS = -40.0
_BESIDE_POINTS = -20.0


@dataclass(slots=True)
class _Score:
    total: float = 0.0
    reasons: list[str] = field(default_factory=list)

    def add(self, points: float, reason: str) -> None:
        self.total += points
        self.reasons.append(f"{reason} ({points:+.0f})")


def rank(
    episode: Episode, pack: SignaturePack, hosts: frozenset[str] = frozenset()
) -> list[Candidate]:
    """Candidates of ``episode``, root cause first; benign ones are left out.

    ``hosts`` are all that run TaskManagers, to tell a single bad one by.
    """
    candidates = _candidates(episode, pack)
    afterwards = {c.id for c in candidates if came_afterwards(c, candidates, episode)}
    overcome = {c.id for c in candidates if was_overcome(c, candidates, episode, pack)}
    causes = causes_of(candidates, pack, afterwards, overcome)
    scored = [
        _scored(
            c,
            episode,
            candidates,
            causes.get(c.id, set()),
            hosts,
            is_afterwards=c.id in afterwards,
            is_overcome=c.id in overcome,
            is_beside=was_beside(c, candidates, episode, pack),
        )
        for c in candidates
    ]
    placed = _behind_causes(scored, afterwards)
    return sorted(_with_explains(placed), key=_rank_key)


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
        times = [(h.moment.observation.event.logged_at, h.match.alternative) for h in of_signature]
        if signature.role != "benign" and episode_match(signature, times):
            candidates.append(Candidate.of(signature, of_signature))
    return candidates


def _scored(
    candidate: Candidate,
    episode: Episode,
    all_: Sequence[Candidate],
    causes: set[str],
    hosts: frozenset[str],
    *,
    is_afterwards: bool,
    is_overcome: bool,
    is_beside: bool,
) -> Candidate:
    score = _Score()
    signature = candidate.signature
    score.add(_ROLE_POINTS[signature.role], _ROLE_REASON[signature.role])
    _score_specificity(score, candidate)
    _score_persistence(score, candidate, episode, all_)
    if episode.has_failed and _is_only_warned_of(candidate, all_):
        score.add(_WARNED_POINTS, "it was only warned of, before what was thrown")
    if is_minor_warning(candidate) and any(_is_serious_answer(other) for other in all_):
        score.add(_MINOR_POINTS, "it is a warning, and something serious failed beside it")
    if is_overcome:
        score.add(_OVERCOME_POINTS, "the job failed again without it, of something worse")
    if is_beside:
        score.add(_BESIDE_POINTS, "it was only logged, and the job failed of something else")
    if was_survived(candidate, episode):
        score.add(_SURVIVED_POINTS, "checkpoints completed again between it and each failure")
    if _is_at_first_fault(candidate, all_):
        score.add(8.0, "it is there at the first fault of the episode")
    if episode.has_failed or signature.severity == "info":
        score.add(_SEVERITY_POINTS[signature.severity], f"its severity is {signature.severity}")
    if is_afterwards:
        score.add(_AFTERWARDS_POINTS, "the trouble was there before it: it is how it ended")
    if causes:
        names = ", ".join(sorted(causes))
        score.add(_EXPLAINED_POINTS, f"it is explained by {names}, which is in this episode too")
    return replace(
        candidate,
        score=score.total,
        reasons=(*score.reasons, *_breadth(candidate, hosts)),
        explained_by=tuple(sorted(causes)),
    )


def _is_serious_answer(candidate: Candidate) -> bool:
    return candidate.signature.is_answer and candidate.signature.severity in SERIOUS


def _score_specificity(score: _Score, candidate: Candidate) -> None:
    if candidate.signature.is_generic:
        score.add(_GENERIC_POINTS, "it only says that the fault is in user code")
    depth = candidate.depth
    if depth is None:
        score.add(6.0, "it is stated in a log message of its own")
    elif depth == 0:
        score.add(15.0, "it is the root cause of its stack trace")
    elif depth == 1:
        score.add(5.0, "it wraps the root cause of its stack trace")
    else:
        score.add(0.0, f"it stands {depth} causes above the root of its stack trace")


def _is_only_warned_of(candidate: Candidate, all_: Sequence[Candidate]) -> bool:
    """Whether a process said so in passing, and one then met with an exception of another cause."""
    observed = [hit.moment.observation for hit in candidate.hits]
    levels = {observation.event.level for observation in observed}
    if "WARN" not in levels or not levels.isdisjoint(("ERROR", "FATAL")):
        return False
    if any(observation.fingerprint is not None for observation in observed):
        return False
    return any(
        other.signature.role == "trigger"
        and other.signature.severity in SERIOUS
        and other.depth is not None
        and candidate.last_at < other.first_at
        for other in all_
    )


def _is_at_first_fault(candidate: Candidate, all_: Sequence[Candidate]) -> bool:
    if candidate.signature.severity == "info":
        return False
    telling = [c for c in all_ if c.signature.severity != "info"]
    first = min((c.hits[0].moment for c in telling), key=in_order)
    mine = candidate.hits[0].moment
    if NO_TIME in (first.at, mine.at):
        return in_order(mine) == in_order(first)
    return mine.at <= first.at + timedelta(seconds=1)


def _score_persistence(
    score: _Score, candidate: Candidate, episode: Episode, all_: Sequence[Candidate]
) -> None:
    failures = [n for n, attempt in enumerate(episode.attempts) if attempt.failed_at is not None]
    if not failures:
        _score_frequency(score, candidate, all_)
    if len(failures) < 2:
        return
    present = candidate.attempts.intersection(failures)
    share = len(present) / len(failures)
    score.add(14.0 * share, f"it is there at {len(present)} of {len(failures)} failures")
    if failures[-1] in present and not _comes_after_another(candidate, failures, all_):
        score.add(10.0, "it is there at the last failure")


def _comes_after_another(
    candidate: Candidate, failures: Sequence[int], all_: Sequence[Candidate]
) -> bool:
    """Whether a fault of its own kind failed the job just before, as often: they count in turn."""
    first = min(candidate.attempts)
    return is_serious_trigger(candidate) and any(
        is_serious_trigger(other)
        and other.depth == 0
        and max(other.attempts) < first
        and len(other.attempts) == len(candidate.attempts)
        for other in all_
    )


def _score_frequency(score: _Score, candidate: Candidate, all_: Sequence[Candidate]) -> None:
    """Where the job goes on, what goes wrong again and again matters more than what did once."""
    telling = [c.occurrences for c in all_ if c.signature.severity != "info"]
    most = max(telling, default=1)
    if most > 1 and candidate.signature.severity != "info":
        share = math.log(candidate.occurrences) / math.log(most)
        score.add(14.0 * share, f"it is seen {candidate.occurrences} times")


def _breadth(candidate: Candidate, hosts: frozenset[str]) -> Iterable[str]:
    """Where it was seen against where it could have been; no part of the score."""
    observed = [hit.moment.observation for hit in candidate.hits]
    seen_on = {host for o in observed if o.process == "taskmanager" for host in o.reach.hosts}
    if len(hosts) > 1 and seen_on:
        if len(seen_on) == 1:
            yield (
                f"of {len(hosts)} hosts with TaskManagers only {min(seen_on)} shows it: look at "
                "that machine, its disk and its network first"
            )
        else:
            yield f"{len(seen_on)} of {len(hosts)} hosts with TaskManagers show it"
    subtasks: dict[tuple[str, int], set[int]] = {}
    for of in frozenset().union(*(o.reach.subtasks for o in observed)):
        if of.subtask is not None and of.parallelism and of.parallelism > 1:
            subtasks.setdefault((of.task, of.parallelism), set()).add(of.subtask)
    for (task, parallelism), seen in sorted(subtasks.items()):
        if len(seen) == 1 and parallelism > 2:
            yield (
                f"only subtask {min(seen)} of {parallelism} of {task} shows it: its data, key or "
                "machine differs from the others"
            )
        elif len(seen) == parallelism:
            yield f"all {parallelism} subtasks of {task} show it"


def _behind_causes(candidates: Sequence[Candidate], afterwards: Container[str]) -> list[Candidate]:
    """None stands before what explains it and matters, whatever the roles of both."""
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
            score = best - 1.0
            reason = f"it stands behind what explains it ({score - candidate.score:+.0f})"
            candidate = replace(candidate, score=score, reasons=(*candidate.reasons, reason))
        placed.append(candidate)
    return placed


def _with_explains(candidates: Sequence[Candidate]) -> list[Candidate]:
    effects: dict[str, set[str]] = {}
    for candidate in candidates:
        for cause in candidate.explained_by:
            effects.setdefault(cause, set()).add(candidate.id)
    return [replace(c, explains=tuple(sorted(effects.get(c.id, ())))) for c in candidates]
