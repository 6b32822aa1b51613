"""Derives the header shape of a file, to find its header lines without parsing them.

A header shape consists of the first columns of a header line, which are the same in each header,
except for digits. It has one character per column: ``9`` stands for a digit, and any other
character for itself (``9999-99-99 99:99:99,999 ``). The anchor is the position of the level, if it
is fixed: ``@24`` is a column, and ``]2`` means after the second ``]`` and one space. The shape and
the anchor are part of the layout name in the profile of the file, such as
``log4j2 <9999-99-99 99:99:99,999 > @24``, so that a byte range can be read without the rest of the
file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from flink_triage.logs.layouts.builtin_layouts import LEVELS
from flink_triage.logs.layouts.timestamps import match_timestamp

# Seven 64-bit words. The start of a JSON record with "@timestamp", nanoseconds, and a UTC offset
# requires 52 columns.
SHAPE_WIDTH = 56
_LEVEL = re.compile(rb"(?:" + LEVELS.encode() + rb")(?![0-9A-Za-z_])")
_SHAPE_IN_NAME = re.compile(
    rf"^(?P<layout>[\w-]+) <(?P<shape>[^\n]{{8,{SHAPE_WIDTH}}})>(?: (?P<anchor>[@\]]\d+))?$"
)

_DIGITS = str.maketrans("0123456789", "9999999999")
_LEVEL_WITHIN = 400
# The number of characters in which to search for the timestamp and the text that follows it.
_TIMESTAMP_CHARS = SHAPE_WIDTH + 8
_BEHIND = re.compile(r"[ \])>|\t]*")
# The text before the timestamp in a JSON record that starts with its timestamp.
_JSON_START = re.compile(r'\{ ?"[@A-Za-z_]{1,16}" ?: ?"')
_PLAIN_TIME = re.compile(
    r"[\[(<]?(?P<time>(?P<second>9999-99-99[ T]99:99:99)[.,](?P<fraction>9{1,9}))[\])>]? |"
    rf"{_JSON_START.pattern}(?P<json_time>(?P<json_second>9999-99-99[ T]99:99:99)"
    r'[.,](?P<json_fraction>9{1,9})(?:Z|[+-]99:?99)?)"'
)
# The columns that determine the minute; the fraction may have any number of digits.
_JSON_SECOND = re.compile(rf"{_JSON_START.pattern}9999-99-99[T ]99:99:99")
JSON = "json"


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a file's header lines: the layout, the columns, and the position of the level.

    ``anchor`` is ``None`` if the level has no fixed position.
    """

    layout: str
    columns: str
    anchor: str | None

    @property
    def is_json(self) -> bool:
        return is_json(self.layout)

    @property
    def name(self) -> str:
        return f"{self.layout} <{self.columns}>" + (f" {self.anchor}" if self.anchor else "")

    @property
    def zero_time(self) -> bytes:
        """The columns with a zero in place of every digit."""
        return self.columns.replace("9", "0").encode()

    @property
    def header_pattern(self) -> bytes:
        """A regex that matches the columns."""
        return _pattern(self.columns).pattern

    def is_header(self, line: bytes) -> bool:
        return _pattern(self.columns).match(line) is not None

    def is_header_text(self, line: str) -> bool:
        return _text_pattern(self.columns).match(line) is not None

    def level_of(self, line: bytes) -> bytes | None:
        """The level at the anchor; ``None`` without an anchor, or if it has no level."""
        column = self._anchor_column(line)
        if column is None:
            return None
        match = _LEVEL.match(line, column)
        return match[0] if match else None

    def _anchor_column(self, line: bytes) -> int | None:
        if self.anchor is None:
            return None
        number = int(self.anchor[1:])
        if self.anchor[0] == "@":
            return number
        position = -1
        for _ in range(number):
            position = line.find(b"]", position + 1)
            if position < 0:
                return None
        return position + 2 if line[position + 1 : position + 2] == b" " else None

    @property
    def time_columns(self) -> tuple[int, int, int] | None:
        """The columns at which the timestamp starts, its fraction starts, and the timestamp ends.

        ``None`` unless the shape is a complete timestamp in a simple format, followed by a space,
        or by a quote in JSON. In JSON, the timestamp includes the UTC offset.
        """
        return _time_columns(self.columns)

    def next_header(self, data: bytes | bytearray, start: int) -> int:
        """The offset of the first header after a newline at or after ``start``, or -1."""
        match = _following(self.columns).search(data, start)
        return match.start() + 1 if match else -1


@lru_cache(maxsize=64)
def _pattern(columns: str) -> re.Pattern[bytes]:
    return re.compile(_text_pattern(columns).pattern.encode())


@lru_cache(maxsize=64)
def _text_pattern(columns: str) -> re.Pattern[str]:
    return re.compile("".join(r"[0-9]" if c == "9" else re.escape(c) for c in columns))


@lru_cache(maxsize=64)
def _time_columns(columns: str) -> tuple[int, int, int] | None:
    match = _PLAIN_TIME.fullmatch(columns)
    if match is None:
        return None
    kind = "json_" if match["json_time"] else ""
    return match.start(f"{kind}second"), match.start(f"{kind}fraction"), match.end(f"{kind}time")


@lru_cache(maxsize=64)
def _following(columns: str) -> re.Pattern[bytes]:
    return re.compile(b"\n" + _pattern(columns).pattern)


def is_json(layout: str) -> bool:
    """Whether a profile's layout name denotes JSON records, with or without a shape."""
    return layout.partition(" ")[0] == JSON


