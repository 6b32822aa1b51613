"""Scores one candidate of an episode with the rules of `SCORING`.

Each rule that applies adds points to the score, and adds a sentence that starts with the rule's id
to ``reasons``. ``make ablate`` omits each rule in turn and prints how the results on labeled logs
change.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from flink_triage.diagnosis.durations import FIRST_FAULT
from flink_triage.diagnosis.episodes.episodes import Episode, in_order
from flink_triage.diagnosis.moment import NO_TIME
from flink_triage.diagnosis.ranking.causality import (
    SERIOUS,
    Candidate,
    is_minor_warning,
    is_serious_trigger,
    was_beside,
    was_survived,
)
from flink_triage.model import Role, Severity
from flink_triage.signatures import SignaturePack

Points = tuple[float, str]

_ROLES: dict[Role, Points] = {
    "trigger": (60.0, "a failure in itself, not a report of another one"),
    "contributing": (40.0, "makes a failure possible or worse, but rarely causes it"),
    "symptom": (25.0, "a consequence of other failures"),
    "loop-sustainer": (8.0, "keeps a restart loop going, but does not start it"),
    "wrapper": (5.0, "reports a failure without its cause"),
    "benign": (0.0, "harmless"),
}
_SEVERITIES: dict[Severity, float] = {"critical": 6.0, "major": 4.0, "minor": 0.0, "info": -20.0}


@dataclass(frozen=True)
class Case:
    """A candidate among all candidates of its episode.

    ``causes`` are signatures that explain it. ``is_afterwards`` and ``is_overcome`` refer to
    orderly stops: the failures began earlier, or the job failed again for a different reason.
    """

    candidate: Candidate
    episode: Episode
    candidates: Sequence[Candidate]
    pack: SignaturePack
    causes: frozenset[str] = frozenset()
    is_afterwards: bool = False
    is_overcome: bool = False

    @cached_property
    def failures(self) -> list[int]:
        """The numbers of the attempts in which the job failed."""
        attempts = enumerate(self.episode.attempts)
        return [number for number, attempt in attempts if attempt.failed_at is not None]

    @cached_property
    def noticeable(self) -> list[Candidate]:
        """The candidates with a severity above ``info``."""
        return [c for c in self.candidates if c.signature.severity != "info"]


@dataclass(frozen=True, slots=True)
class ScoringRule:
    """A rule whose ``score`` returns points and a sentence, or ``None`` if it does not apply.

    ``basis`` is the source of the rule.
    """

    id: str
    score: Callable[[Case], Points | None]
    basis: str


def score(case: Case, without: frozenset[str] = frozenset()) -> tuple[float, tuple[str, ...]]:
    """The total points of all rules except ``without``, and the sentence of each that applies."""
    total = 0.0
    reasons = []
    for rule in SCORING:
        found = None if rule.id in without else rule.score(case)
        if found is not None:
            points, sentence = found
            total += points
            reasons.append(f"{rule.id}: {sentence} ({points:+.0f})")
    return total, tuple(reasons)


def _role(case: Case) -> Points:
    return _ROLES[case.candidate.signature.role]


def _generic(case: Case) -> Points | None:
    is_generic = case.candidate.signature.is_generic
    return (-30.0, "only reports which code failed") if is_generic else None


def _root_cause(case: Case) -> Points:
    depth = case.candidate.depth
    if depth is None:
        return 6.0, "logged without a stack trace"
    if depth == 0:
        return 15.0, "root cause of its stack trace"
    if depth == 1:
        return 5.0, "wraps the root cause of its stack trace"
    return 0.0, f"{depth} causes above the root of its stack trace"


def _frequency(case: Case) -> Points | None:
    most = max((c.occurrences for c in case.noticeable), default=1)
    if case.failures or most < 2 or case.candidate.signature.severity == "info":
        return None
    share = math.log(case.candidate.occurrences) / math.log(most)
    count = case.candidate.occurrences
    return 14.0 * share, "seen once" if count == 1 else f"seen {count} times"


def _persistence(case: Case) -> Points | None:
    if len(case.failures) < 2:
        return None
    present = case.candidate.attempts.intersection(case.failures)
    share = len(present) / len(case.failures)
    of = "all" if share == 1 else f"{len(present)} of"
    return 14.0 * share, f"seen in {of} {len(case.failures)} failures"


def _last_failure(case: Case) -> Points | None:
    if len(case.failures) < 2 or case.failures[-1] not in case.candidate.attempts:
        return None
    return None if _takes_turns(case) else (10.0, "seen in the last failure")


def _takes_turns(case: Case) -> bool:
    """Whether a different serious trigger occurred earlier, in equally many attempts.

    It must be the root cause of a stack trace, and occur only in earlier attempts.
    """
    candidate = case.candidate
    return is_serious_trigger(candidate) and any(
        is_serious_trigger(other)
        and other.depth == 0
        and max(other.attempts) < min(candidate.attempts)
        and len(other.attempts) == len(candidate.attempts)
        for other in case.candidates
    )


def _only_warned(case: Case) -> Points | None:
    """Applies to a candidate that was only a warning, before the exception of a serious trigger."""
    observed = [hit.moment.observation for hit in case.candidate.hits]
    levels = {observation.event.level for observation in observed}
    if not case.episode.has_failed or "WARN" not in levels or levels & {"ERROR", "FATAL"}:
        return None
    if any(observation.fingerprint is not None for observation in observed):
        return None
    is_thrown_later = any(
        is_serious_trigger(other)
        and other.depth is not None
        and case.candidate.last_at < other.first_at
        for other in case.candidates
    )
    return (-15.0, "only a warning, before another exception") if is_thrown_later else None


def _minor(case: Case) -> Points | None:
    is_beside_serious = any(
        c.signature.is_answer and c.signature.severity in SERIOUS for c in case.candidates
    )
    if is_minor_warning(case.candidate) and is_beside_serious:
        return -40.0, "a minor warning next to a serious failure"
    return None


def _overcome(case: Case) -> Points | None:
    return (-40.0, "the job failed again without it") if case.is_overcome else None


def _beside(case: Case) -> Points | None:
    is_beside = was_beside(case.candidate, case.candidates, case.episode, case.pack)
    return (-20.0, "only logged; the job failed for a different reason") if is_beside else None


def _survived(case: Case) -> Points | None:
    if was_survived(case.candidate, case.episode):
        return -40.0, "checkpoints completed between it and each failure"
    return None


def _first_fault(case: Case) -> Points | None:
    if case.candidate.signature.severity == "info":
        return None
    first = min((c.hits[0].moment for c in case.noticeable), key=in_order)
    mine = case.candidate.hits[0].moment
    if NO_TIME in (first.at, mine.at):
        is_first = in_order(mine) == in_order(first)
    else:
        is_first = mine.at <= first.at + FIRST_FAULT
    return (8.0, "seen at the first fault of the episode") if is_first else None


def _severity(case: Case) -> Points | None:
    severity = case.candidate.signature.severity
    if case.episode.has_failed or severity == "info":
        return _SEVERITIES[severity], severity
    return None


def _afterwards(case: Case) -> Points | None:
    return (-40.0, "the failures began before this stop") if case.is_afterwards else None


def _explained(case: Case) -> Points | None:
    if not case.causes:
        return None
    return -45.0, f"by {', '.join(sorted(case.causes))}"


SCORING: tuple[ScoringRule, ...] = (
    ScoringRule("role", _role, "the usual role of the signature; see the signature format"),
    ScoringRule("generic", _generic, "UserCodeException does not state a cause"),
    ScoringRule("root-cause", _root_cause, "Throwable.getCause: the innermost was thrown first"),
    ScoringRule("frequency", _frequency, "labeled logs in which no job failed"),
    ScoringRule("persistence", _persistence, "restart loops: the cause is in every failure"),
    ScoringRule("last-failure", _last_failure, "a restart may fix an earlier failure"),
    ScoringRule("only-warned", _only_warned, "GlobalConfiguration and clients warn and continue"),
    ScoringRule("minor", _minor, "labeled logs: misconfigured reporters, skipped lines"),
    ScoringRule("overcome", _overcome, "labeled logs: TaskManagers stopped and replaced"),
    ScoringRule("beside", _beside, "decision 61"),
    ScoringRule("survived", _survived, "decision 60"),
    ScoringRule("first-fault", _first_fault, "causes precede effects"),
    ScoringRule("severity", _severity, "breaks near ties"),
    ScoringRule("afterwards", _afterwards, "decision 58"),
    ScoringRule("explained", _explained, "the causal graph (explains) and wrapping in one trace"),
)
