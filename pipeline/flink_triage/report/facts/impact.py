"""Describes the affected jobs of an incident, and its other possible causes, for reports."""

from __future__ import annotations

from flink_triage.model import Incident, OtherCause
from flink_triage.report.facts.sanitize import one_line
from flink_triage.report.facts.wording import capped, clock, count

_MAX_JOBS = 4


def reach(incident: Incident) -> str | None:
    """The number of jobs with their names, the number of hosts, and the minute with most faults.

    ``None`` for fewer than two jobs. At most four names are listed.
    """
    radius = incident.blast_radius
    if radius is None or len(radius.jobs) < 2:
        return None
    shown, left_out = capped(radius.jobs, _MAX_JOBS)
    names = ", ".join(one_line(job.job_name or job.job_id or "unnamed") for job in shown)
    more = f" and {left_out} more" if left_out else ""
    parts = [f"{count(len(radius.jobs), 'job')} ({names}{more})"]
    if radius.hosts:
        parts.append(count(len(radius.hosts), "host"))
    extent = ", ".join(parts)
    if radius.per_minute:
        worst = max(radius.per_minute, key=lambda minute: minute.faults)
        at = clock(worst.minute, worst.minute)[:5]
        extent += f"; most in the minute from {at}: {count(worst.faults, 'fault')}"
    return extent


def other_cause(other: OtherCause) -> str:
    """The title of a possible cause, with texts to search for if the logs do not contain it."""
    title = one_line(other.title)
    if other.standing == "considered" or not other.look_for:
        return title
    words = " or ".join(f'"{one_line(words)}"' for words in other.look_for[:2])
    return f"{title}: search for {words}"
