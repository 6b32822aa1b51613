"""Draws timeline entries as marks on four lanes, positioned in percent of the width.

With percentages instead of a scaled drawing, text and marks keep their size on a phone screen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from flink_triage.model import Incident, TimelineEntry
from flink_triage.report.facts import wording

Shape = Literal["cross", "dot", "ring", "triangle", "diamond"]

LANES = ("faults", "checkpoints", "restarts", "job")
_CHECKPOINT_FAULTS = {"checkpoint-declined", "checkpoint-expired", "checkpoint-failed"}
_FAULTS = {
    "fault",
    "task-failed",
    "global-failure",
    "taskmanager-lost",
    "taskmanager-heartbeat-lost",
}
_RESTARTS = {"restart", "restored"}
# A margin at both edges, so that marks are not clipped.
_LEFT, _WIDTH = 1.0, 98.0
_STEPS_SECONDS = (
    1,
    2,
    5,
    10,
    15,
    30,
    60,
    120,
    300,
    600,
    900,
    1800,
    3600,
    7200,
    14400,
    21600,
    43200,
)
_MAX_TICKS = 5


@dataclass(frozen=True, slots=True)
class Mark:
    x: str
    lane: int
    shape: Shape
    title: str


@dataclass(frozen=True, slots=True)
class Tick:
    x: str
    label: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Timeline entries as marks; positions and widths are percentages such as ``1.00%``.

    ``fault_x`` and ``fault_width`` shade the time from the first fault to the last entry. They are
    ``None`` if the incident is not a failure, or if its start is unknown or outside of the chart.
    ``undated`` is the number of entries without a time, and ``left_out`` is the number of entries
    that exceed the limit.
    """

    marks: tuple[Mark, ...]
    ticks: tuple[Tick, ...]
    fault_x: str | None
    fault_width: str | None
    undated: int
    left_out: int


def chart_of(incident: Incident, limit: int) -> Chart | None:
    """The drawing, or ``None`` if fewer than two entries have a timestamp."""
    dated = sorted(
        ((entry.at, entry) for entry in incident.timeline if entry.at is not None),
        key=lambda pair: pair[0],
    )
    if len(dated) < 2:
        return None
    start, end = dated[0][0], dated[-1][0]
    shown = _thinned([entry for _, entry in dated], limit)
    since = wording.since(incident)
    fault_x = None
    if incident.is_failure and since is not None and start <= since <= end:
        fault_x = place_of(since, start, end)
    return Chart(
        marks=tuple(_mark(entry, start, end) for entry in shown),
        ticks=ticks_of(start, end),
        fault_x=None if fault_x is None else percent_of(fault_x),
        fault_width=None if fault_x is None else percent_of(_LEFT + _WIDTH - fault_x),
        undated=len(incident.timeline) - len(dated),
        left_out=len(dated) - len(shown),
    )


def lane_of(kind: str) -> int:
    if kind in _FAULTS:
        return 0
    if kind.startswith("checkpoint"):
        return 1
    return 2 if kind in _RESTARTS else 3


def is_fault(kind: str) -> bool:
    return kind in _FAULTS or kind in _CHECKPOINT_FAULTS


def _thinned(entries: Sequence[TimelineEntry], limit: int) -> list[TimelineEntry]:
    """At most ``limit`` entries in time order; faults take precedence over other entries."""
    if len(entries) <= limit:
        return list(entries)
    order = sorted(range(len(entries)), key=lambda index: not is_fault(entries[index].kind))
    return [entries[index] for index in sorted(order[:limit])]


def _mark(entry: TimelineEntry, start: datetime, end: datetime) -> Mark:
    assert entry.at is not None
    times = f" ({entry.count:,}x)" if entry.count > 1 else ""
    title = f"{wording.clock(entry.at, start)}  {entry.text}{times}"
    lane = lane_of(entry.kind)
    shape: Shape = "cross"
    if not is_fault(entry.kind):
        done: Shape = "dot" if entry.kind == "checkpoint-completed" else "ring"
        shape = ("diamond", done, "triangle", "diamond")[lane]
    return Mark(percent_of(place_of(entry.at, start, end)), lane, shape, title)


def ticks_of(start: datetime, end: datetime) -> tuple[Tick, ...]:
    """Up to six round times within the span; empty if it contains none."""
    span = (end - start).total_seconds()
    step = next((step for step in _STEPS_SECONDS if span / step <= _MAX_TICKS), None)
    if step is None:
        step = -int(-span // (_MAX_TICKS * 86_400)) * 86_400
    midnight = start.replace(hour=0, minute=0, second=0, microsecond=0)
    first = -int(-(start - midnight).total_seconds() // step)
    at = midnight + timedelta(seconds=first * step)
    ticks = []
    while at <= end:
        label = (
            f"{at:%m-%d}" if step >= 86_400 else f"{at:%H:%M:%S}" if step < 60 else f"{at:%H:%M}"
        )
        ticks.append(Tick(percent_of(place_of(at, start, end)), label))
        at += timedelta(seconds=step)
    return tuple(ticks)


def place_of(at: datetime, start: datetime, end: datetime) -> float:
    span = (end - start).total_seconds()
    share = (at - start).total_seconds() / span if span else 0.5
    return _LEFT + _WIDTH * share


def percent_of(value: float) -> str:
    return f"{value:.2f}%"
