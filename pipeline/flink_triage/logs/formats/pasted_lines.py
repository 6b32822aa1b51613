"""Restores pasted lines: removes Markdown and labels, and completes damaged stack frames."""

from __future__ import annotations

import re

from flink_triage.logs.text.trace_line_kinds import LineKind, kind_of

_RECORD = re.compile(
    r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.,]\d{3}Z? +(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b"
)
# A stack frame that may lack "at" or be a list item, and may lack its closing parenthesis or its
# whole source location.
_METHOD = (
    r"(?:[\w.-]{1,60}(?:@[\w.-]{1,30})?/)?(?:[a-z]\w{0,60}\.){1,12}"
    r"[A-Z][\w$]{0,200}\.[\w$<>]{1,200}"
)
_SOURCE = r"\w{1,200}\.(?:java|scala|kt)(?::\d{1,6})?"
_CUT_FRAME = re.compile(
    rf"[ \t]*(?:at[ ]|[-*+][ ])?(?P<method>{_METHOD})\((?P<source>{_SOURCE})[ ]?\)?"
    rf"|[ \t]*(?:at|[-*+])[ ](?P<only>{_METHOD})(?:\([ ]?\)?)?"
)
_MAX_LABEL_CHARS = 80
_MAX_FRAME_CHARS = 1024
_OPENING = "`'\"\u00ab\u2018\u201c>(["
_CLOSING = re.compile(r"(?:[`'\"\u00bb\u2019\u201d)\]]|</\w{1,10}>){1,4}[.,;]?\s*\Z")


def unmarked(text: str) -> str:
    """The text without backticks at its start, and without ``**`` around a line of a stack trace.

    A backtick at the end is removed if it is the only one and follows a stack frame, because it
    then ends a quotation of several lines.
    """
    bare = text.lstrip()
    if bare.startswith("`"):
        # The text is quoted within a line of Markdown.
        return bare.lstrip("`")
    if bare.startswith("**"):
        begin, mark, rest = bare[2:].partition("**")
        return begin + rest if mark and kind_of(begin) < LineKind.LIKE else text
    is_closing = text.endswith("`") and text.count("`") == 1
    return text[:-1] if is_closing and kind_of(text[:-1]) is LineKind.FRAME else text


def whole_frame(text: str) -> str | None:
    """The complete stack frame for a line that lacks "at", the source, or the closing parenthesis.

    ``None`` for any other line, including a complete frame.
    """
    if "." not in text or len(text) > _MAX_FRAME_CHARS:
        return None
    found = _CUT_FRAME.fullmatch(text.rstrip())
    if found is None or kind_of(text) is LineKind.FRAME:
        return None
    if found["only"] is not None:
        return f"\tat {found['only']}(Unknown Source)"
    return f"\tat {found['method']}({found['source']})"


def record_behind_label(text: str) -> str | None:
    """The log record after a label, without surrounding quotes or tags; ``None`` if missing."""
    found = _RECORD.search(text, 0, _MAX_LABEL_CHARS + 64)
    if found is None or not 0 < found.start() <= _MAX_LABEL_CHARS:
        return None
    label, record = text[: found.start()], text[found.start() :]
    if label[-1].isalnum():
        return None
    return _CLOSING.sub("", record) if label[-1] in _OPENING else record
