"""Restores the logical lines of a stack trace from the physical lines of an event.

Removes email quoting, splits traces that were flattened to one line, and joins wrapped lines. The
result is a list of lines without indentation, line ends, and trailing whitespace.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from flink_triage.logs.text.trace_lines import (
    CAUSE,
    FRAME,
    HEADER,
    NAME,
    continues_trace,
    is_frame,
    is_throwable_type,
)

# Lines to inspect, including the first one, to complete a wrapped stack frame or cause.
_MAX_JOINS = 6
_TAB_WIDTH = 4

_LEADING = re.compile(r"[ \t\u00a0]*")
_QUOTE = re.compile(r"[ ]{0,8}(?:>[ ]?){1,9}")

# In a flattened trace, a frame or cause follows the text that replaced the newline: spaces, "|", an
# escaped \n or \t, syslog's #012 or #011, or <br>. A bracket may also end the previous line.
_AFTER_BREAK = r"(?:(?<=[\s|>])|(?<=\\[nt])|(?<=\#01[0-9])|(?<=[)\]]))"
_BOUNDARY = re.compile(
    rf"""
    {_AFTER_BREAK}
    (?:
        at[ ](?={NAME}[ ]?\([^()\n]{{0,256}}\))
      | (?:Caused?|Wrapped)[ ]by:[ ]?(?=[A-Za-z_$][\w$]{{0,255}}\.[\w$.]{{1,512}}(?:[:\s|\\(]|$))
      | Suppressed:[ ](?=[A-Za-z_$][\w$]{{0,255}}\.[\w$.]{{1,512}}(?:[:\s|\\(]|$))
      | \.\.\.[ ]\d{{1,9}}[ ](?:more|common[ ]frames[ ]omitted)\b
    )
    """,
    re.VERBOSE,
)
# Every boundary contains one of these words. Searching for them takes 0.6 µs per line instead of
# 10 µs.
_BOUNDARY_WORDS = ("at ", " by:", "Suppressed: ", "... ")
_ESCAPED_BREAK = re.compile(r"(?:\\r)?\\n|\#015\#012|\#012|<br[ ]?/?>", re.VERBOSE)
_ESCAPED_TAB = re.compile(r"\\t|\#011", re.VERBOSE)

_PARTIAL_FRAME = re.compile(rf"at(?:[ ]{NAME})?(?:[ ]?\([^()\n]{{0,256}})?")
_PARTIAL_TAIL = re.compile(
    rf"at[ ]{NAME}[ ]?\([^()\n]{{0,256}}\)[ \t]*~?(?:\[[^\]\n]{{0,512}})?", re.VERBOSE
)
_BROKEN_END = re.compile(r"[a-z,]")
_BROKEN_START = re.compile(r"[a-z]")
# The minimum and maximum lengths of a line that a document or terminal wrapped between words.
_NARROWEST = 72
_WIDEST = 240
_JAR_TAIL = re.compile(r"~?\[[^\]\n]{1,512}:[^\]\n]{0,128}\]")
# Longer lines are not cached. The traces of a log usually consist of a few thousand distinct
# frames.
_KNOWN_CHARS = 400


@dataclass(frozen=True, slots=True)
class Line:
    """One logical line: its text, its indentation, and whether it is a complete stack frame."""

    text: str
    indent: int = 0
    is_frame: bool = False


def logical_lines(physical: Sequence[str]) -> list[Line]:
    """The lines as the program printed them, as far as they can be restored."""
    lines: list[Line] = []
    for text in _unquote(physical):
        known = _frame_line(text) if len(text) < _KNOWN_CHARS else None
        if known is not None:
            lines.append(known)
        else:
            lines.extend(_unflatten(text))
    return _unwrap(lines)


@lru_cache(maxsize=32768)
def _frame_line(text: str) -> Line | None:
    return _line(text) if is_frame(text) else None


def _unquote(physical: Sequence[str]) -> list[str]:
    """Remove ``> `` from the start of each line, if at least two thirds of the lines have it.

    Blank lines are not counted. The first line is not counted, because its header was removed.
    """
    filled = [line for line in physical[1:] if line.strip()]
    quoted = sum(1 for line in filled if _QUOTE.match(line))
    if not filled or quoted * 3 < len(filled) * 2:
        return list(physical)
    return [_QUOTE.sub("", line, count=1) for line in physical]


def _line(text: str) -> Line:
    lead = _LEADING.match(text)
    assert lead is not None  # the pattern matches the empty string
    blanks = lead.group()
    indent = len(blanks) + (_TAB_WIDTH - 1) * blanks.count("\t")
    return _line_of(text[lead.end() :].rstrip(), indent)


def _line_of(text: str, indent: int) -> Line:
    return Line(text, indent, is_frame(text))


def _unflatten(text: str) -> list[Line]:
    """One line per stack frame and cause, if newlines were replaced by other text."""
    if is_frame(text):
        return [_line(text)]
    starts: list[int] = []
    if any(word in text for word in _BOUNDARY_WORDS):
        starts = [match.start() for match in _BOUNDARY.finditer(text)]
    lead = len(text) - len(text.lstrip(" \t>\u00a0"))
    if not starts or starts == [lead]:
        return [_line(text)]
    separator = _separator(text, starts)
    if separator == "escape":
        text = _ESCAPED_TAB.sub("\t", _ESCAPED_BREAK.sub("\n", text))
    elif separator == "|":
        text = text.replace("|", "\n")
    if "\n" in text:
        pieces = text.split("\n")
        return [line for piece in pieces for line in _split(piece)]
    return _split(text)


def _separator(text: str, starts: Sequence[int]) -> str:
    """The kind of text that replaces newlines, determined from the first three boundaries."""
    for start in starts[:3]:
        before = text[max(0, start - 16) : start].rstrip(" \t")
        if before.endswith("|"):
            return "|"
        if before.endswith(("\\n", "\\t", "#012", "#011", ">")):
            return "escape"
    return "blank"


def _split(text: str) -> list[Line]:
    cuts = [0]
    cuts.extend(match.start() for match in _BOUNDARY.finditer(text) if match.start() > 0)
    cuts.append(len(text))
    lines: list[Line] = []
    lead = ""
    for begin, end in pairwise(cuts):
        piece = text[begin:end]
        trimmed = piece.rstrip("| \t")
        if trimmed.strip():
            lines.append(_line(lead + trimmed))
        # Tabs before a boundary are the indentation of the text that follows.
        lead = "\t" * piece[len(trimmed) :].count("\t")
    return lines


def _unwrap(lines: Sequence[Line]) -> list[Line]:
    """Join wrapped stack frames and causes, and then wrapped messages and sentences."""
    joined: list[Line] = []
    wrapped_at: list[int] = []
    index = 0
    while index < len(lines):
        if lines[index].is_frame and not _next_is_jar(lines, index):
            joined.append(lines[index])
            index += 1
            continue
        line, used, cut_lengths = _join(lines, index)
        joined.append(line)
        wrapped_at.extend(cut_lengths)
        index += used
    return _join_sentences(_join_messages(joined, wrapped_at) if wrapped_at else joined)


def _join(lines: Sequence[Line], index: int) -> tuple[Line, int, list[int]]:
    """The logical line at ``index``, its number of physical lines, and their wrap columns."""
    first = lines[index]
    text = first.text
    if not text:
        return first, 1, []
    lengths: list[int] = []
    for used in range(1, min(_MAX_JOINS, len(lines) - index)):
        piece = lines[index + used].text
        is_open = _wants_more(text)
        if not is_open or not piece or continues_trace(piece):
            break
        lengths.append(lines[index + used - 1].indent + len(lines[index + used - 1].text))
        text = _glue(text, piece)
        if _is_whole(text) and not _next_is_jar(lines, index + used):
            return _line_of(text, first.indent), used + 1, lengths
    return first, 1, []


def _next_is_jar(lines: Sequence[Line], index: int) -> bool:
    if index + 1 >= len(lines) or lines[index + 1].is_frame:
        return False
    return _JAR_TAIL.fullmatch(lines[index + 1].text) is not None


def _wants_more(text: str) -> bool:
    if text.startswith("at"):
        return (
            _PARTIAL_FRAME.fullmatch(text) is not None or _PARTIAL_TAIL.fullmatch(text) is not None
        )
    if text in ("Caused", "Caused by", "Suppressed"):
        return True
    cause = CAUSE.match(text)
    rest = text[cause.end() :] if cause is not None else text
    if cause is not None and not rest:
        return True
    return re.fullmatch(r"[a-z][\w$]{0,255}(?:\.[\w$]{0,255}){1,30}", rest) is not None


def _is_whole(text: str) -> bool:
    if text.startswith("at"):
        return is_frame(text)
    cause = CAUSE.match(text)
    header = HEADER.match(text[cause.end() :] if cause is not None else text)
    return header is not None and is_throwable_type(header["type"])


def _glue(text: str, piece: str) -> str:
    is_word_end = text in ("at", "Caused", "Caused by", "Caused by:", "Suppressed", "Suppressed:")
    return f"{text} {piece}" if is_word_end or text.endswith(" by:") else text + piece


def _join_messages(lines: Sequence[Line], cuts: Sequence[int]) -> list[Line]:
    """Join the wrapped messages of a trace that contains wrapped frames or causes.

    ``cuts`` are the columns at which these were wrapped. If there are several cuts, all at the same
    column, words may be cut as well, so lines that reach this column are joined without a space.
    Otherwise, a line is joined with the next one, by a space, if the first word of the next line
    would not fit before the last of these columns.
    """
    column = max(cuts)
    is_exact = len(cuts) > 1 and len(set(cuts)) == 1
    result: list[Line] = []
    last_end = 0
    for line in lines:
        end = line.indent + len(line.text)
        previous = result[-1] if result else None
        if (
            previous is not None
            and previous.text
            and line.text
            and not FRAME.match(previous.text)
            and not continues_trace(line.text)
            and not HEADER.match(line.text)
            and _reaches(last_end, column, line.text, is_exact)
        ):
            glue = "" if is_exact else " "
            result[-1] = _line_of(previous.text + glue + line.text, previous.indent)
        else:
            result.append(line)
        last_end = end
    return result


def _join_sentences(lines: Sequence[Line]) -> list[Line]:
    """Join sentences that were wrapped between words, if a long line ends inside a sentence.

    The first line may be short, because its header was removed, unless it contains "Exception" or
    "Error".
    """
    result: list[Line] = []
    for index, line in enumerate(lines):
        previous = result[-1] if result else None
        if (
            previous is not None
            and not line.is_frame
            and _BROKEN_END.match(previous.text[-1:])
            and _BROKEN_START.match(line.text)
            and line.indent <= previous.indent
            and _may_break(previous.text, is_first=index == 1)
            and not continues_trace(line.text)
            and not HEADER.match(line.text)
        ):
            result[-1] = _line_of(f"{previous.text} {line.text}", previous.indent)
        else:
            result.append(line)
    return result


def _may_break(text: str, is_first: bool) -> bool:
    if is_first and "Exception" not in text and "Error" not in text:
        return len(text) <= _WIDEST
    return _NARROWEST <= len(text) <= _WIDEST


def _reaches(end: int, column: int, text: str, is_exact: bool) -> bool:
    if is_exact:
        return end == column or end == column - 1
    return end + 1 + len(text.split(None, 1)[0]) > column
