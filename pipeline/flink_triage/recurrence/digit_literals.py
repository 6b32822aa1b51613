"""Finds the literals in a text whose presence may depend on a number or ID."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from flink_triage.logs.lifecycle import LITERALS
from flink_triage.logs.readers.event_form_details import Telling
from flink_triage.logs.text.hyperscan_databases import database_of
from flink_triage.signatures import SignaturePack

_AT_AN_EDGE = re.compile(r"^[a-f]+(?![0-9A-Za-z])|(?<![0-9A-Za-z])[a-f]+$|^[a-f]+$|[0-9]")


def telling_of(pack: SignaturePack) -> Telling:
    """A finder for the digits of an event that may affect its matches with ``pack``."""
    every = [
        alternative
        for signature in pack.signatures.values()
        for alternative in (*signature.alternatives, *signature.vetoes)
    ]
    literals = {literal for alternative in every for literal in alternative.literals}
    searches = [(a.literals, a.regex) for a in every if a.regex is not None]
    return Telling((*literals, *LITERALS, *pack.anchors), searches)


class Sensitive:
    """Finds literals with digits, or with letters that may be part of an ID, or all literals."""

    def __init__(self, pack: SignaturePack) -> None:
        literals = {
            literal
            for signature in pack.signatures.values()
            for alternative in (*signature.alternatives, *signature.vetoes)
            for literal in alternative.literals
        }
        self._all = _scanner(literals)
        self._at_an_edge = _scanner({text for text in literals if _AT_AN_EDGE.search(text)})

    def places(self, text: str, *, is_any: bool = False) -> list[tuple[int, int]]:
        """The literals found and their end positions, in any order.

        With ``is_any``, all literals are searched for.
        """
        found: list[tuple[int, int]] = []

        def note(number: int, _start: int, end: int, *_: object) -> None:
            found.append((number, end))

        scan = self._all if is_any else self._at_an_edge
        if scan is not None:
            scan(text.encode("utf-8", "replace"), note)
        return found


def _scanner(literals: Collection[str]) -> Callable[[bytes, Callable[..., None]], None] | None:
    if not literals:
        return None
    database, scratch = database_of([literal.encode() for literal in sorted(literals)])
    return lambda data, note: database.scan(data, match_event_handler=note, scratch=scratch)
