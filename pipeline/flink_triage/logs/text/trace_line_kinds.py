"""Classifies lines without a log header by the part of a Java stack trace that they resemble."""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache

from flink_triage.logs.text.trace_lines import (
    continues_trace,
    is_cause,
    is_frame,
    is_more,
    is_throwable_header,
)

# A fully qualified throwable anywhere in a line of prose, and a frame of a stack trace that was
# flattened to one line.
_QUALIFIED = re.compile(r"\b[a-z][\w$]{0,60}\.[\w$.]{0,300}(?:Exception|Error|Throwable)\b")
_FLAT_FRAME = re.compile(r"\bat [\w$.<>/]{3,400}\([\w$.: ]{1,200}\)")


def holds_trace(text: str) -> bool:
    """Whether any line of ``text`` looks like part of a stack trace, or mentions a throwable."""
    return any(is_trace_like(line) for line in text.split("\n"))


class LineKind(IntEnum):
    """The part of a stack trace to which a line belongs; the first kind that applies is used."""

    FRAME = 1  # also "... n more"
    CAUSE = 2
    INSIDE = 3  # any other line that never begins an event
    THROWABLE = 4
    LIKE = 5  # prose that mentions a throwable, or a flattened stack trace
    OTHER = 6


# Maximum length of a cached line. Stack frames repeat often; longer lines are rarely stack frames,
# and would use too much memory.
_MAX_CACHED_CHARS = 512


def kind_of(line: str) -> LineKind:
    return _cached_kind(line) if len(line) <= _MAX_CACHED_CHARS else _kind(line)


def _kind(line: str) -> LineKind:
    if is_frame(line) or is_more(line):
        return LineKind.FRAME
    if is_cause(line):
        return LineKind.CAUSE
    if continues_trace(line):
        return LineKind.INSIDE
    if is_throwable_header(line):
        return LineKind.THROWABLE
    return LineKind.LIKE if is_trace_like(line) else LineKind.OTHER


_cached_kind = lru_cache(maxsize=8192)(_kind)


def names_throwable(text: str) -> bool:
    """Whether ``text`` contains the fully qualified name of a throwable."""
    return _QUALIFIED.search(text) is not None


def is_trace_like(line: str) -> bool:
    if not line or line.isspace():
        return False
    if continues_trace(line) or is_throwable_header(line):
        return True
    return names_throwable(line) or _FLAT_FRAME.search(line) is not None
