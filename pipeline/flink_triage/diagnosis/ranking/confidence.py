"""Estimates the probability that a ranked candidate is the root cause.

Candidates are classified by the properties that distinguish correct answers from incorrect ones:
role, distance from the root cause, and close rivals. ``confidence.tsv`` contains the share of
correct answers of each kind in the labeled corpus; ``benchmarks/calibrate.py`` generates it.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from flink_triage.diagnosis.ranking.causality import Candidate

# An unexplained candidate that scores within this many points of the first is a rival.
_CLOSE_POINTS = 12.0


def confidence(candidate: Candidate, ranked: Sequence[Candidate]) -> float:
    """The share of correct answers of its kind or a broader kind; in (0, 1), two decimals."""
    table = _table()
    kind = kind_of(candidate, ranked)
    while kind and kind not in table:
        kind = kind.rpartition("/")[0]
    return table[kind or "leading"]


def kind_of(candidate: Candidate, ranked: Sequence[Candidate]) -> str:
    """The kind of a candidate; each part of it narrows the preceding parts.

    A kind is ``leading/<role>/<place>/<alone or rivalled>``, ``following/<explained or rival>``, or
    ``reporting`` for a signature that is never an answer.
    """
    if not candidate.signature.is_answer:
        return "reporting"
    first = next(other for other in ranked if other.signature.is_answer)
    if first.id != candidate.id:
        return f"following/{'explained' if candidate.explained_by else 'rival'}"
    role = "generic" if candidate.signature.is_generic else candidate.signature.role
    rival = "rivalled" if _has_close_rival(candidate, ranked) else "alone"
    return f"leading/{role}/{_place(candidate)}/{rival}"


def _place(candidate: Candidate) -> str:
    if candidate.depth is None:
        return "stated"
    return "root" if candidate.depth == 0 else "above"


def _has_close_rival(candidate: Candidate, ranked: Sequence[Candidate]) -> bool:
    return any(
        other.id != candidate.id
        and not other.explained_by
        and other.signature.is_answer
        and other.score > candidate.score - _CLOSE_POINTS
        for other in ranked
    )


@cache
def _table() -> Mapping[str, float]:
    text = (files("flink_triage.diagnosis.ranking") / "confidence.tsv").read_text(encoding="utf-8")
    lines = [line for line in text.split("\n") if line and not line.startswith("#")]
    rows = csv.DictReader(lines, delimiter="\t")
    return {row["kind"]: float(row["confidence"]) for row in rows}
