"""Splits the text of an event into its message and the cause chain of its stack trace."""

from __future__ import annotations

import re
from collections.abc import Sequence

from flink_triage.logs.text.trace_lines import (
    CAUSE,
    CIRCULAR,
    HEADER,
    MORE,
    NAME,
    SUPPRESSED,
    TRACE_WORDS,
    TRACEBACK,
    is_elision,
    is_throwable_type,
)
from flink_triage.model import StackTrace
from flink_triage.traces.cause_chain import Assembly
from flink_triage.traces.frames import parse_frame
from flink_triage.traces.lines import Line, logical_lines
from flink_triage.traces.python import is_java_of_py4j, java_header, read_traceback

# Maximum number of unrelated lines (of another thread, or the rest of a wrapped line) between the
# frames of a trace.
_MAX_NOISE_LINES = 3

_IN_LINE = re.compile(
    r"""
    (?:^|(?<=[\s:(\[<"'|,\u3000-\uffee-]))
    (?P<type>[A-Za-z_$][\w$]{0,255}(?:\.[\w$]{1,255}){0,30})
    (?=(?:\([\w$.]{1,512}\))?:(?:\s|$)|\uff1a|\s*$)
    """,
    re.VERBOSE,
)
# A single line without any of these words contains no stack trace.
_TRACE_INDICATION = re.compile(
    "|".join((*map(re.escape, TRACE_WORDS), r" by[:\uff1a]", r"at[ \t]"))
)
# After one of these words, "pkg.Type: message" is parsed as a throwable even without stack frames.
_BLAME = re.compile(r"(?:caused?|reason|exception|failure)(?:[ ]by)?[:=][ ]*\Z", re.IGNORECASE)
# A class name with a package, even if it does not look like the name of a throwable.
_GUESS = re.compile(r"(?P<type>[a-z]\w{0,64}(?:\.[\w$]{1,255}){1,30})(?:\s*$|:(?=\s|$))")
_CUT_FRAME = re.compile(rf"at(?:[ ]+{NAME})?(?:\([^()\n]{{0,256}})?")
# The line above the frames of a thread in jstack output, which is not a failure.
_THREAD_STATE = "java.lang.Thread.State:"
# The message of the Python error above the Java exception.
_PY4J_CALL = "An error occurred while calling "
_SERVER_SIDE = "<Exception on server side:"
_SERVER_SIDE_END = "End of exception on server side"


def extract(message: str, continuation: str | None) -> tuple[str, StackTrace | None]:
    """The text of the event without its stack trace, and the trace.

    ``message`` is the text after the header, and ``continuation`` contains the lines after it. The
    returned text includes the lines before and after the trace, and unrelated lines between its
    frames; a second trace is not parsed. Without a trace, the message is returned with its
    continuation. Invalid input does not raise an exception. Runs in linear time.
    """
    text = message if continuation is None else f"{message}\n{continuation}"
    if "\n" not in text and _TRACE_INDICATION.search(text) is None:
        return text, None
    lines = logical_lines(text.split("\n"))
    start = _find_start(lines)
    if start is None:
        return text, None
    parser = _Parser(lines)
    rest = parser.run(*start)
    trace = parser.assembly.build()
    if trace is None:
        return text, None
    return rest, trace


def _is_structural(text: str) -> bool:
    return parse_frame(text) is not None or bool(
        CAUSE.match(text) or SUPPRESSED.match(text) or MORE.match(text) or CIRCULAR.match(text)
    )


def _header_at(text: str) -> re.Match[str] | None:
    match = HEADER.match(text)
    return match if match is not None and is_throwable_type(match["type"]) else None


def _find_start(lines: Sequence[Line]) -> tuple[int, int] | None:
    """The line and column at which the trace starts, or ``None`` if there is no trace."""
    first = next((i for i, line in enumerate(lines) if _is_structural(line.text)), None)
    python = next((i for i, line in enumerate(lines) if TRACEBACK in line.text), None)
    limit = len(lines) if first is None else first
    if python is not None:
        limit = min(limit, python + 1)
    for i in range(limit):
        if _header_at(lines[i].text):
            return i, 0
    for i in range(limit):
        column = _in_line_start(lines[i].text, is_certain=first is not None or python is not None)
        if column is not None:
            return i, column
    if python is not None and python < limit:
        return python, lines[python].text.index(TRACEBACK)
    if first is None:
        return None
    if first > 0 and lines[first - 1].text.startswith(_THREAD_STATE):
        return None
    if first > 0 and _GUESS.match(lines[first - 1].text):
        return first - 1, 0
    return first, 0


def _in_line_start(text: str, is_certain: bool) -> int | None:
    """The start of a throwable in a line.

    If ``is_certain`` is false, because the text has no other line of a trace, the class must have a
    package, and follow a word such as ``reason:`` or ``caused by:``.
    """
    for match in _IN_LINE.finditer(text):
        if not is_throwable_type(match["type"]):
            continue
        before = text[max(0, match.start() - 24) : match.start()]
        if is_certain or ("." in match["type"] and _BLAME.search(before)):
            return match.start()
    return None


