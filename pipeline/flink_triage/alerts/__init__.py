"""Two results in, messages out: what is new, worse or resolved since the last run."""

from __future__ import annotations

from flink_triage.alerts.changes import Change, changes_between
from flink_triage.alerts.messages import KINDS, Message, messages_for
from flink_triage.alerts.sending import address_of, send

__all__ = [
    "KINDS",
    "Change",
    "Message",
    "address_of",
    "changes_between",
    "messages_for",
    "send",
]
