"""Finds the literals that occur in a text, in a single pass for any number of literals.

Hyperscan's literal mode compiles 3,800 literals in about 0.1 s and scans 6 KB in about 10
microseconds, whereas testing ``literal in text`` 3,800 times takes about 7 ms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import hyperscan

from flink_triage.logs.text.hyperscan_databases import database_of


class LiteralIndex:
    """An index of literals; each process creates or loads its Hyperscan database on first use."""

    def __init__(self, literals: Sequence[str]) -> None:
        self._literals = [_encode(literal) for literal in literals]
        self._database: Any = None

    def __getstate__(self) -> list[bytes]:
        return self._literals

    def __setstate__(self, literals: list[bytes]) -> None:
        self._literals = literals
        self._database = None

    def find(self, text: str) -> set[int]:
        """The indexes of the literals that occur in the text; the search is case-sensitive."""
        found: set[int] = set()
        if not self._literals:
            return found

        def remember(index: int, *_: object) -> None:
            found.add(index)

        if self._database is None:
            self._database = database_of(self._literals, hyperscan.HS_FLAG_SINGLEMATCH)
        database, scratch = self._database
        database.scan(_encode(text), match_event_handler=remember, scratch=scratch)
        return found


def _encode(text: str) -> bytes:
    # A lone surrogate cannot be encoded, but no literal contains one.
    return text.encode("utf-8", "replace")
