"""Cleans text from logs, so that it is safe for a terminal, a browser or a chat.

Log text is untrusted: escape codes can repaint a terminal (CVE-2021-25743), bidi controls can
reorder the text (CVE-2021-42574), and U+2028 adds line breaks.
"""

from __future__ import annotations

import operator
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast

from flink_triage.dataclass_fields import field_names

T = TypeVar("T")

# The escape sequences of ECMA-48: control sequences (CSI) up to the final byte, control strings
# (OSC, DCS, SOS, PM, and APC) up to BEL or ST, and two-byte escapes. A control string must end on
# its line, so that an unfinished one does not remove the text after it. It must not contain the
# introducer of another string, so that matching takes linear time.
_ESCAPE_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9b-\x9f\n]{0,4096}(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Characters that are invisible or reorder text: soft hyphens, bidi marks and embeddings, zero-width
# characters, line separators, surrogates (which cannot be encoded), noncharacters, and tags.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufdd0-\ufdef\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\U000e0000-\U000e0fff]"
)

NO_BREAK = "\u00a0"
_BREAKABLE = re.compile(rf"[^\S{NO_BREAK}]+")


def clean(text: str) -> str:
    r"""The text without control characters except ``\n`` and ``\t``.

    Escape sequences and C0/C1 controls are dropped; characters that are invisible or reorder their
    neighbors are shown as escapes such as ``\u202e``.
    """
    if text.isascii() and _CONTROL.search(text) is None:
        return text
    text = _CONTROL.sub("", _ESCAPE_SEQUENCE.sub("", text.replace("\r\n", "\n")))
    return _INVISIBLE.sub(_shown, text)


def one_line(text: str) -> str:
    """The result of `clean` with each run of white space replaced by one space."""
    return " ".join(clean(text).split())


def clean_values(value: T) -> T:
    """The same value (dataclasses, mappings and tuples, at any depth) with all strings cleaned.

    Mappings are copied; other values only if they require cleaning.
    """
    return cast(T, _clean_value(value))


def _clean_value(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, tuple):
        items = [_clean_value(item) for item in value]
        return value if all(map(operator.is_, items, value)) else tuple(items)
    if isinstance(value, Mapping):
        return {clean(str(key)): _clean_value(item) for key, item in value.items()}
    changes = {}
    for name in field_names(type(value)):
        before = getattr(value, name)
        after = _clean_value(before)
        if after is not before:
            changes[name] = after
    return replace(value, **changes) if changes else value


def columns_of(text: str) -> int:
    """The terminal columns of the text: two per wide character, none per combining character."""
    if text.isascii():
        return len(text)
    return sum(_columns_of_character(character) for character in text)


def fold(text: str, width: int) -> list[str]:
    """Lines of at most ``width`` columns, broken at spaces, and within a word only if necessary.

    A no-break space keeps its neighbors on one line and is printed as a space.
    """
    return [line.replace(NO_BREAK, " ") for line in _fold(text, width)]


def _fold(text: str, width: int) -> list[str]:
    lines, current = [], ""
    for word in _BREAKABLE.split(text.strip()):
        if current and columns_of(current) + 1 + columns_of(word) <= width:
            current += " " + word
            continue
        if current:
            lines.append(current)
        *full, current = _chunks(word, max(width, 2))
        lines.extend(full)
    if current or not lines:
        lines.append(current)
    return lines


def _chunks(word: str, width: int) -> list[str]:
    if columns_of(word) <= width:
        return [word]
    chunks, current, used = [], "", 0
    for character in word:
        columns = _columns_of_character(character)
        if used + columns > width:
            chunks.append(current)
            current, used = "", 0
        current += character
        used += columns
    return [*chunks, current]


def _columns_of_character(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _shown(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
