"""Splits the text of an event into lines that may vary, and the stack frames between them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from flink_triage.model import Event, Process

# A number, an ID, a UUID, or a quoted word. The first lookbehind follows the first character, so
# that the search can skip to that character.
VARIABLE = re.compile(
    r"([0-9a-f](?<![0-9A-Za-z].)(?:"
    r"[0-9a-f]{7}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|[0-9a-f]{31}|(?<=[0-9])[0-9]*)(?![0-9A-Za-z])"
    # A quoted word that is too short for an ID; masks treat all such words alike.
    r"|(?<![0-9A-Za-z].)(?<=')[\w-]{1,24}(?='(?![0-9A-Za-z])))",
    re.DOTALL | re.ASCII,
)
# A character of a quoted word. The word must not contain a string that identifies a product, or
# "job", which may precede a job ID.
_QUOTED_WORD = r"(?![\w-]*(?i:flink|manager|servlet|attempt|spark|gradle|daemon|job))[A-Za-z0-9_-]"
# Stack frames belong to the line before them.
_FRAME_LIKE = r"[\t ]+(?:at|\.\.\.) "
_NO_FRAME = re.compile(rf"\n(?!{_FRAME_LIKE})")
_JOINING = "+-:.,_@/"


_ID_CHARS = 32
_BETWEEN_QUOTES = re.compile(rf"(?<![0-9A-Za-z])'({_QUOTED_WORD}{{1,24}})'(?![0-9A-Za-z])")
# Characters after an ID that do not continue a host or class name.
_ENDS_WORD = re.compile(r"[ )\],;\"'|}]|[/:][^0-9]|\.[^\w$.-]")


def line_pattern(line: str) -> str:
    """A regex for lines that differ from ``line`` only in variable words of the same length."""
    # Syslog encodes a newline as #012 and a tab as #011. A line with such a code must not vary.
    if "#01" in line:
        return re.escape(line)
    parts = VARIABLE.split(line)
    pattern = [re.escape(parts[0])]
    has_words = holds_quoted_word(line)
    for index in range(1, len(parts), 2):
        text = parts[index]
        if text.isdigit():
            is_escape = parts[index - 1].endswith("#")
            pattern.append(f"{'(?!01)' if is_escape else ''}[0-9]{{{len(text)}}}")
        elif len(text) < _ID_CHARS and parts[index - 1].endswith("'"):
            pattern.append(f"{_QUOTED_WORD}{{{len(text)}}}" if has_words else re.escape(text))
        elif _is_joined(parts, index) or text.isalpha():
            pattern.append(text)
        else:
            pattern.append(_id_pattern(parts, index))
        pattern.append(re.escape(parts[index + 1]))
    return "".join(pattern)


def holds_quoted_word(line: str) -> bool:
    """Whether the word between the only two quotes on a line may vary."""
    if line.count("'") != 2 or '"' in line or "`" in line:
        return False
    found = _BETWEEN_QUOTES.search(line)
    return found is not None and not found[1].isdigit()


def _id_pattern(parts: Sequence[str], index: int) -> str:
    """A regex for IDs like the one at ``index``; the first or last character may have to be alike.

    Characters are alike if both are digits, or both are letters. The first character must be alike,
    except where a host or class name cannot start: after an underscore, and after other text if the
    ID ends a word or ``_`` and another ID follow it. The last character must be alike only if
    nothing but whitespace follows on the line or before the next variable word.
    """
    text, before, after = parts[index], parts[index - 1], parts[index + 1]
    first = last = ""
    is_word = _ENDS_WORD.match(after) is not None or (
        after == "_" and index + 2 < len(parts) and len(parts[index + 2]) >= 32
    )
    if before[-1:] != "_" and (not before.strip() or not is_word):
        first = "(?=[0-9])" if text[0] < "a" else "(?=[a-f])"
    if not after.strip():
        last = "(?<=[0-9])" if text[-1] < "a" else "(?<=[a-f])"
    if "-" in text:
        return f"{first}[0-9a-f]{{8}}-(?:[0-9a-f]{{4}}-){{3}}[0-9a-f]{{12}}{last}"
    return f"(?![0-9]{{32}}|[a-f]{{32}}){first}[0-9a-f]{{32}}{last}"


def _is_joined(parts: Sequence[str], index: int) -> bool:
    """Whether a number, an address, or an object's hash code may overlap the ID at ``index``."""
    before = parts[index - 1]
    if before[-1:] in ("@", "/"):
        return before[-1:] == "@" or "Lambda" in before
    return index > 1 and len(before) == 1 and before in _JOINING and parts[index - 2].isdigit()


@dataclass(frozen=True, slots=True)
class Outline:
    """The parts of an event's text, and a key.

    ``lines`` may vary; ``runs`` are the stack frames after each line of the continuation. Events
    with the same shape have the same key.
    """

    lines: tuple[str, ...]
    runs: tuple[str, ...]
    key: tuple[object, ...]


def _cut(continuation: str) -> tuple[list[str], list[str]]:
    """The lines that are not stack frames, and the frames after each of these lines."""
    lines: list[str] = []
    runs: list[str] = []
    if re.match(_FRAME_LIKE, continuation):
        continuation = f"\n{continuation}"
    for block in _NO_FRAME.split(continuation):
        line, _, run = block.partition("\n")
        lines.append(line)
        runs.append(run)
    return lines, runs


def outline_of(event: Event, process: Process | None) -> Outline:
    lines = [event.message]
    runs: list[str] = []
    if event.continuation is not None:
        further, runs = _cut(event.continuation)
        lines += further
    key = (event.level, event.logger, process, *runs, *map(len, lines))
    return Outline(tuple(lines), tuple(runs), key)
