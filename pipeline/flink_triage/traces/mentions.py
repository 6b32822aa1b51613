"""Finds the throwables mentioned in text that is not a log.

Users quote a throwable in a sentence or in Markdown, often by its simple class name, or without the
colon and the space after its name.
"""

from __future__ import annotations

import re

from flink_triage.logs.text.trace_lines import is_throwable_type
from flink_triage.model import StackTrace, Throwable

_MAX_CHARS = 16 * 1024
_MAX_THROWABLES = 8
_NAME = re.compile(
    r"(?<![\w.$/])(?P<type>(?:[a-z]\w{0,60}\.){0,12}[A-Z][\w$]{0,120}(?:Exception|Error))\b"
    r"(?P<end>[`*'\"\u2019\u201d]{0,2}(?::|\uff1a|,? (?=[A-Z]))?)[ \t]*"
)
_MARKS = "`*'\"\u2018\u2019\u201c\u201d\u00ab\u00bb"


def mentioned(text: str) -> StackTrace | None:
    """The mentioned throwables as a chain, with the first one outermost, or ``None``.

    The message of a throwable ends at the next throwable or at the end of the line. Only the first
    eight throwables in the first 16 Ki characters are used.
    """
    found = [
        match for match in _NAME.finditer(text, 0, _MAX_CHARS) if is_throwable_type(match["type"])
    ][:_MAX_THROWABLES]
    throwables: list[Throwable] = []
    for index, match in enumerate(found):
        end = text.find("\n", match.end())
        end = len(text) if end < 0 else end
        if index + 1 < len(found):
            end = min(end, found[index + 1].start())
        message = text[match.end() : max(end, match.end())].strip().strip(_MARKS).strip()
        throwables.append(
            Throwable(match["type"], message, relation="cause" if throwables else "thrown")
        )
    return StackTrace(tuple(throwables), is_truncated=True) if throwables else None
