"""Finds any number of literals in a block of bytes, in a single pass."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

from flink_triage.logs.text.hyperscan_databases import database_of


class LiteralFinder(Protocol):
    """Finds literals in bytes.

    ``suspects`` is a fast test for large amounts of data. For each literal in the data, it appends
    the end offset of at least one part of the literal, plus ``base``, to a list. It may also append
    other offsets. ``ends`` and ``contains`` are exact.
    """

    def suspects(self, data: bytes | memoryview, base: int, into: list[int]) -> None: ...

    def ends(self, data: bytes, into: list[int]) -> None: ...

    def contains(self, data: bytes | memoryview) -> bool: ...


# Strings that are common in failures but rare in routine lines. For a literal that contains one of
# them, ``suspects`` searches only for this string, because Hyperscan scans for a few dozen short
# literals twice as fast as for several hundred long ones. The choice affects only the speed.
_FAILURE_WORDS = (
    "xcept", "rror", "iled", "ailure", "FAILED", "ould not", "annot", "nable to", "n't ",
    "imed out", "imeout", "lready ", "nvalid", "ismatch", "xpired", "enied", "orrupt", "issing",
    "xceed", "ot enough", "ot found", "ot supported", "ot available", "oo many", "oo large",
    "uspend", " lost", "bort",  "eject", "eclin",  "eachable", 
    "llegal", "onflict", "destroy", "suppress",  "avepoint", "switched from state",
    "ORA-0", "binlog", "ecovery",    "recover", "terminat",
)  # fmt: skip


def fragments_of(literals: Sequence[str]) -> tuple[str, ...]:
    """Strings such that every literal contains at least one of them; usually few and short."""
    rest = set(literals)
    chosen = []
    for word in _FAILURE_WORDS:
        covered = {literal for literal in rest if word in literal}
        if covered:
            chosen.append(word)
            rest -= covered
    # A literal that contains another literal does not have to be searched for.
    joined = "\n".join(rest)
    parts = [text for text in rest if joined.count(text) > 1]
    alone = [text for text in rest if not any(part != text and part in text for part in parts)]
    return (*chosen, *sorted(alone))


class HyperscanFinder:
    """Uses Hyperscan; an instance must be used by only one thread at a time."""

    def __init__(self, literals: Sequence[str]) -> None:
        self._exact, self._exact_scratch = database_of([text.encode() for text in literals])
        fragments = [text.encode() for text in fragments_of(literals)]
        self._cheap, self._cheap_scratch = database_of(fragments)

    def suspects(self, data: bytes | memoryview, base: int, into: list[int]) -> None:
        append = into.append

        def note(_id: int, _start: int, end: int, _flags: int, _context: object) -> None:
            append(base + end)

        self._cheap.scan(data, match_event_handler=note, scratch=self._cheap_scratch)

    def ends(self, data: bytes | memoryview, into: list[int]) -> None:
        append = into.append

        def note(_id: int, _start: int, end: int, _flags: int, _context: object) -> None:
            append(end)

        self._exact.scan(data, match_event_handler=note, scratch=self._exact_scratch)

    def contains(self, data: bytes | memoryview) -> bool:
        found: list[int] = []
        # Stopping at the first hit would require an exception, which takes longer than further
        # hits.
        self.ends(data, found)
        return bool(found)


class PlainFinder:
    """Uses ``bytes.find``, for an empty set of literals and as a reference in Hyperscan tests."""

    def __init__(self, literals: Sequence[str]) -> None:
        self._literals = tuple(literal.encode() for literal in literals)

    def suspects(self, data: bytes | memoryview, base: int, into: list[int]) -> None:
        text = bytes(data)
        for literal in self._literals:
            position = text.find(literal)
            while position >= 0:
                into.append(base + position + len(literal))
                position = text.find(literal, position + 1)

    def ends(self, data: bytes, into: list[int]) -> None:
        self.suspects(data, 0, into)

    def contains(self, data: bytes | memoryview) -> bool:
        text = bytes(data)
        return any(literal in text for literal in self._literals)


@lru_cache(maxsize=8)
def finder_of(literals: tuple[str, ...]) -> LiteralFinder:
    """The finder for these literals; recently used finders are cached."""
    sought = sorted({literal for literal in literals if literal})
    # Hyperscan cannot compile an empty set.
    return HyperscanFinder(sought) if sought else PlainFinder(())
