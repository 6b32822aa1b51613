"""Selects the alternatives to try for an event, based on the literals and classes in the event."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from flink_triage.signatures.conditions import simple_name
from flink_triage.signatures.event_text import EventText
from flink_triage.signatures.pack import SignaturePack
from flink_triage.signatures.signature import Alternative, Signature
from flink_triage.signatures.text_literals import LiteralIndex

_MAX_KNOWN = 1024


@dataclass(frozen=True, slots=True)
class _Candidate:
    signature_id: str
    index: int
    literals: frozenset[int]
    # The simple names of classes, one of which is required; empty if no class is required.
    types: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Table:
    """The alternatives of a pack by the literal to search for, and those without literals."""

    by_literal: dict[int, list[_Candidate]]
    without_literals: list[_Candidate]
    reads_frames: bool


class Candidates:
    """Selects alternatives by a single search for all literals of a pack.

    Alternatives without literals are selected for every event with a stack trace.
    """

    def __init__(self, pack: SignaturePack) -> None:
        self._index = LiteralIndex(pack.literals)
        self._table = _table_of(pack)
        # A cache of the results, because repeated events contain the same literals and classes.
        self._known: dict[tuple[object, ...], dict[str, list[int]]] = {}

    def of(self, text: EventText) -> dict[str, list[int]]:
        """The indexes of the alternatives to try, by signature ID."""
        found = self._index.find(text.searched(with_frames=self._table.reads_frames))
        key = (frozenset(found), text.simple_types, text.trace is not None)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            known = self._known[key] = self._choose(*key)
        return known

    def _choose(
        self, found: frozenset[int], types: frozenset[str] | None, has_trace: bool
    ) -> dict[str, list[int]]:
        candidates: dict[str, list[int]] = {}
        for literal in found:
            for candidate in self._table.by_literal.get(literal, ()):
                if types is not None and candidate.types.isdisjoint(types) and candidate.types:
                    continue
                if candidate.literals <= found:
                    candidates.setdefault(candidate.signature_id, []).append(candidate.index)
        if has_trace:
            for candidate in self._table.without_literals:
                candidates.setdefault(candidate.signature_id, []).append(candidate.index)
        return candidates


@lru_cache(maxsize=1)
def _table_of(pack: SignaturePack) -> _Table:
    """The table of the current pack; a process rarely uses more than one pack."""
    numbers = {literal: number for number, literal in enumerate(pack.literals)}
    by_literal: dict[int, list[_Candidate]] = {}
    without_literals: list[_Candidate] = []
    reads_frames = False
    for signature in pack.signatures.values():
        for index, alternative in _leading(signature):
            reads_frames |= alternative.scope == "frame"
            ids = frozenset(numbers[literal] for literal in alternative.literals)
            types = alternative.throwables or alternative.root_causes
            names = frozenset(map(simple_name, types))
            candidate = _Candidate(signature.id, index, ids, names)
            if ids:
                # The longest literal is usually the rarest; the others are checked afterward.
                longest = max(alternative.literals, key=lambda literal: (len(literal), literal))
                by_literal.setdefault(numbers[longest], []).append(candidate)
            else:
                without_literals.append(candidate)
    return _Table(by_literal, without_literals, reads_frames)


def _leading(signature: Signature) -> list[tuple[int, Alternative]]:
    """The numbered alternatives to search for.

    With ``all``, this is only one alternative: the most specific one, preferably with literals.
    """
    numbered = list(enumerate(signature.alternatives))
    if signature.mode == "all":
        return [max(numbered, key=lambda item: (bool(item[1].literals), item[1].specificity))]
    return numbered
