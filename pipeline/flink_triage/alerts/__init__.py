"""Two results in, messages out: what is new, worse or resolved since the last run."""

from __future__ import annotations

from .changes import Change, changes_between
from .messages import KINDS, Message, messages_for
from .sending import address_of, send

__all__ = [
    "KINDS",
    "Change",
    "Message",
    "address_of",
    "changes_between",
    "messages_for",
    "send",
]
