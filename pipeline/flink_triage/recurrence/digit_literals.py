"""Finds the literals in a text whose presence may depend on a number, an ID, or quoted text."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from functools import cached_property, partial

from flink_triage.logs.lifecycle import LITERALS
from flink_triage.logs.readers.event_form_details import SensitiveDigits
from flink_triage.logs.readers.quoted_text import QuotedText
from flink_triage.logs.readers.repeated_events import Repeats
from flink_triage.logs.text.hyperscan_databases import database_of
from flink_triage.settings import Settings
from flink_triage.signatures import SignaturePack
from flink_triage.signatures.conditions import simple_name
from flink_triage.signatures.signature import Alternative

Scan = Callable[[bytes, Callable[..., None]], None]
_AT_AN_EDGE = re.compile(r"^[a-f]+(?![0-9A-Za-z])|(?<![0-9A-Za-z])[a-f]+$|^[a-f]+$|[0-9]")


def repeats_of(pack: SignaturePack, settings: Settings) -> Repeats:
    """A ``Repeats`` that counts two events as one kind only if they match ``pack`` alike."""
    return Repeats(partial(_effects, pack, settings))


def _effects(pack: SignaturePack, settings: Settings) -> tuple[SensitiveDigits, QuotedText]:
    every = _alternatives(pack)
    literals = (*_literals(every), *LITERALS, *pack.anchors)
    searching = [(a, a.regex) for a in every if a.regex is not None]
    sensitive_digits = SensitiveDigits(literals, [(a.literals, regex) for a, regex in searching])
    searches = [
        (a.scope, a.literals, [simple_name(c) for c in a.throwables or a.root_causes], regex)
        for a, regex in searching
    ]
    return sensitive_digits, QuotedText(literals, searches, settings)


def _alternatives(pack: SignaturePack) -> list[Alternative]:
    return [
        alternative
        for signature in pack.signatures.values()
        for alternative in (*signature.alternatives, *signature.vetoes)
    ]


def _literals(alternatives: Iterable[Alternative]) -> set[str]:
    return {literal for alternative in alternatives for literal in alternative.literals}


class SensitiveLiterals:
    """Finds the literals that contain digits or may overlap an ID, or all literals."""

    def __init__(self, pack: SignaturePack) -> None:
        self._pack = pack

    @cached_property
    def _known(self) -> set[str]:
        return _literals(_alternatives(self._pack))

    @cached_property
    def _all(self) -> Scan | None:
        return _scanner(self._known)

    @cached_property
    def _at_an_edge(self) -> Scan | None:
        return _scanner({text for text in self._known if _AT_AN_EDGE.search(text)})

    def places(self, text: str, *, is_any: bool = False) -> list[tuple[int, int]]:
        """The literals found in ``text``, in the order of the scan, as (index, end offset).

        By default, only literals that contain digits or may overlap an ID are searched for; with
        ``is_any``, all literals are. The index refers to the sorted list of these literals. The
        offset is in bytes of the UTF-8 text.
        """
        found: list[tuple[int, int]] = []

        def note(number: int, _start: int, end: int, *_: object) -> None:
            found.append((number, end))

        scan = self._all if is_any else self._at_an_edge
        if scan is not None:
            scan(text.encode("utf-8", "replace"), note)
        return found


def _scanner(literals: Collection[str]) -> Scan | None:
    if not literals:
        return None
    database, scratch = database_of([literal.encode() for literal in sorted(literals)])
    return lambda data, note: database.scan(data, match_event_handler=note, scratch=scratch)