@lru_cache(maxsize=64)
def shape_named(name: str) -> Shape | None:
    """The shape that a profile's layout name includes, or ``None``."""
    match = _SHAPE_IN_NAME.match(name)
    return Shape(match["layout"], match["shape"], match["anchor"]) if match else None


def shape_of(headers: Sequence[str], starts: Sequence[str], layout: str) -> Shape | None:
    """The common shape of these header lines.

    ``None`` for fewer than three lines, or if their common columns are too few. ``starts`` are the
    ``timestamp_columns`` of the lines.
    """
    if len(starts) < 3:
        return None
    columns = _common(sorted(set(starts)))
    # A shape that is shorter than a time of day with milliseconds is not specific to headers.
    if len(columns) < 12 or columns.count("9") < 9 or not columns.isascii():
        return None
    if layout == JSON:
        return Shape(layout, columns, None) if _JSON_SECOND.match(columns) else None
    return Shape(layout, columns, _anchor_of([line.encode() for line in headers]))


def timestamp_columns(line: str) -> str | None:
    """The columns of the timestamp at the start of a line and of the text that directly follows it.

    A bracket or a JSON key may precede the timestamp. Digits are replaced by ``9``. ``None`` if
    there is no timestamp, or if its format has no usable columns, as with month names or an epoch.
    """
    return _columns_of(line[:_TIMESTAMP_CHARS].translate(_DIGITS))


# Cached, because header lines often start with the same text except for digits.
@lru_cache(maxsize=4096)
def _columns_of(line: str) -> str | None:
    json_start = _JSON_START.match(line)
    if json_start is not None:
        match = match_timestamp(line, json_start.end())
        end = match.end() if match is not None and match["ymd"] else 0
        # The closing quote is part of the shape, because it shows that the timestamp is complete.
        return line[: min(end + 1, SHAPE_WIDTH)] if end else None
    start = 1 if line[:1] in "[(<" and line else 0
    match = match_timestamp(line, start)
    # Epoch timestamps do not match, because every digit is 9 here, and `TIMESTAMP` requires that
    # they start with 1.
    if match is None or match["dmy"] or match["mdy"]:
        return None
    behind = _BEHIND.match(line, match.end(), max(match.end(), min(match.end() + 2, SHAPE_WIDTH)))
    assert behind is not None  # the pattern matches the empty string
    return line[: min(match.end(), SHAPE_WIDTH)] + behind.group()


def _common(texts: Sequence[str]) -> str:
    shortest = min(texts, key=len)
    for column, character in enumerate(shortest):
        if any(text[column] != character for text in texts):
            return shortest[:column]
    return shortest


def _anchor_of(lines: Sequence[bytes]) -> str | None:
    """The anchor of the level in at least 90 % of the lines; ``None`` if there is none."""
    found: Counter[str] = Counter()
    for line in lines:
        match = _LEVEL.search(line, 0, _LEVEL_WITHIN)
        if match is None:
            continue
        found[f"@{match.start()}"] += 1
        brackets = line[: match.start()].count(b"]")
        if brackets and line[match.start() - 2 : match.start()] == b"] ":
            found[f"]{brackets}"] += 1
    if not found:
        return None
    anchor, count = found.most_common(1)[0]
    return anchor if count * 10 >= len(lines) * 9 else None


@dataclass(frozen=True, slots=True)
class ShapeMasks:
    """Bit masks of a header shape, in 64-bit words.

    With the masks, NumPy tests many lines for a header at once, and extracts their minutes.
    """

    literal_mask: npt.NDArray[np.uint64]
    literal_value: npt.NDArray[np.uint64]
    digit_mask: npt.NDArray[np.uint64]
    minute_mask: npt.NDArray[np.uint64]
    word_count: int

    def are_headers(self, rows: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Whether each row of 64-bit words starts with the shape.

        A byte is a digit if its high nibble is 3, and is still 3 after 6 is added. The addition
        carries into the next byte only for bytes of 0xFA or above, which fail the first test.
        """
        result: npt.NDArray[np.bool_] = np.ones(len(rows), dtype=np.bool_)
        high, three, six = (np.uint64(0x0101010101010101 * n) for n in (0xF0, 0x30, 0x06))
        for word in range(self.word_count):
            column = rows[:, word]
            result &= (column & self.literal_mask[word]) == self.literal_value[word]
            digits = column & self.digit_mask[word]
            wanted = three & self.digit_mask[word]
            result &= (digits & high) == wanted
            result &= ((digits + (six & self.digit_mask[word])) & high) == wanted
        return result


@lru_cache(maxsize=64)
def masks_of(shape: Shape) -> ShapeMasks:
    columns = shape.columns
    literal_mask, literal, digit, minute = (bytearray(SHAPE_WIDTH) for _ in range(4))
    skipped = sub_minute_columns(columns)
    for index, character in enumerate(columns):
        if character == "9":
            digit[index] = 0xFF
            minute[index] = 0 if index in skipped else 0xFF
        else:
            literal_mask[index] = 0xFF
            literal[index] = ord(character)
    words = [
        np.frombuffer(bytes(part), dtype="<u8") for part in (literal_mask, literal, digit, minute)
    ]
    return ShapeMasks(words[0], words[1], words[2], words[3], (len(columns) + 7) // 8)


@lru_cache(maxsize=64)
def sub_minute_columns(columns: str) -> frozenset[int]:
    """The columns of the seconds and their fraction, which do not affect the minute."""
    match = re.search(r"(?<=99:99:)99(?:[.,:]9+)?", columns)
    return frozenset(range(*match.span())) if match else frozenset()