class _Parser:
    """Parses the logical lines of one event into an ``Assembly``, line by line."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = lines
        self.assembly = Assembly()
        self.prose: list[str] = []
        backwards = range(len(lines) - 1, -1, -1)
        self.last = next((i for i in backwards if _is_structural(lines[i].text)), -1)
        self.noise = 0

    def run(self, start: int, column: int) -> str:
        """Parse from the line and column at which the trace starts; return all other text."""
        for line in self.lines[:start]:
            self.prose.append(line.text)
        head = self.lines[start]
        if column:
            self.prose.append(head.text[:column].rstrip())
        index = self._first(start, Line(head.text[column:], head.indent))
        while index < len(self.lines):
            following = self._step(index)
            if following is None:
                break
            index = following
        self.prose.extend(line.text for line in self.lines[index:])
        return "\n".join(self.prose).strip("\n")

    def _first(self, start: int, line: Line) -> int:
        if line.text.startswith(TRACEBACK):
            return self._python_first(start)
        if _is_structural(line.text):
            # logback's root-first format of a circular chain starts with the reference.
            self.assembly.is_truncated = CIRCULAR.match(line.text) is None
            return start
        self.assembly.start(line.text.partition(TRACEBACK)[0], line.indent)
        return self._after_header(start, line.text)

    def _after_header(self, index: int, text: str) -> int:
        return self._python(index) if TRACEBACK in text else index + 1

    def _python(self, index: int) -> int:
        throwables, following = read_traceback(self.lines, index, _is_structural)
        self.assembly.add_python(throwables)
        return following

    def _python_first(self, start: int) -> int:
        """Parse a Python traceback, which may contain the Java trace that Py4J received."""
        throwables, index = read_traceback(self.lines, start, _is_structural)
        self.assembly.wrap_in_python(throwables)
        if index < len(self.lines) and _header_at(self.lines[index].text):
            self.assembly.start(self.lines[index].text, self.lines[index].indent)
            return index + 1
        if index < len(self.lines) and (header := java_header(throwables)) is not None:
            self.assembly.start(header, self.lines[start].indent)
        return index

    def _step(self, index: int) -> int | None:
        """Parse one line; return the next index, or ``None`` if the trace ended before the line."""
        line = self.lines[index]
        text = line.text
        assembly = self.assembly
        frame = parse_frame(text)
        if frame is not None:
            self.noise = 0
            assembly.add_frame(frame)
            return index + 1
        more = MORE.match(text)
        if more is not None:
            assembly.add_omitted(int(more["count"]))
            return index + 1
        if CIRCULAR.match(text):
            return index + 1
        cause = CAUSE.match(text)
        if cause is not None and self._is_real_cause(text[cause.end() :]):
            return self._cause(index, text[cause.end() :], cause["word"] == "Wrapped")
        suppressed = SUPPRESSED.match(text)
        if suppressed is not None and self._is_real_cause(text[suppressed.end() :]):
            if not assembly.is_full:
                assembly.add_suppressed(text[suppressed.end() :], line.indent)
            return index + 1
        if assembly.in_message and not assembly.is_empty:
            return self._message_line(index, text)
        return self._foreign_line(index, text)

    def _is_real_cause(self, rest: str) -> bool:
        """Whether the text after ``Caused by:`` or ``Suppressed:`` describes a throwable.

        It may also be a part of the message of the current throwable. If this throwable has no
        frames yet, ``rest`` must begin with a class name or ``[CIRCULAR``.
        """
        if rest.startswith("[CIRCULAR"):
            return True
        if not self.assembly.in_message:
            return True
        match = HEADER.match(rest)
        return match is not None or _GUESS.match(rest) is not None

    def _cause(self, index: int, rest: str, is_wrapper: bool) -> int:
        assembly = self.assembly
        if rest.startswith("[CIRCULAR"):
            return index + 1
        indent = self.lines[index].indent
        assembly.add_cause(rest.partition(TRACEBACK)[0], indent, is_wrapper)
        return self._after_header(index, rest)

    def _message_line(self, index: int, text: str) -> int | None:
        assembly = self.assembly
        if TRACEBACK in text:
            assembly.add_message_line(text.partition(TRACEBACK)[0].rstrip())
            return self._python(index)
        if assembly.message_tail.endswith(_SERVER_SIDE) and _header_at(text):
            assembly.enter_server_side(text)
            return index + 1
        if _SERVER_SIDE_END in text and assembly.leave_server_side():
            return index + 1
        if is_java_of_py4j(text) and _PY4J_CALL in assembly.message_tail:
            return self._cause(index, text.removeprefix(": "), is_wrapper=False)
        if index > self.last and not text:
            return None
        if _CUT_FRAME.fullmatch(text) and index == len(self.lines) - 1:
            assembly.is_truncated = True
            return index + 1
        assembly.add_message_line(text)
        return index + 1

    def _foreign_line(self, index: int, text: str) -> int | None:
        """Handle an unrelated line after frames: skip it, or return ``None`` to end the trace."""
        assembly = self.assembly
        if not text:
            return index + 1
        if _SERVER_SIDE_END in text and assembly.leave_server_side():
            return index + 1
        if is_elision(text) or (index == len(self.lines) - 1 and _CUT_FRAME.fullmatch(text)):
            assembly.is_truncated = True
            return index + 1
        if TRACEBACK in text or _header_at(text) or index > self.last:
            return None
        self.noise += 1
        if self.noise > _MAX_NOISE_LINES:
            return None
        self.prose.append(text)
        return index + 1
