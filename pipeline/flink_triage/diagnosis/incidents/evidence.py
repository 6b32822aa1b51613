"""Converts a moment or a hit into evidence for reports."""

from __future__ import annotations

from flink_triage.diagnosis.moment import Moment
from flink_triage.diagnosis.ranking.causality import Hit
from flink_triage.logs.text.redact import redact_path
from flink_triage.model import Evidence, Observation
from flink_triage.settings import Settings


def hit_evidence(hit: Hit, settings: Settings) -> Evidence:
    event = hit.moment.observation.event
    return Evidence(
        path=redact_path(event.path),
        line=event.line + hit.match.line_offset,
        offset=event.offset,
        at=event.logged_at,
        excerpt=hit.match.excerpt[: settings.max_excerpt_chars],
        fingerprint=_trace_of(hit.moment.observation),
    )


def evidence_of(moment: Moment, settings: Settings) -> Evidence:
    observation = moment.observation
    event = observation.event
    excerpt = message_and_root_cause(observation)
    return Evidence(
        redact_path(event.path),
        event.line,
        event.offset,
        event.logged_at,
        excerpt[: settings.max_excerpt_chars],
        _trace_of(observation),
    )


def message_and_root_cause(observation: Observation) -> str:
    """The message of the event, and the class and message of its root cause, if any."""
    message = observation.event.message
    if not observation.root_cause_type:
        return message
    root = f"{observation.root_cause_type}: {observation.root_cause_message or ''}"
    return f"{message}\n{root.rstrip(': ')}" if message else root


def _trace_of(observation: Observation) -> str | None:
    return observation.fingerprint.full if observation.fingerprint is not None else None
