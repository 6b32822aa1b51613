"""A ranked candidate and its rivals in, the probability that it is the root cause out.

What separates right answers from wrong ones on the labelled corpus is the role of the answer, how
near the root of a chain it stands, and whether a rival is close.  ``make eval`` prints how often
answers of each stated confidence are right.
"""

from __future__ import annotations

from collections.abc import Sequence

from .ranking import Candidate

# Points below which a rival that nothing explains is a real alternative.
_CLOSE_POINTS = 12.0


def confidence(candidate: Candidate, ranked: Sequence[Candidate]) -> float:
    """In [0, 1], two decimals."""
    base = {"trigger": 0.93, "contributing": 0.75, "symptom": 0.6}.get(
        candidate.signature.role, 0.2
    )
    if candidate.signature.is_generic:
        base -= 0.1
    if candidate.depth == 0:
        base += 0.04
    elif candidate.depth is not None and candidate.depth > 1:
        base -= 0.1
    if candidate.explained_by:
        base = min(base, 0.3)
    if _has_close_rival(candidate, ranked):
        base -= 0.2
    return round(min(0.98, max(0.05, base)), 2)


def _has_close_rival(candidate: Candidate, ranked: Sequence[Candidate]) -> bool:
    return any(
        other.id != candidate.id
        and not other.explained_by
        and other.score > candidate.score - _CLOSE_POINTS
        for other in ranked
    )
