"""Collects the lines of one event, and detects the lines that start the next event."""

from __future__ import annotations

import re
from datetime import datetime

from flink_triage.logs.layouts.headers import Header, is_below
from flink_triage.logs.readers.logical_lines import Logical
from flink_triage.logs.text.trace_line_kinds import LineKind, kind_of
from flink_triage.logs.text.trace_lines import TRACEBACK, is_elision
from flink_triage.settings import Settings

_SECTION = re.compile(
    r"^(?:Container: container_|LogType: ?|LogLength: ?\d|Log Length: ?\d|Log Type: ?|"
    r"LogLastModifiedTime: ?|Log Upload Time: ?|"
    r"LogContents:|Log Contents:|End of LogType: ?|={20,}$|\*{20,}$)"
)
# Output without a logger: from the SQL client, and from the JVM for an uncaught exception.
_OF_SQL_CLIENT = "[ERROR] Could not execute SQL statement"
_OF_NO_LOGGER = (_OF_SQL_CLIENT, "Flink SQL>", 'Exception in thread "', "Exception: java.lang.")
_BLANK = ("", " ", "\t")
_WORDS = re.compile(r"[^\W\d_]{2,}")


class OpenEvent:
    """An event that may continue on the following lines."""

    __slots__ = (
        "_blank_seen",
        "_dropped",
        "_frames_seen",
        "_head",
        "_head_bytes",
        "_in_traceback",
        "_tail",
        "_tail_bytes",
        "_throwable_open",
        "decode_errors",
        "header",
        "holds_trace",
        "is_truncated",
        "last_line",
        "last_line_offset",
        "line_count",
        "logged_at",
        "minute",
        "newline_count",
        "number",
        "offset",
        "size",
    )

    def __init__(
        self, line: Logical, number: int, header: Header | None, logged_at: datetime | None
    ) -> None:
        self.offset = line.offset
        self.size = 0
        self.number = number
        self.header = header
        self.logged_at = logged_at
        self.minute: datetime | None = None
        self.newline_count = 0
        self.line_count = 0
        self.decode_errors = 0
        self.is_truncated = False
        self.holds_trace = False
        self._head: list[str] = []
        self._tail: list[str] = []
        self._head_bytes = self._tail_bytes = self._dropped = 0
        self._blank_seen = False
        self._frames_seen = False
        self._in_traceback = False
        self._throwable_open = False
        # The last line with content, and the number of lines before it.
        self.last_line = ""
        self.last_line_offset = 0
        self._count(line)
        if header is None:
            self._head.append(line.peeled.text)
            self._note(line.peeled.text)

    def _count(self, line: Logical) -> None:
        self.size += line.size
        self.newline_count += line.newline_count
        self.line_count += max(line.newline_count, 1)
        self.decode_errors += line.decode_errors
        self.is_truncated |= line.is_cut

    def add(self, line: Logical, settings: Settings) -> None:
        self._count(line)
        text = line.peeled.text
        self._note(text)
        half = settings.max_event_bytes // 2
        if not self._tail and self._head_bytes + len(text) <= half:
            self._head.append(text)
            self._head_bytes += len(text) + 1
            return
        self._tail.append(text)
        self._tail_bytes += len(text) + 1
        if self._tail_bytes > 2 * half + 4096:
            self._drop(half)

    def _drop(self, keep: int) -> None:
        kept: list[str] = []
        size = 0
        for text in reversed(self._tail):
            if size + len(text) > keep and kept:
                break
            kept.append(text)
            size += len(text) + 1
        self._dropped += len(self._tail) - len(kept)
        self._tail = kept[::-1]
        self._tail_bytes = size
        self.is_truncated = True

    def _note(self, text: str) -> None:
        if not text or text.isspace():
            self._blank_seen = True
            return
        self._blank_seen = False
        if text[:1] not in _BLANK:
            self._in_traceback = text.startswith(TRACEBACK)
        kind = kind_of(text)
        if kind is LineKind.OTHER and self._frames_seen and is_elision(text):
            return
        self.last_line, self.last_line_offset = text, self.line_count - 1
        if kind is LineKind.FRAME:
            self._frames_seen, self._throwable_open, self.holds_trace = True, False, True
        elif kind is not LineKind.OTHER:
            self.holds_trace = True
            if kind is LineKind.CAUSE or kind is LineKind.THROWABLE:
                self._throwable_open = True

    def is_continued_by(self, text: str) -> bool:
        """Whether a line continues the event, even if it looks like a header."""
        return self.header is not None and self.line_count == 1 and is_below(self.header, text)

    def is_ended_by(self, text: str) -> bool:
        """Whether a line that is not a log header starts a new event."""
        if not text or text.isspace():
            return False
        kind = kind_of(text)
        if kind <= LineKind.INSIDE:
            return kind is LineKind.CAUSE and self._is_title(text)
        if _SECTION.match(text) or text.startswith(_OF_NO_LOGGER):
            return True
        if kind is LineKind.THROWABLE and not text[:1].isspace():
            if self._in_traceback and not self._blank_seen:
                # Python prints the error after the frames.
                return False
            if self._throwable_open:
                # A throwable without stack frames ends at a blank line.
                return self._blank_seen
            # A title above a stack trace is part of the same event.
            is_title = self.line_count == 1 and (
                "Caused by: " in self.last_line or self.last_line.startswith(_OF_SQL_CLIENT)
            )
            return self._frames_seen or (self.header is None and not is_title)
        if self._blank_seen:
            # The throwable has no frames yet, and its message may contain blank lines.
            return not (self._throwable_open and len(self._head) < 40)
        if not self._frames_seen or self._throwable_open or text[0] in " \t(~[":
            return False
        if is_elision(text):
            return False
        # A line at column 0 does not continue a stack frame, but it may be text of an event with a
        # header.
        if self.header is None:
            return kind_of(self.last_line) is LineKind.FRAME
        return _is_prose(text, self.last_line)

    def _is_title(self, text: str) -> bool:
        """Whether the event is a single cause that is indented more than ``text``, another cause.

        The event is then a quotation above the stack trace, because lines that belong to a cause
        are indented at least as much as the cause itself.
        """
        if self.header is not None or self.line_count > 1 or not self._throwable_open:
            return False
        return _indent(self.last_line) > _indent(text)

    def texts(self) -> tuple[str, str | None]:
        """The message, and the lines after it (``None`` if they are missing or blank)."""
        lines = self._head
        if self._dropped:
            lines = [*lines, f"[{self._dropped} lines left out]"]
        lines = [*lines, *self._tail]
        if self.header is not None:
            message = self.header.message
            if self.header.stack:
                lines = [*self.header.stack.split("\n"), *lines]
            elif "\n" in message:
                message, _, rest = message.partition("\n")
                lines = [*rest.split("\n"), *lines]
        else:
            message, lines = (lines[0], lines[1:]) if lines else ("", [])
        continuation = "\n".join(lines).rstrip()
        return message, continuation if continuation.strip() else None


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _is_prose(text: str, last: str) -> bool:
    """Whether ``text`` is a sentence after a complete frame, and not a part of a wrapped frame."""
    if text[:1].isspace() or not last.rstrip().endswith((")", "]", "more")):
        return False
    return len(_WORDS.findall(text[:200])) >= 5 and " " in text and not text.startswith("(")
