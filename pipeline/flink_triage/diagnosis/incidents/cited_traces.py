"""Selects and shortens the stack traces that the evidence of a result refers to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from flink_triage.model import Evidence, Incident, UnknownFailure
from flink_triage.traces import parse_frame


def cited_traces(
    incidents: Iterable[Incident], unknown: Iterable[UnknownFailure]
) -> tuple[str, ...]:
    """Sorted fingerprints in the evidence; timelines contain too many and are excluded."""
    named = {evidence.fingerprint for evidence in _evidence(incidents, unknown)}
    return tuple(sorted(name for name in named if name is not None))


def whole_trace(thrown: str, exemplar: str) -> str:
    """The exemplar, preceded by its throwable's line if it begins with a frame.

    Flink logs ``switched to FAILED with failure cause: <throwable>`` on the header line of the
    event, so the lines after it begin with a frame.
    """
    is_headless = parse_frame(exemplar.partition("\n")[0]) is not None
    return f"{thrown}\n{exemplar}" if is_headless else exemplar


def shown_traces(exemplars: Mapping[str, str], limit: int) -> dict[str, str]:
    """Each trace, shortened by `cut_trace` if it is too long, in order of fingerprint."""
    return {name: cut_trace(exemplars[name], limit) for name in sorted(exemplars)}


def cut_trace(text: str, limit: int) -> str:
    """Head and tail of a long trace, with the number of omitted characters on a line in between.

    A trace of at most ``limit`` characters is returned unchanged. The tail gets a quarter of
    ``limit``, because the root cause comes last.
    """
    if len(text) <= limit:
        return text
    head = text[: limit - limit // 4].rpartition("\n")[0] or text[: limit - limit // 4]
    tail = text[-(limit // 4) :]
    tail = tail.partition("\n")[2] or tail
    return f"{head}\n[{len(text) - len(head) - len(tail):,} characters omitted]\n{tail}"


def _evidence(
    incidents: Iterable[Incident], unknown: Iterable[UnknownFailure]
) -> Iterator[Evidence]:
    for incident in incidents:
        if incident.first_fault is not None:
            yield incident.first_fault
        for diagnosis in incident.diagnoses:
            yield from diagnosis.evidence
    for failure in unknown:
        yield from failure.evidence
