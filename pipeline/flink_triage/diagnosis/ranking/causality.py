"""Determines the causal relations between the candidates of an episode."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from flink_triage.diagnosis.durations import LOG_ORDER, STOP_EFFECT
from flink_triage.diagnosis.episodes.episodes import FAULT_KINDS, Episode
from flink_triage.diagnosis.moment import NO_TIME, Moment
from flink_triage.model import Match, Severity
from flink_triage.signatures import Signature, SignaturePack

# Severities of signatures that fail a job, worst first.
SERIOUS: tuple[Severity, ...] = ("critical", "major")


@dataclass(frozen=True, slots=True)
class Hit:
    moment: Moment
    match: Match
    attempt: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """One signature in one episode, with its hits.

    ``depth`` is the smallest distance of a hit from the root cause of its trace, or ``None`` if no
    hit is in a trace. ``attempts`` and ``paths`` are collected from the hits once, because every
    other candidate is compared with them.
    """

    signature: Signature
    hits: tuple[Hit, ...]
    occurrences: int
    last_at: datetime
    depth: int | None
    attempts: frozenset[int]
    paths: frozenset[str]
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
            frozenset(hit.attempt for hit in hits),
            frozenset(hit.moment.observation.event.path for hit in hits),
        )

    @property
    def id(self) -> str:
        return self.signature.id

    @property
    def first_at(self) -> datetime:
        return self.hits[0].moment.at

    @property
    def is_text(self) -> bool:
        """Whether it was found only in prose, not in log lines."""
        return all(hit.moment.is_text for hit in self.hits)


def is_serious_trigger(candidate: Candidate) -> bool:
    signature = candidate.signature
    return signature.role == "trigger" and signature.severity in SERIOUS


def is_minor_warning(candidate: Candidate) -> bool:
    signature = candidate.signature
    return (signature.role, signature.severity) == ("contributing", "minor")


def causes_of(
    candidates: Sequence[Candidate],
    pack: SignaturePack,
    afterwards: Container[str],
    overcome: Container[str],
) -> dict[str, set[str]]:
    """The ids of the candidates that explain each candidate; only explained candidates are keys.

    A candidate explains another one through the causal graph, directly or indirectly, or because it
    is nearer to the root cause of the same trace. ``afterwards`` and ``overcome`` contain the ids
    of orderly stops that occurred after the failures began, and of those that the job survived.
    """
    by_id = {c.id: c for c in candidates}
    direct: dict[str, set[str]] = {}
    for candidate in candidates:
        for effect in reachable(candidate.id, pack):
            if effect not in by_id or (
                candidate.id in overcome and candidate.attempts.isdisjoint(by_id[effect].attempts)
            ):
                continue
            if is_minor_warning(candidate) and by_id[effect].signature.severity in SERIOUS:
                # A minor warning may point to the cause, but does not fail a job.
                continue
            if _precedes(candidate, by_id[effect], candidate.id in afterwards):
                direct.setdefault(effect, set()).add(candidate.id)
    for inner, outer in _wrapped_pairs(candidates):
        if outer not in direct.get(inner, set()):
            direct.setdefault(outer, set()).add(inner)
    return direct


def reachable(signature: str, pack: SignaturePack) -> set[str]:
    """Ids that ``signature`` explains through any number of causal graph edges."""
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
        return cause.first_at <= effect.first_at + STOP_EFFECT
    if cause.first_at <= effect.last_at:
        return True
    # Within one failure, files often contain the effect first, and symptoms are logged late. A
    # trigger does not explain an earlier failure in the same file.
    is_earlier_failure = max(effect.attempts) < min(cause.attempts)
    is_one_file = not cause.paths.isdisjoint(effect.paths)
    if cause.signature.role == "trigger" and is_earlier_failure and is_one_file:
        return False
    return cause.first_at <= effect.last_at + LOG_ORDER


def came_afterwards(candidate: Candidate, all_: Sequence[Candidate], episode: Episode) -> bool:
    """Whether ``candidate`` is an orderly stop that occurred after the failures began.

    The failures began earlier if a different candidate above severity ``info`` occurred more than
    ``STOP_EFFECT`` before it, and the job had already failed or that candidate had occurred over
    more than ``STOP_EFFECT``.
    """
    if not candidate.signature.is_order:
        return False
    earlier = episode.attempts[: candidate.hits[0].attempt]
    had_failed = any(attempt.failed_at is not None for attempt in earlier)
    for other in all_:
        times = [hit.moment.at for hit in other.hits]
        before = [at for at in times if NO_TIME < at < candidate.first_at - STOP_EFFECT]
        is_fault = other.signature.severity != "info" and before
        if is_fault and (had_failed or max(before) - min(before) > STOP_EFFECT):
            return True
    return False


def was_overcome(
    candidate: Candidate, all_: Sequence[Candidate], episode: Episode, pack: SignaturePack
) -> bool:
    """Whether ``candidate`` is an orderly stop that the job survived.

    This is the case if the job failed again without it, and a serious trigger that it does not
    explain occurred in the last failed attempt or later.
    """
    failures = [n for n, attempt in enumerate(episode.attempts) if attempt.failed_at is not None]
    if not candidate.signature.is_order or not failures or failures[-1] in candidate.attempts:
        return False
    effects = reachable(candidate.id, pack)
    return any(
        is_serious_trigger(other)
        and max(other.attempts) >= failures[-1]
        and min(candidate.attempts) < failures[-1]
        and other.id not in effects
        for other in all_
    )


def was_survived(candidate: Candidate, episode: Episode) -> bool:
    """Whether a checkpoint completed before the failure in each failed attempt of ``candidate``.

    The checkpoint must follow the last occurrence of ``candidate`` in the attempt. Applies to
    symptoms only: a trigger may have a delayed effect.
    """
    if candidate.signature.role != "symptom":
        return False
    last: dict[int, datetime] = {}
    for hit in candidate.hits:
        last[hit.attempt] = max(last.get(hit.attempt, NO_TIME), hit.moment.until)
    failures = [n for n in last if episode.attempts[n].failed_at is not None]
    well = {n: episode.attempts[n].well_at for n in failures}
    return bool(failures) and all(at is not None and last[n] < at for n, at in well.items())


def was_beside(
    candidate: Candidate, all_: Sequence[Candidate], episode: Episode, pack: SignaturePack
) -> bool:
    """Whether ``candidate`` was only logged, and a different trigger failed the job each time.

    The other trigger must be serious, not generic, not an effect of ``candidate``, and the root
    cause in a line for which ``has_stopped_something`` is true. Candidates that are not triggers or
    have no stack trace are excluded, as are faults of the whole cluster, which any process may log.
    """
    signature = candidate.signature
    if signature.role != "trigger" or signature.reach == "cluster" or candidate.depth is None:
        return False
    failed = {n for n in candidate.attempts if episode.attempts[n].failed_at is not None}
    if not failed or any(has_stopped_something(hit.moment) for hit in candidate.hits):
        return False
    effects = reachable(candidate.id, pack)
    of_another = {
        hit.attempt
        for other in all_
        if is_serious_trigger(other) and not other.signature.is_generic and other.id not in effects
        for hit in other.hits
        if hit.match.depth_from_root == 0 and has_stopped_something(hit.moment)
    }
    return failed <= of_another


def has_stopped_something(moment: Moment) -> bool:
    """Whether the line reports a failed task or job, a lost TaskManager, or a job state change."""
    return moment.kind in FAULT_KINDS or moment.kind == "job-state"


def _wrapped_pairs(candidates: Sequence[Candidate]) -> Iterable[tuple[str, str]]:
    """Pairs (inner, outer) in one trace, where the outer is never nearer to the root cause.

    At equal depth, a generic signature counts as outer, because it does not state a cause.
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
