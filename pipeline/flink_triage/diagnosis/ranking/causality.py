"""Candidates of an episode in; out, which of them explains which, and which orderly stop did not
begin the trouble.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from flink_triage.diagnosis.durations import LOG_ORDER, STOP_EFFECT
from flink_triage.diagnosis.episodes.episodes import FAULT_KINDS, Episode
from flink_triage.diagnosis.moment import NO_TIME, Moment
from flink_triage.model import Match, Severity
from flink_triage.signatures import Signature, SignaturePack

# Severities of what fails a job; the worst first.
SERIOUS: tuple[Severity, ...] = ("critical", "major")


@dataclass(frozen=True, slots=True)
class Hit:
    moment: Moment
    match: Match
    attempt: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """One signature in one episode, with the hits that show it.

    ``depth`` is the distance from the root cause at the nearest, ``None`` when never inside a
    trace; ``attempts`` and ``paths`` are those of the hits.  What is asked of it for each other
    candidate is summed up once.
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
    """signature -> signatures of this episode that explain it, directly or through others."""
    by_id = {c.id: c for c in candidates}
    direct: dict[str, set[str]] = {}
    for candidate in candidates:
        for effect in reachable(candidate.id, pack):
            if effect not in by_id or (
                candidate.id in overcome and candidate.attempts.isdisjoint(by_id[effect].attempts)
            ):
                continue
            if is_minor_warning(candidate) and by_id[effect].signature.severity in SERIOUS:
                # It may point to the cause, and fails nothing.
                continue
            if _precedes(candidate, by_id[effect], candidate.id in afterwards):
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
        return cause.first_at <= effect.first_at + STOP_EFFECT
    if cause.first_at <= effect.last_at:
        return True
    # Of one failure a file often tells the effect first, and what others look like from outside is
    # seen late; a fault in itself does not reach back to a failure that its file told before.
    is_earlier_failure = max(effect.attempts) < min(cause.attempts)
    is_one_file = not cause.paths.isdisjoint(effect.paths)
    if cause.signature.role == "trigger" and is_earlier_failure and is_one_file:
        return False
    return cause.first_at <= effect.last_at + LOG_ORDER


def came_afterwards(candidate: Candidate, all_: Sequence[Candidate], episode: Episode) -> bool:
    """Whether it is an orderly end of trouble.

    There was trouble if the job had failed before, or if something had shown again and again.
    """
    if not candidate.signature.is_order:
        return False
    earlier = episode.attempts[: candidate.hits[0].attempt]
    had_failed = any(attempt.failed_at is not None for attempt in earlier)
    for other in all_:
        times = [hit.moment.at for hit in other.hits]
        shown = [at for at in times if NO_TIME < at < candidate.first_at - STOP_EFFECT]
        is_trouble = other.signature.severity != "info" and shown
        if is_trouble and (had_failed or max(shown) - min(shown) > STOP_EFFECT):
            return True
    return False


def was_overcome(
    candidate: Candidate, all_: Sequence[Candidate], episode: Episode, pack: SignaturePack
) -> bool:
    """Whether it is an orderly stop after which something serious of its own failed the job, or
    kept it from coming back.
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
    """Whether checkpoints completed again after it, each time before something failed the job.

    Only of what others look like from outside: a fault in itself may do its harm later.
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
    """Whether it was only logged, each time before another fault in itself failed the job.

    That one's own trace tells what it failed of; what leads to it is known by the causal graph.  A
    fault that hits whole clusters may show itself anywhere.
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
    """Whether the line itself says that a task or a job failed."""
    return moment.kind in FAULT_KINDS or moment.kind == "job-state"


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
