"""Finds the literals in a block of bytes, in one pass for any number of literals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

from flink_triage.logs.text.hyperscan_databases import database_of


class LiteralFinder(Protocol):
    """Finds literals in bytes.

    ``suspects`` is a cheap test for large amounts of data: it appends the ends of all literals to a
    list, in any order, and possibly other positions. ``ends`` and ``contains`` are exact.
    """

    def suspects(self, data: bytes | memoryview, base: int, into: list[int]) -> None: ...

    def ends(self, data: bytes, into: list[int]) -> None: ...

    def contains(self, data: bytes | memoryview) -> bool: ...


# Words that are common in failures and rare in everyday lines. Every literal that contains one of
# them is searched for by that word alone: Hyperscan scans for a few dozen short literals twice as
# fast as for some hundred long ones. The choice of words affects the speed, but never the result.
_TELLING = (
    "xcept", "rror", "iled", "ailure", "FAILED", "ould not", "annot", "nable to", "n't ",
    "imed out", "imeout", "lready ", "nvalid", "ismatch", "xpired", "enied", "orrupt", "issing",
    "xceed", "ot enough", "ot found", "ot supported", "ot available", "oo many", "oo large",
    "uspend", " lost", "bort",  "eject", "eclin",  "eachable", 
    "llegal", "onflict", "destroy", "suppress",  "avepoint", "switched from state",
    "ORA-0", "binlog", "ecovery",    "recover", "terminat",
)  # fmt: skip


def fragments_of(literals: Sequence[str]) -> tuple[str, ...]:
    """A small number of short strings such that every literal contains one of them."""
    rest = set(literals)
    chosen = []
    for word in _TELLING:
        covered = {literal for literal in rest if word in literal}
        if covered:
            chosen.append(word)
            rest -= covered
    # A literal that is part of another one also finds the longer one.
    alone = [a for a in rest if not any(b != a and b in a for b in rest)]
    return (*chosen, *sorted(alone))


class HyperscanFinder:
    """Two block-mode databases; safe to share between calls of one thread."""

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
        # Ending the scan at the first hit would cost an exception, more than a few further hits.
        self.ends(data, found)
        return bool(found)


class PlainFinder:
    """The same with ``bytes.find``: for an empty set of literals, and to test Hyperscan against."""

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
    """The finder of these literals; compiled once per process."""
    sought = sorted({literal for literal in literals if literal})
    # Hyperscan cannot compile an empty set.
    return HyperscanFinder(sought) if sought else PlainFinder(())
