"""Selects the steps of a remediation that apply to the messages in the log."""

from __future__ import annotations

import re
from collections.abc import Sequence

_QUOTED = re.compile(r'"([^"]+)"')
_MESSAGE = r'"[^"]+"(?:\s\([^()"]*\))?'
# The beginning of a step for some messages: MySQL, "message" (1.19) or "message" in a source: ...
_FOR_MESSAGES = re.compile(
    rf"""
    (?:[A-Z]\w*(?:\s\w+)?,\s)?  # product
    (?P<messages>{_MESSAGE}(?:(?:,|,?\s(?:and|or)|,\salso)\s{_MESSAGE})*)
    # Not if the message is in a different log.
    (?:\s(?:as|below|for|in|of|while|with)\s(?:(?!\blogs?\b)[^:"])+)?
    :\s
    """,
    re.VERBOSE,
)
# An omission ("...") or a placeholder ("<port>") in a message.
_ANYTHING = re.compile(r"\s*\.\.\.\s*|<[^<>]*>")


def applicable_steps(steps: Sequence[str], text: str) -> tuple[str, ...]:
    """``steps`` without those that begin with messages of which ``text`` contains none.

    If ``text`` contains no message of any step, all steps are returned, because the message may be
    in a part of the log that was not kept.
    """
    flat = " ".join(text.casefold().split())
    verdicts = [_applies(step, flat) for step in steps]
    if True not in verdicts:
        return tuple(steps)
    return tuple(
        step for step, applies in zip(steps, verdicts, strict=True) if applies is not False
    )


def _applies(step: str, text: str) -> bool | None:
    """Whether ``text`` contains a message of the step; ``None`` for a step without messages."""
    found = _FOR_MESSAGES.match(step)
    if found is None:
        return None
    return any(_contains(text, message) for message in _QUOTED.findall(found["messages"]))


def _contains(text: str, message: str) -> bool:
    parts = [part for part in _ANYTHING.split(message.casefold()) if part.strip()]
    position = 0
    for part in parts:
        word = " ".join(part.split())
        start, end = (r"\b" if word[i].isalnum() else "" for i in (0, -1))
        found = re.compile(f"{start}{re.escape(word)}{end}").search(text, position)
        if found is None:
            return False
        position = found.end()
    return bool(parts)
