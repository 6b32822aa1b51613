"""Restores the lines that a program wrote: removes prefixes, and joins or splits lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from flink_triage.logs.formats.carriers import Peel, Peeled, peel_line
from flink_triage.logs.formats.detect_carriers import begins_line
from flink_triage.logs.text.decode import clean
from flink_triage.logs.text.physical_lines import PhysicalLine

_FENCE = re.compile(r"^\s{0,8}(?:```|~~~)[\w-]{0,30}\s*$")


def is_fence(text: str) -> bool:
    """Whether a line opens or closes a fenced code block in Markdown."""
    return ("`" in text or "~" in text) and _FENCE.match(text) is not None


class Logical:
    """One line as the program wrote it, restored from one or more physical lines."""

    __slots__ = ("decode_errors", "is_cut", "newline_count", "number", "offset", "peeled", "size")

    def __init__(self, line: PhysicalLine, peeled: Peeled) -> None:
        self.number = line.number
        self.peeled = peeled
        self.offset = line.offset
        self.size = line.size_bytes
        self.newline_count = line.newline_count
        self.decode_errors = line.decode_errors
        self.is_cut = line.is_cut


# Maximum length of a joined line; the text after it starts a new line.
_MAX_JOINED_CHARS = 1024 * 1024


def joined(lines: Iterable[PhysicalLine], carriers: Sequence[Peel]) -> Iterator[Logical]:
    """The lines without their prefixes; the partial lines of each source are joined.

    The text of a record with several lines is split.
    """
    partial: dict[str, tuple[Logical, list[str], int]] = {}
    for line in lines:
        peeled = peel_line(carriers, clean(line.text))
        logical = Logical(line, peeled)
        if not (partial or peeled.is_partial):
            if carriers and "\n" in peeled.text:
                yield from _split(logical)
            else:
                yield logical
            continue
        held = partial.pop(peeled.source, None)
        if held is not None and held[0].peeled.may_end and _is_next(peeled.text):
            yield _rejoined(held[0], held[1])
            held = None
        if held is not None:
            first, texts, length = held
            texts.append(peeled.text)
            first.size += logical.size
            first.newline_count += logical.newline_count
            first.decode_errors += logical.decode_errors
            first.is_cut |= logical.is_cut
        else:
            first, texts, length = logical, [peeled.text], 0
        length += len(peeled.text)
        if peeled.is_partial and length < _MAX_JOINED_CHARS:
            partial[peeled.source] = (first, texts, length)
            continue
        yield _rejoined(first, texts)
    for first, texts, _ in partial.values():
        yield _rejoined(first, texts)


def _is_next(text: str) -> bool:
    return not text.strip() or begins_line(text)


def _rejoined(first: Logical, texts: Sequence[str]) -> Logical:
    if len(texts) > 1 or first.peeled.is_partial:
        whole = "".join(texts)
        first.peeled = Peeled(whole, first.peeled.source, False, first.peeled.times)
    return first


def _split(whole: Logical) -> Iterator[Logical]:
    """The lines in the text of one record; each has size 1, and the last has the remaining size."""
    texts = whole.peeled.text.split("\n")
    # Each line must have its own offset, so there cannot be more lines than bytes.
    texts = [*texts[: whole.size - 1], "\n".join(texts[whole.size - 1 :])]
    for index, text in enumerate(texts):
        is_last = index == len(texts) - 1
        size = whole.size - index if is_last else 1
        newlines = whole.newline_count if is_last else 0
        errors = whole.decode_errors if is_last else 0
        part = PhysicalLine(
            whole.offset + index, size, newlines, "", errors, whole.is_cut, whole.number
        )
        peeled = whole.peeled
        yield Logical(part, Peeled(text, peeled.source, False, peeled.times))
