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
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from ..model import Match, Role, Severity
from ..signatures import Signature, SignaturePack, episode_match
from .episodes import Episode, in_order
from .timeline import NO_TIME, Moment

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
# Severities of what fails a job; the worst first.
SERIOUS: tuple[Severity, ...] = ("critical", "major")
_EXPLAINED_POINTS = -45.0
_AFTERWARDS_POINTS = -40.0
_GENERIC_POINTS = -30.0
_WARNED_POINTS = -15.0
# An effect may be logged a little before its cause: other process, other clock, other buffer.
_SKEW = timedelta(seconds=30)
# What a stop in order does to others is told within moments of it.
_PROMPT = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Hit:
    moment: Moment
    match: Match
    attempt: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """One signature in one episode, with the hits that show it.

    ``depth`` is the distance from the root cause at the nearest, ``None`` when never inside a
    trace.  What is asked of it for each other candidate is summed up once.
    """

    signature: Signature
    hits: tuple[Hit, ...]
    occurrences: int
    last_at: datetime
    depth: int | None
    score: float = 0.0
    reasons: tuple[str, ...] = ()
    explained_by: tuple[str, ...] = ()
    explains: tuple[str, ...] = ()

    @classmethod
    def of(cls, signature: Signature, hits: Sequence[Hit]) -> Candidate:
        observed = [(hit.moment.observation, hit.moment.at) for hit in hits]
        depths = [h.match.depth_from_root for h in hits if h.match.depth_from_root is not None]
        return cls(
            signature,
            tuple(hits),
            sum(observation.occurrences for observation, _ in observed),
            max(observation.last_logged_at or at for observation, at in observed),
            min(depths, default=None),
        )

    @property
    def id(self) -> str:
        return self.signature.id

    @property
    def first_at(self) -> datetime:
        return self.hits[0].moment.at


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
    afterwards = {c.id for c in candidates if _is_afterwards(c, candidates, episode)}
    causes = _causes(candidates, pack, afterwards)
    scored = [
        _scored(c, episode, candidates, causes.get(c.id, set()), c.id in afterwards, hosts)
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


def _causes(
    candidates: Sequence[Candidate], pack: SignaturePack, afterwards: Container[str]
) -> dict[str, set[str]]:
    """signature -> signatures of this episode that explain it, directly or through others."""
    by_id = {c.id: c for c in candidates}
    direct: dict[str, set[str]] = {}
    for candidate in candidates:
        for effect in reachable(candidate.id, pack):
            if effect in by_id and _precedes(candidate, by_id[effect], candidate.id in afterwards):
                direct.setdefault(effect, set()).add(candidate.id)
    for inner, outer in _wrapped_pairs(candidates):
        if outer not in direct.get(inner, set()):
            direct.setdefault(outer, set()).add(inner)
    return direct


def reachable(signature: str, pack: SignaturePack) -> set[str]:
    """Ids that ``signature`` explains, over any number of edges of the causal graph."""
    found: set[str] = set()
    edges = list(pack.signatures[signature].explains)
    while edges:
        effect = edges.pop()
        if effect not in found and effect in pack.signatures:
            found.add(effect)
            edges += pack.signatures[effect].explains
    return found


def _precedes(cause: Candidate, effect: Candidate, is_afterwards: bool) -> bool:
    if NO_TIME in (cause.first_at, effect.first_at):
        return True
    if is_afterwards:
        return cause.first_at <= effect.first_at + _PROMPT
    return cause.first_at <= effect.last_at + _SKEW


def _is_afterwards(candidate: Candidate, all_: Sequence[Candidate], episode: Episode) -> bool:
    """Whether it is an orderly end of trouble.

    There was trouble if the job had failed before, or if something had shown again and again.
    """
    if not candidate.signature.is_order:
        return False
    earlier = episode.attempts[: candidate.hits[0].attempt]
    had_failed = any(attempt.failed_at is not None for attempt in earlier)
    for other in all_:
        times = [hit.moment.at for hit in other.hits]
        shown = [at for at in times if NO_TIME < at < candidate.first_at - _PROMPT]
        is_trouble = other.signature.severity != "info" and shown
        if is_trouble and (had_failed or max(shown) - min(shown) > _PROMPT):
            return True
    return False


def _wrapped_pairs(candidates: Sequence[Candidate]) -> Iterable[tuple[str, str]]:
    """(inner, outer): both stand in one trace, the outer never nearer to the root cause.

    A generic signature only says where an exception came from: it stands outside of any that says
    what it is.
    """
    depths: dict[int, list[tuple[float, Candidate]]] = {}
    for candidate in candidates:
        for hit in candidate.hits:
            if hit.match.depth_from_root is not None:
                depth = hit.match.depth_from_root + 0.5 * candidate.signature.is_generic
                depths.setdefault(id(hit.moment), []).append((depth, candidate))
    nearer: set[tuple[str, str]] = set()
    for in_trace in depths.values():
        for inner_depth, inner in in_trace:
            for outer_depth, outer in in_trace:
                if inner_depth < outer_depth and inner.id != outer.id:
                    nearer.add((inner.id, outer.id))
    return [(a, b) for a, b in sorted(nearer) if (b, a) not in nearer]


def _scored(
    candidate: Candidate,
    episode: Episode,
    all_: Sequence[Candidate],
    causes: set[str],
    is_afterwards: bool,
    hosts: frozenset[str],
) -> Candidate:
    score = _Score()
    signature = candidate.signature
    score.add(_ROLE_POINTS[signature.role], _ROLE_REASON[signature.role])
    _score_specificity(score, candidate)
    _score_persistence(score, candidate, episode, all_)
    if episode.has_failed and _is_only_warned_of(candidate, all_):
        score.add(_WARNED_POINTS, "it was only warned of, before what was thrown")
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
    present = {hit.attempt for hit in candidate.hits}
    share = len(present.intersection(failures)) / len(failures)
    score.add(
        14.0 * share,
        f"it is there at {len(present.intersection(failures))} of {len(failures)} failures",
    )
    if failures[-1] in present:
        score.add(10.0, "it is there at the last failure")


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
    seen_on = {o.host for o in observed if o.process == "taskmanager" and o.host}
    if len(hosts) > 1 and seen_on:
        if len(seen_on) == 1:
            yield (
                f"of {len(hosts)} hosts with TaskManagers only {min(seen_on)} shows it: look at "
                "that machine, its disk and its network first"
            )
        else:
            yield f"{len(seen_on)} of {len(hosts)} hosts with TaskManagers show it"
    subtasks: dict[tuple[str, int], set[int]] = {}
    for o in observed:
        if o.task and o.subtask is not None and o.parallelism and o.parallelism > 1:
            subtasks.setdefault((o.task, o.parallelism), set()).add(o.subtask)
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
