"""Describes known failures that resemble an unknown one, for reports that people read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from flink_triage.model import SimilarFailure
from flink_triage.report.facts.sanitize import one_line

# The heading of similar failures states that they are not diagnoses.
HEADING = "No signature explains this failure. Closest known failures, not diagnoses"


def details_of(similar: SimilarFailure) -> Iterator[tuple[str, str]]:
    """Label and text of the similarities, the differences and the reference."""
    if similar.agrees:
        yield "agrees", one_line("; ".join(similar.agrees))
    if similar.differs:
        yield "differs", one_line("; ".join(similar.differs))
    yield "see", one_line(similar.reference or f"flink-triage signatures show {similar.signature}")


def titles(similar: Sequence[SimilarFailure]) -> str:
    """``Closest known failures, not diagnoses: A; B``; empty if there are none."""
    if not similar:
        return ""
    named = "; ".join(f"{one_line(one.title)} ({one.signature})" for one in similar)
    return f"{HEADING.partition('. ')[2]}: {named}"
