"""Recalls the analysis of an event from its known shape."""

from __future__ import annotations

from collections.abc import Sequence

from flink_triage.logs.lifecycle import job_id_in_text, task_in_text
from flink_triage.model import Event, Match
from flink_triage.recurrence.event_shape import Analysis, Recipe, Shape, spans_of
from flink_triage.settings import Settings


def recall_analysis(
    shape: Shape, event: Event, lines: Sequence[str], settings: Settings
) -> Analysis | None:
    """The analysis of an event of this shape; ``None`` if the event must be analyzed."""
    known = shape.analysis
    pieces = _read_pieces(shape, lines)
    for probe in shape.probes:
        text = pieces[probe.piece]
        if text != probe.text:
            try:
                if spans_of(probe.pattern, text, probe.position, settings) != probe.spans:
                    return None
            except TimeoutError:
                return None
    matches = []
    for recipe in shape.recipes:
        match = _match_again(recipe, pieces, event)
        if match is None:
            return None
        matches.append(match)
    message = pieces[-2]
    task = None
    if shape.task_of is not None:
        piece, column = shape.task_of
        task = task_in_text(pieces[piece][column:])
    return Analysis(
        message,
        None,
        known.fingerprint,
        known.first_user_frame,
        known.product,
        known.exception_type,
        known.root_cause_type,
        None if shape.root is None else pieces[shape.root[0]][shape.root[1] :][:2000],
        known.has_frames,
        task,
        job_id_in_text(message) if known.job_id is not None else None,
        tuple(matches),
    )


def _read_pieces(shape: Shape, lines: Sequence[str]) -> Sequence[str]:
    """The pieces of an event of this shape, read from its lines."""
    pieces = list(shape.pieces)
    for number, prefix, slots in shape.varying:
        if len(slots) == 1:
            slot = slots[0]
            pieces[number] = prefix + lines[slot.line][slot.start : slot.end]
        else:
            pieces[number] = prefix + "\n".join(slot.read(lines) for slot in slots)
    if shape.whole:
        pieces[-1] = "\n".join([pieces[number] for number in shape.whole])
    return pieces


def _match_again(recipe: Recipe, pieces: Sequence[str], event: Event) -> Match | None:
    """The match with the excerpt and captures of this event; ``None`` if these are ambiguous."""
    match = recipe.match
    captures = {}
    for name, places in recipe.captures:
        value = _same_words(places, pieces)
        if value is None:
            return None
        captures[name] = value
    words = _same_words(recipe.excerpts, pieces)
    if words is None:
        return None
    return Match(
        match.signature,
        match.alternative,
        captures,
        words,
        match.depth_from_root,
        line_offset(event, words),
    )


def _same_words(places: Sequence[tuple[int, int, int]], pieces: Sequence[str]) -> str | None:
    """The text at these positions if it is equal at all of them; otherwise ``None``."""
    piece, start, end = places[0]
    words = pieces[piece][start:end]
    for piece, start, end in places[1:]:
        if pieces[piece][start:end] != words:
            return None
    return words


def line_offset(event: Event, words: str) -> int:
    """The number of lines from the header of the event to the first line of the excerpt ``words``.

    It is 0 if that line is not found.
    """
    continuation = event.continuation
    if not continuation:
        return 0
    needle = words.split("\n", 1)[0].strip()[:120]
    if not needle or needle in event.message:
        return 0
    position = continuation.find(needle)
    if position < 0:
        # An exception from a remote server is printed with a different class before it.
        position = continuation.find(needle.partition(": ")[2] or needle)
    return 0 if position < 0 else continuation.count("\n", 0, position) + 1
