"""Marks and ticks of the timeline, as percentages of its width."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from flink_triage.model import Incident, TimelineEntry
from flink_triage.report.drawings.incident_timeline import chart_of
from tests.unit.report import examples


def _incident(*entries: TimelineEntry) -> Incident:
    return replace(examples.diagnosed_incident(), timeline=entries)


def test_marks_lie_on_their_lanes_between_both_edges() -> None:
    chart = chart_of(
        _incident(
            TimelineEntry(examples.at("05:52:00"), "checkpoint-completed", "done"),
            TimelineEntry(examples.at("05:52:30"), "fault", "disk", None, 3),
            TimelineEntry(examples.at("05:53:00"), "job-state", "FAILED"),
            TimelineEntry(None, "config", "no time"),
        ),
        limit=10,
    )
    assert chart is not None
    assert [(mark.x, mark.lane, mark.shape) for mark in chart.marks] == [
        ("1.00%", 1, "dot"),
        ("50.00%", 0, "cross"),
        ("99.00%", 3, "diamond"),
    ]
    assert chart.marks[1].title == "05:52:30  disk (3x)"
    assert chart.undated == 1


def test_faults_are_drawn_before_anything_else_is() -> None:
    start = examples.at("05:00:00")
    entries = [
        TimelineEntry(start + timedelta(minutes=n), "checkpoint-completed", str(n))
        for n in range(50)
    ]
    entries.append(TimelineEntry(start + timedelta(hours=1), "fault", "late"))
    chart = chart_of(_incident(*entries), limit=5)
    assert chart is not None
    assert [mark.title.split("  ")[1] for mark in chart.marks] == ["0", "1", "2", "3", "late"]
    assert chart.left_out == 46


@pytest.mark.parametrize("seconds", [0, 0.001, 1, 59, 61, 3_700, 86_400, 700_000, 400_000_000])
def test_any_span_gets_few_ticks(seconds: float) -> None:
    start = examples.at("05:52:00.5")
    entries = (
        TimelineEntry(start, "job-state", "RUNNING"),
        TimelineEntry(start + timedelta(seconds=seconds), "job-state", "FAILED"),
    )
    chart = chart_of(_incident(*entries), limit=10)
    assert chart is not None
    assert len(chart.ticks) <= 6
    assert len(chart.marks) == 2


def test_single_point_in_time_has_no_timeline() -> None:
    assert chart_of(_incident(TimelineEntry(examples.at("05:00:00"), "fault", "x")), 9) is None
