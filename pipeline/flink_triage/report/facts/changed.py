"""Describes the changes since the last healthy start, for reports that people read."""

from __future__ import annotations

import itertools

from flink_triage.model import ChangeKind, Incident, ObservedChange, StartOf
from flink_triage.report.facts.sanitize import one_line
from flink_triage.report.facts.wording import clock, since

# A note in the Markdown and HTML reports.
NO_CAUSE = "These are differences in the logs, not necessarily the cause."
_NOUNS: dict[ChangeKind, str] = {
    "flink-version": "version of",
    "java-version": "version of",
    "configuration": "option",
    "jar": "jar",
    "parallelism": "parallelism of",
    "jvm-option": "JVM option",
}
_STARTED = {"jobmanager": "JobManager", "taskmanager": "TaskManager"}


def shown(incident: Incident, limit: int = 99) -> tuple[list[tuple[str, list[str]]], int]:
    """The first changes, grouped by pairs of starts under a heading, and the number of others."""
    changes = incident.changes[:limit]
    grouped = itertools.groupby(changes, lambda one: (one.healthy_start, one.failing_start))
    left_out = len(incident.changes) - len(changes) + incident.changes_left_out
    return [
        (_heading(incident, *starts), [describe_change(change) for change in of])
        for starts, of in grouped
    ], left_out


def _heading(incident: Incident, healthy: StartOf, failing: StartOf) -> str:
    """``changed since the last healthy start (JobManager, 05:40:12 -> 05:52:02)``."""
    times = " -> ".join(clock(start.at, since(incident)) for start in (healthy, failing))
    who = _STARTED.get(failing.process or "", "job submitted")
    return f"changed since the last healthy start ({who}, {times})"


def describe_change(change: ObservedChange) -> str:
    """The change in one phrase, such as ``option state.backend.type: hashmap -> rocksdb``."""
    named = f"{_NOUNS[change.what]} {one_line(change.name)}"
    before, after = (value and one_line(value) for value in (change.before, change.after))
    if change.before is None:
        return f"{named}: added" + (f", {after}" if after != change.name else "")
    if change.after is None:
        return f"{named}: removed" + (f", was {before}" if before != change.name else "")
    return f"{named}: {before or 'empty'} -> {after or 'empty'}"
