"""Draws the times of many incidents: one lane per job, one bar per incident.

Simultaneous failures often share a cause, which a table does not show.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from flink_triage.model import Incident
from flink_triage.report.drawings.incident_timeline import Tick, percent_of, place_of, ticks_of
from flink_triage.report.facts import wording


@dataclass(frozen=True, slots=True)
class Bar:
    """One incident, from ``x`` to ``end`` in percent of the width.

    ``outcome`` selects the mark at the end, and ``tone`` the color.
    """

    x: str
    end: str
    width: str
    outcome: str
    tone: str
    title: str


@dataclass(frozen=True, slots=True)
class Lane:
    name: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Overview:
    lanes: tuple[Lane, ...]
    lanes_left_out: int
    ticks: tuple[Tick, ...]
    first: datetime
    last: datetime


def overview_of(incidents: Sequence[Incident], limit: int) -> Overview | None:
    """Lanes in the order of the incidents; ``None`` for fewer than two failures with a time.

    ``None`` also if all of them start and end at the same time.
    """
    dated = [(i, start) for i in incidents if i.is_failure and (start := wording.since(i))]
    if len(dated) < 2:
        return None
    first = min(start for _, start in dated)
    last = max(_end(incident, start) for incident, start in dated)
    if first == last:
        return None
    by_job: dict[tuple[str, str], list[tuple[Incident, datetime]]] = {}
    for incident, start in dated:
        name = incident.job_name or incident.job_id or ""
        by_job.setdefault((incident.deployment, name), []).append((incident, start))
    shown, left_out = wording.capped(list(by_job.items()), limit)
    lanes = tuple(
        Lane(f"{deployment} {job}".strip(), tuple(_bars(of, first, last)))
        for (deployment, job), of in shown
    )
    return Overview(lanes, left_out, ticks_of(first, last), first, last)


def _end(incident: Incident, start: datetime) -> datetime:
    return max(start, incident.ended_at or start)


def _bars(
    incidents: Iterable[tuple[Incident, datetime]], first: datetime, last: datetime
) -> Iterable[Bar]:
    for incident, start in incidents:
        x = place_of(start, first, last)
        end = place_of(_end(incident, start), first, last)
        cause = wording.root(incident) if incident.verdict == "diagnosed" else None
        headline = cause.title if cause else "cause undetermined"
        yield Bar(
            x=percent_of(x),
            end=percent_of(end),
            width=percent_of(end - x),
            outcome=incident.outcome,
            tone=cause.severity if cause else "undetermined",
            title=f"{wording.instant(start)}  {headline}, {incident.outcome}",
        )
