"""Estimates the probability that a ranked candidate is the root cause.

The estimate comes from a logistic regression. An answer is the first candidate that can be a
diagnosis. `PROPERTIES` are the properties that distinguish correct answers from incorrect ones.
``confidence.tsv`` contains the log odds that each property adds; ``benchmarks/calibrate.py`` fits
them to labeled logs.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from flink_triage.diagnosis.ranking.causality import Candidate
from flink_triage.model import Outcome
from flink_triage.signatures import Alternative

# A rival is a different, unexplained candidate that can be a diagnosis and scores less than this
# many points below the answer.
_CLOSE_POINTS = 12.0
# A shorter distinctive text may also occur in related failures.
_LONG_TEXT_CHARS = 30
# No number of correct answers makes the next one certain.
LOWEST, HIGHEST = 0.01, 0.98
# Each candidate has one of these properties: the answer is first, other candidates that can be a
# diagnosis are behind it, and candidates that cannot be a diagnosis only report a failure. Only the
# answer may also have `PROPERTIES`.
FIRST, BEHIND, REPORTING = "first", "behind", "reporting"


@dataclass(frozen=True, slots=True)
class Answer:
    """The first candidate that can be a diagnosis, and the most specific alternative it matched."""

    candidate: Candidate
    alternative: Alternative
    ranked: Sequence[Candidate]
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Property:
    """A property that changes the confidence of an answer."""

    id: str
    applies: Callable[[Answer], bool]
    meaning: str


def confidence(candidate: Candidate, ranked: Sequence[Candidate], outcome: Outcome) -> float:
    """The probability that ``candidate`` is the root cause, with two decimals.

    It is at least ``LOWEST`` and at most ``HIGHEST``. ``outcome`` is that of the episode.
    """
    properties = properties_of(candidate, ranked, outcome)
    log_odds = sum(_log_odds().get(each, 0.0) for each in properties)
    return round(min(HIGHEST, max(LOWEST, 1.0 / (1.0 + math.exp(-log_odds)))), 2)


def properties_of(
    candidate: Candidate, ranked: Sequence[Candidate], outcome: Outcome
) -> tuple[str, ...]:
    """The ids of the properties of ``candidate`` that determine its confidence.

    For the answer, these are ``first`` and all `PROPERTIES` that apply. Other candidates have only
    one: ``behind`` if they can be a diagnosis, and ``reporting`` otherwise.
    """
    if not candidate.signature.is_answer:
        return (REPORTING,)
    first = next(other for other in ranked if other.signature.is_answer)
    if first.id != candidate.id:
        return (BEHIND,)
    answer = Answer(candidate, max(_matched(candidate), key=_evidence), ranked, outcome)
    return (FIRST, *(each.id for each in PROPERTIES if each.applies(answer)))


def _matched(candidate: Candidate) -> Sequence[Alternative]:
    """The alternatives that matched, or all alternatives if this pack contains none of them.

    Stored matches may refer to the alternatives of an earlier pack.
    """
    alternatives = candidate.signature.alternatives
    numbers = {hit.match.alternative for hit in candidate.hits}
    return [each for number, each in enumerate(alternatives) if number in numbers] or alternatives


def _evidence(alternative: Alternative) -> tuple[bool, bool, int]:
    return alternative.error is not None, alternative.is_distinctive, alternative.specificity


def _is_symptom(answer: Answer) -> bool:
    return answer.candidate.signature.role == "symptom"


def _is_class_only(answer: Answer) -> bool:
    one = answer.alternative
    return one.error is None and not one.is_distinctive and bool(one.throwables or one.root_causes)


def _is_short_text(answer: Answer) -> bool:
    one = answer.alternative
    chars = sum(map(len, one.literals))
    return one.error is None and one.is_distinctive and chars < _LONG_TEXT_CHARS


def _is_any_exception(answer: Answer) -> bool:
    one = answer.alternative
    is_generic = answer.candidate.signature.is_generic
    return is_generic and not one.literals


def _has_close_rival(answer: Answer) -> bool:
    candidate = answer.candidate
    return any(
        other.id != candidate.id
        and not other.explained_by
        and other.signature.is_answer
        and other.score > candidate.score - _CLOSE_POINTS
        for other in answer.ranked
    )


PROPERTIES: tuple[Property, ...] = (
    Property(
        "generic",
        lambda a: a.candidate.signature.is_generic,
        "reports only that user code failed",
    ),
    Property("any-exception", _is_any_exception, "any exception that user code throws"),
    Property("symptom", _is_symptom, "a consequence of other failures"),
    Property(
        "symptom-of-job",
        lambda a: _is_symptom(a) and a.outcome != "unknown",
        "a symptom in a log that also shows the job, and should show the cause",
    ),
    Property("wraps", lambda a: bool(a.candidate.depth), "not the root cause of its trace"),
    Property("no-trace", lambda a: a.candidate.depth is None, "no stack trace"),
    Property("prose", lambda a: a.candidate.is_text, "found in prose, not in a log line"),
    Property("error-code", lambda a: a.alternative.error is not None, "an error code or status"),
    Property("class-only", _is_class_only, "a class without a distinctive text"),
    Property("short-text", _is_short_text, "a text that related failures may also contain"),
    Property("rival", _has_close_rival, "another candidate has nearly as many points"),
)


@cache
def _log_odds() -> Mapping[str, float]:
    text = (files("flink_triage.diagnosis.ranking") / "confidence.tsv").read_text(encoding="utf-8")
    lines = [line for line in text.split("\n") if line and not line.startswith("#")]
    rows = csv.DictReader(lines, delimiter="\t")
    return {row["property"]: float(row["log_odds"]) for row in rows}
