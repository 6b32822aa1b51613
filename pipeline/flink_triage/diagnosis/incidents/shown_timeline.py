"""Builds the timeline of an episode for reports."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from flink_triage.diagnosis.durations import LEAD_IN, LEAD_OUT
from flink_triage.diagnosis.episodes.episodes import Episode
from flink_triage.diagnosis.incidents.evidence import evidence_of
from flink_triage.diagnosis.moment import Moment
from flink_triage.diagnosis.timeline.timeline import DeploymentTimeline
from flink_triage.model import Observation, TimelineEntry
from flink_triage.settings import Settings

_MAX_TIMELINE_ENTRIES = 60
SHOWN_KINDS = frozenset({"job-submitted", "restored", "job-terminal", "signal", "taskmanager-lost"})


def timeline_entries(
    timeline: DeploymentTimeline, episode: Episode, settings: Settings
) -> tuple[TimelineEntry, ...]:
    """Entries from ``LEAD_IN`` before the first fault to ``LEAD_OUT`` after the last fault.

    Lines of other jobs are excluded. Equal successive entries are merged. If there are too many
    entries, those in the middle are omitted.
    """
    first, last = episode.first_fault.at, episode.last_fault.at
    faults = {id(m) for m in episode.faults}
    job_ids = episode.job_ids
    shown: list[_Line] = []
    cut = 0
    for moment in timeline.between(first - LEAD_IN, last + LEAD_OUT):
        if moment.job_id is not None and moment.job_id not in job_ids:
            continue
        line = _line_of(moment, id(moment) in faults, first)
        if line is None:
            continue
        if shown and (shown[-1].kind, shown[-1].text) == (line.kind, line.text):
            shown[-1].count += line.count
        elif len(shown) < 2 * _MAX_TIMELINE_ENTRIES:
            shown.append(line)
        else:
            # Keep the beginning and the end.
            del shown[_MAX_TIMELINE_ENTRIES // 2]
            shown.append(line)
            cut += 1
    half = _MAX_TIMELINE_ENTRIES // 2
    if len(shown) <= _MAX_TIMELINE_ENTRIES:
        return tuple(line.entry(settings) for line in shown)
    cut += len(shown) - 2 * half
    gap_at = shown[half].moment.observation.event.logged_at
    return (
        *(line.entry(settings) for line in shown[:half]),
        TimelineEntry(gap_at, "omitted", f"{cut} more entries", None, cut),
        *(line.entry(settings) for line in shown[-half:]),
    )


@dataclass(slots=True)
class _Line:
    """An entry that may still be omitted; ``count`` includes equal entries directly after it."""

    moment: Moment
    kind: str
    text: str
    count: int = 1

    def entry(self, settings: Settings) -> TimelineEntry:
        at = self.moment.observation.event.logged_at
        return TimelineEntry(
            at, self.kind, self.text, evidence_of(self.moment, settings), self.count
        )


def _line_of(moment: Moment, is_fault: bool, first_fault: datetime) -> _Line | None:
    observation = moment.observation
    lifecycle = observation.event.lifecycle
    kind = moment.kind
    if kind in SHOWN_KINDS:
        return _Line(moment, kind, _first_line(observation))
    if kind == "job-state" and lifecycle is not None:
        return _Line(moment, kind, f"job {lifecycle.from_state} to {lifecycle.to_state}")
    if kind == "checkpoint-completed":
        text = "checkpoints complete" if moment.at < first_fault else "checkpoint completes"
        return _Line(moment, kind, text, observation.occurrences)
    if is_fault:
        names = sorted({m.signature for m in observation.matches})
        text = ", ".join(names) or observation.root_cause_type or _first_line(observation)
        return _Line(moment, "fault", text)
    return None


def _first_line(observation: Observation) -> str:
    return observation.event.message.split("\n", 1)[0][:160]
