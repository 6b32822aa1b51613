"""Derives a shape from an analyzed event, to recall its analysis for similar events."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import regex

from flink_triage.model import Event, Match, Process
from flink_triage.recurrence.digit_literals import SensitiveLiterals
from flink_triage.recurrence.event_shape import Analysis, Misfit, Probe, Recipe, Shape, spans_of
from flink_triage.recurrence.outline import Outline, holds_quoted_word, line_pattern
from flink_triage.recurrence.places import (
    message_place,
    place_of_task,
    printed_throwables,
    slots_of,
)
from flink_triage.settings import Settings
from flink_triage.signatures import SignaturePack
from flink_triage.signatures.event_text import MAX_REGEX_CHARS, EventText, Piece, excerpt
from flink_triage.signatures.signature import Alternative, Signature
from flink_triage.signatures.text_literals import LiteralIndex


class Learner:
    """Creates shapes, and caches the regexes that it has compiled."""

    def __init__(
        self, pack: SignaturePack, sensitive: SensitiveLiterals, settings: Settings
    ) -> None:
        self._pack = pack
        self._settings = settings
        self._sensitive = sensitive
        self._regexes: dict[str, Any] = {}
        self._searching = [
            (signature, alternative)
            for signature in pack.signatures.values()
            for alternative in (*signature.alternatives, *signature.vetoes)
            if alternative.regex is not None
        ]
        literals = sorted({literal for _, one in self._searching for literal in one.literals})
        self._literals = LiteralIndex(literals)
        numbers = {literal: number for number, literal in enumerate(literals)}
        self._needed = [{numbers[text] for text in one.literals} for _, one in self._searching]

    def shape_of(
        self, event: Event, outline: Outline, process: Process | None, analysis: Analysis
    ) -> Shape:
        trace = analysis.trace
        printed = printed_throwables(trace)
        slots = slots_of(event, outline, analysis, printed)
        text = EventText(event, analysis.message, trace, process, self._settings.max_match_chars)
        if len(text.whole.text) >= self._settings.max_match_chars:
            raise Misfit
        order = {id(throwable): number for number, throwable in enumerate(printed)}
        if any(id(throwable) not in order for _, throwable in text.chain):
            # The throwable is only mentioned in the message.
            raise Misfit
        numbers = {
            id(piece): order[id(throwable)]
            for (_, throwable), piece in zip(text.chain, text.throwables, strict=True)
        }
        numbers |= {id(piece): number for number, piece in enumerate(text.frames, len(printed))}
        message_number = len(printed) + len(text.frames)
        messages = [(number, f"{t.type}: ") for number, t in enumerate(printed)]
        messages.append((message_number, ""))
        whole = (message_number, *(numbers[id(piece)] for piece in reversed(text.throwables)))
        numbers[id(text.message)] = message_number
        numbers[id(text.whole)] = message_number + 1
        probes = tuple(self._probes(text, numbers))
        recipes = tuple(self._recipe(match, text, numbers, probes) for match in analysis.matches)
        used = {probe.piece for _, _, probe in probes}
        used |= {place[0] for recipe in recipes for place in recipe.excerpts}
        used |= {place[0] for r in recipes for _, places in r.captures for place in places}
        lines_text = "\n".join(outline.lines)
        has_words = any(map(holds_quoted_word, outline.lines))
        return Shape(
            re.compile("\n".join(map(line_pattern, outline.lines))),
            self._sensitive.places(lines_text, is_any=has_words),
            has_words,
            replace(analysis, trace=None),
            (
                *(throwable.text for throwable in printed),
                *(piece.text for piece in text.frames),
                analysis.message,
                text.whole.text,
            ),
            tuple(
                (number, prefix, parts)
                for (number, prefix), parts in zip(messages, slots, strict=True)
                if any(part.line >= 0 for part in parts)
            ),
            whole if message_number + 1 in used else (),
            tuple(dict.fromkeys(probe for _, _, probe in probes)),
            recipes,
            message_place(trace.root_cause, order) if trace is not None else None,
            place_of_task(analysis, trace, order, message_number),
        )

    def _probes(
        self, text: EventText, numbers: Mapping[int, int]
    ) -> Iterable[tuple[Signature, Alternative, Probe]]:
        """The regexes whose literals occur, applied to each piece up to the first match."""
        found = self._literals.find(text.searched(with_frames=True))
        for (signature, alternative), needed in zip(self._searching, self._needed, strict=True):
            if needed <= found:
                for number, piece in _pieces(text, alternative, numbers):
                    position = _position(alternative, piece)
                    if position is None:
                        continue
                    probe = self._probe(alternative.regex or "", number, piece.text, position)
                    yield signature, alternative, probe
                    if probe.spans is not None:
                        break

    def _probe(self, pattern: str, piece: int, text: str, position: int) -> Probe:
        compiled = self._regexes.get(pattern)
        if compiled is None:
            compiled = self._regexes[pattern] = regex.compile(pattern)
        try:
            spans = spans_of(compiled, text, position, self._settings)
        except TimeoutError as error:
            raise Misfit from error
        if len(text) <= MAX_REGEX_CHARS:
            position = 0
        return Probe(compiled, piece, position, text, spans)

    def _recipe(
        self,
        match: Match,
        text: EventText,
        numbers: Mapping[int, int],
        probes: Sequence[tuple[Signature, Alternative, Probe]],
    ) -> Recipe:
        signature = self._pack.signatures[match.signature]
        limit = self._settings.max_excerpt_chars
        excerpts: dict[tuple[int, int, int], None] = {}
        captures: dict[str, dict[tuple[int, int, int], None]] = {n: {} for n in match.captures}
        for number, alternative in enumerate(signature.alternatives):
            for probe in (p for _, a, p in probes if a is alternative and p.spans is not None):
                for name, place in _capture_places(probe):
                    where, start, end = place
                    value = probe.text[start:end][:limit]
                    if match.captures.get(name) == value:
                        captures[name][where, start, start + len(value)] = None
            if signature.mode != "all" and number != match.alternative:
                continue
            for piece_number, piece in _pieces(text, alternative, numbers):
                position = _position(alternative, piece)
                if alternative.regex is not None:
                    position = next(
                        (
                            p.spans[0][0]
                            for _, a, p in probes
                            if a is alternative and p.piece == piece_number and p.spans is not None
                        ),
                        None,
                    )
                if position is None or excerpt(piece.text, position, limit) != match.excerpt:
                    continue
                start = _excerpt_start(piece.text, position, match.excerpt)
                excerpts[piece_number, start, start + len(match.excerpt)] = None
        if not excerpts or not all(captures.values()):
            raise Misfit
        return Recipe(
            match,
            tuple(excerpts),
            tuple((name, tuple(places)) for name, places in captures.items()),
        )


def _capture_places(probe: Probe) -> Iterable[tuple[str, tuple[int, int, int]]]:
    spans = probe.spans or ()
    for name, group in probe.pattern.groupindex.items():
        if spans[group][0] >= 0:
            yield name, (probe.piece, *spans[group])


def _excerpt_start(text: str, position: int, words: str) -> int:
    """The start of the excerpt ``words``; ``position`` may be in the whitespace before it."""
    line = text.rfind("\n", 0, position) + 1
    start = text.rfind(words, line, position + len(words))
    return text.find(words, line) if start < 0 else start


def _position(alternative: Alternative, piece: Piece) -> int | None:
    """The position of the first literal, 0 without literals; ``None`` if a literal is missing."""
    positions = [piece.text.find(literal) for literal in alternative.literals]
    if any(position < 0 for position in positions):
        return None
    return min(positions, default=0)


def _pieces(
    text: EventText, alternative: Alternative, numbers: Mapping[int, int]
) -> list[tuple[int, Piece]]:
    """The pieces in which the matcher searches for an alternative, with their numbers."""
    if alternative.frame_origin is not None and not alternative.literals:
        return [(numbers[id(p)], p) for p in text.throwables if p.depth == text.framed_depth][:1]
    return [(numbers[id(piece)], piece) for piece in text.pieces(alternative)]
