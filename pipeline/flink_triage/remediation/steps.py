"""Selects the steps of a remediation that apply to the messages in the log."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

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
    in a part of the log that was not kept. The steps that begin with messages are then last.
    """
    flat = " ".join(text.casefold().split())
    applies = {step: _applies(step, flat) for step in steps}
    rest = [step for step in steps if applies[step] is not False]
    if True in applies.values():
        return tuple(rest)
    return (*rest, *(step for step in steps if applies[step] is False))


def _applies(step: str, text: str) -> bool | None:
    """Whether ``text`` contains a message of the step; ``None`` for a step without messages."""
    messages = _messages_of(step)
    return any(_contains(text, parts) for parts in messages) if messages else None


@lru_cache(maxsize=4096)
def _messages_of(step: str) -> tuple[tuple[str, ...], ...]:
    """The messages at the beginning of a step, each split at omissions and placeholders."""
    found = _FOR_MESSAGES.match(step)
    messages = _QUOTED.findall(found["messages"]) if found else ()
    split = (_ANYTHING.split(message.casefold()) for message in messages)
    return tuple(
        tuple(part for text in parts if (part := " ".join(text.split()))) for parts in split
    )


def _contains(text: str, parts: Sequence[str]) -> bool:
    """Whether ``text`` contains the parts in this order, each as whole words."""
    end = 0
    for part in parts:
        end = _end_of(part, text, end)
        if end < 0:
            return False
    return bool(parts)


def _end_of(part: str, text: str, start: int) -> int:
    """The end of the first occurrence of ``part`` as whole words; -1 if there is none."""
    while (at := text.find(part, start)) >= 0:
        end = at + len(part)
        if not (_is_in_word(text, at) or _is_in_word(text, end)):
            return end
        start = at + 1
    return -1


def _is_in_word(text: str, position: int) -> bool:
    """Whether the characters before and after the position belong to one word."""
    around = text[max(position - 1, 0) : position + 1]
    return len(around) == 2 and all(char.isalnum() or char == "_" for char in around)
