"""Literals that a number or an id may make or break: where they stand in a text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from flink_triage.logs.form_details import Telling
from flink_triage.logs.hyperscan_databases import database_of
from flink_triage.logs.lifecycle import LITERALS
from flink_triage.signatures import SignaturePack

_AT_AN_EDGE = re.compile(r"^[a-f]+(?![0-9A-Za-z])|(?<![0-9A-Za-z])[a-f]+$|^[a-f]+$|[0-9]")


def telling_of(pack: SignaturePack) -> Telling:
    """Which digits of an event may decide what it matches."""
    every = [
        alternative
        for signature in pack.signatures.values()
        for alternative in (*signature.alternatives, *signature.vetoes)
    ]
    literals = {literal for alternative in every for literal in alternative.literals}
    searches = [(a.literals, a.regex) for a in every if a.regex is not None]
    return Telling((*literals, *LITERALS, *pack.anchors), searches)


class Sensitive:
    """Finds the literals that hold digits, or letters that an id's end may lend."""

    def __init__(self, pack: SignaturePack) -> None:
        literals = sorted(
            {
                literal
                for signature in pack.signatures.values()
                for alternative in (*signature.alternatives, *signature.vetoes)
                for literal in alternative.literals
                if _AT_AN_EDGE.search(literal)
            }
        )
        self._scan: Callable[..., Any] | None = None
        if literals:
            database, self._scratch = database_of([literal.encode() for literal in literals])
            self._scan = database.scan

    def places(self, text: str) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        if self._scan is None:
            return found

        def note(number: int, _start: int, end: int, *_: object) -> None:
            found.append((number, end))

        self._scan(text.encode("utf-8", "replace"), match_event_handler=note, scratch=self._scratch)
        return found
