"""Renders changes as HTTP request bodies of limited size.

Slack allows 50 blocks per message and 3,000 characters per section, and requires ``&<>`` to be
escaped (docs.slack.dev/messaging/formatting-message-text). Alertmanager accepts ``POST
/api/v2/alerts``; an alert is resolved if its ``endsAt`` is in the past. Control characters in log
text are replaced by spaces.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, get_args

from flink_triage.alerts.changes import Change
from flink_triage.model import Incident

Kind = Literal["slack", "webhook", "alertmanager"]
KINDS: tuple[Kind, ...] = get_args(Kind)
REPORTED_STATUSES = frozenset({"new", "worse", "resolved"})
MAX_SLACK_SECTIONS = 45
MAX_SLACK_CHARS = 2_800
MAX_ALERTS = 500
MAX_TEXT_CHARS = 1_000
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Message:
    """One request: the kind of the receiver, and the JSON body."""

    kind: Kind
    body: bytes


def messages_for(
    kind: Kind, changes: Sequence[Change], run_id: str, now: datetime
) -> tuple[Message, ...]:
    """The message about ``changes``; empty if nothing is new, worse, or resolved.

    The number of changes in a message is limited. Slack and webhook messages state how many are
    omitted; a message for Alertmanager does not.
    """
    reported = [change for change in changes if change.status in REPORTED_STATUSES]
    if not reported:
        return ()
    if kind == "slack":
        return (_message(kind, _slack(reported)),)
    if kind == "alertmanager":
        return (_message(kind, [_alert(change, now) for change in reported[:MAX_ALERTS]]),)
    return (_message(kind, _webhook(reported, run_id)),)


def _message(kind: Kind, body: object) -> Message:
    return Message(kind, json.dumps(body, ensure_ascii=True).encode("ascii"))


def _slack(reported: Sequence[Change]) -> dict[str, object]:
    count = "1 change" if len(reported) == 1 else f"{len(reported)} changes"
    sections = [_section(_slack_text(change)) for change in reported[:MAX_SLACK_SECTIONS]]
    left = len(reported) - len(sections)
    if left > 0:
        sections.append(_section(f"and {left} more: see the report"))
    return {"text": f"flink-triage: {count}", "blocks": sections}


def _section(text: str) -> dict[str, object]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def _slack_text(change: Change) -> str:
    incident = change.incident
    lines = [f"*{change.status}* {_for_slack(_name(incident))}", _for_slack(_summary(incident))]
    if incident.diagnoses:
        lines.append(_for_slack(_plain(incident.diagnoses[0].remediation.summary)))
    text = "\n".join(line for line in lines if line)
    return text if len(text) <= MAX_SLACK_CHARS else f"{text[:MAX_SLACK_CHARS]}…"


def _for_slack(text: str) -> str:
    """The text, escaped; characters that format text are replaced by similar characters."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.translate(str.maketrans("*_~`", "∗ˍ∼'"))


def _alert(change: Change, now: datetime) -> dict[str, object]:
    incident = change.incident
    best = incident.diagnoses[0] if incident.diagnoses else None
    alert: dict[str, object] = {
        "labels": {
            "alertname": "FlinkTriage",
            "deployment": _plain(incident.deployment),
            "job": _plain(incident.job_id or ""),
            # Labels identify an alert, so they must not contain values that change between runs.
            "started_at": str(incident.started_at or ""),
        },
        "annotations": {
            "status": change.status,
            "summary": _summary(incident),
            "severity": best.severity if best else "unknown",
            "signature": best.signature if best else "unknown",
            "remediation": _plain(best.remediation.summary) if best else "",
        },
        "startsAt": (incident.started_at or _LONG_AGO).isoformat(),
    }
    if change.status == "resolved":
        alert["endsAt"] = now.isoformat()
    return alert


def _webhook(reported: Sequence[Change], run_id: str) -> dict[str, object]:
    return {
        "schema_version": 1,
        "run_id": run_id,
        "changes": [_plain_change(change) for change in reported[:MAX_ALERTS]],
        "left_out": max(len(reported) - MAX_ALERTS, 0),
    }


def _plain_change(change: Change) -> dict[str, object]:
    incident = change.incident
    best = incident.diagnoses[0] if incident.diagnoses else None
    return {
        "status": change.status,
        "incident_id": incident.incident_id,
        "deployment": _plain(incident.deployment),
        "job_id": incident.job_id,
        "job_name": _plain(incident.job_name) if incident.job_name else None,
        "started_at": incident.started_at.isoformat() if incident.started_at else None,
        "verdict": incident.verdict,
        "outcome": incident.outcome,
        "signature": best.signature if best else None,
        "severity": best.severity if best else None,
        "summary": _summary(incident),
    }


def _name(incident: Incident) -> str:
    job = incident.job_name or incident.job_id
    return _plain(f"{incident.deployment} · {job}" if job else incident.deployment)


def _summary(incident: Incident) -> str:
    return _plain(incident.summary)


def _plain(text: str) -> str:
    """The text, truncated, with newlines and other non-printable characters replaced by spaces."""
    text = "".join(char if char.isprintable() else " " for char in text)
    return text if len(text) <= MAX_TEXT_CHARS else f"{text[: MAX_TEXT_CHARS - 1]}…"
