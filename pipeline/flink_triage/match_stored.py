"""Matches stored observations against a different signature pack.

For each event, the tables contain its message, its root cause message, and its fingerprint. For
each fingerprint and run, they contain one stack trace. Events with the same fingerprint have the
same throwables and calls, but the numbers, IDs, paths, and quoted words in their messages may
differ. The text of an event is known if it has no stack trace, if no other event of its run has its
fingerprint, or if only the root cause message, which is stored for each event, can differ.
Otherwise, the matches in the stored stack trace are combined with the earlier matches, which were
found in the text of the event. If the stack trace was deleted, only the earlier matches are kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from flink_triage.model import Match, Observation, StackTrace, Throwable
from flink_triage.recurrence import line_offset
from flink_triage.signatures import Matcher, SignaturePack
from flink_triage.signatures.signature import without_fallbacks
from flink_triage.traces import mask

# Fingerprints depend on this many characters of a masked message; the text after them may differ.
_COMPARED_CHARS = 200
# Maximum stored length of a root cause message; a message of this length may be truncated.
_STORED_CHARS = 2000


@dataclass(frozen=True, slots=True)
class KnownTrace:
    """The stored trace of a fingerprint, its number of events, and its text in the log."""

    trace: StackTrace
    event_count: int
    exemplar: str


@dataclass(frozen=True, slots=True)
class Rematched:
    """The matches of the new pack, and the number of events whose text is unknown."""

    matches: tuple[Match, ...]
    unknown_count: int


def rematch(
    observation: Observation,
    known: KnownTrace | None,
    matcher: Matcher,
    pack: SignaturePack,
    *,
    is_on_one_line: bool = False,
) -> Rematched:
    """Match a stored event again; if its text is known, the result equals that of a new read.

    ``known`` is the trace that was stored for the fingerprint of the event by the run that read the
    event, or ``None`` if the event has no trace or the trace was deleted. The text of events that
    were folded into the observation is unknown. Set ``is_on_one_line`` for JSON logs.
    """
    folded = observation.occurrences - 1
    if observation.fingerprint is None:
        event = replace(observation.event, continuation=None)
        found = matcher.match(event, event.message, None, observation.process)
        return Rematched(_placed(observation, found, None, is_on_one_line), folded)
    if known is None:
        kept = tuple(m for m in observation.matches if m.signature in pack.signatures)
        return Rematched(kept, folded + 1)
    trace = _with_own_root(observation, known.trace)
    found = matcher.match(observation.event, observation.event.message, trace, observation.process)
    # Line offsets are determined in the exemplar, with the root cause message of this event.
    text = known.exemplar.replace(known.trace.root_cause.message, trace.root_cause.message)
    found = _placed(observation, found, text, is_on_one_line or _is_message(observation, text))
    if known.event_count == 1 or _has_constant_text(observation, trace):
        return Rematched(found, folded)
    return Rematched(_merged(observation, found, pack), folded + 1)


def _is_message(observation: Observation, exemplar: str) -> bool:
    """Whether the exemplar includes the message, because the trace starts on the header line."""
    first_line = mask(observation.event.message.partition("\n")[0])
    return bool(first_line) and mask(exemplar.partition("\n")[0]).startswith(first_line)


def _with_own_root(observation: Observation, trace: StackTrace) -> StackTrace:
    """The trace with the event's own root cause message."""
    message = observation.root_cause_message
    if message is None or len(message) >= _STORED_CHARS:
        return trace
    root = replace(trace.root_cause, message=message)
    return replace(trace, throwables=(*trace.throwables[:-1], root))


def _has_constant_text(observation: Observation, trace: StackTrace) -> bool:
    """Whether all events with this fingerprint and root cause message have the same text."""
    message = observation.root_cause_message
    if message is None or len(message) >= _STORED_CHARS:
        return False
    *outer, root = trace.throwables
    return not root.suppressed and all(map(_cannot_differ, outer))


def _cannot_differ(throwable: Throwable) -> bool:
    message = throwable.message
    is_compared = len(message) < _COMPARED_CHARS and mask(message) == message
    return is_compared and not throwable.suppressed


def _placed(
    observation: Observation, found: Sequence[Match], exemplar: str | None, is_on_one_line: bool
) -> tuple[Match, ...]:
    """The matches with their line offsets, from an equal earlier match or else the exemplar."""
    before = {(m.signature, m.alternative, m.excerpt): m.line_offset for m in observation.matches}
    event = replace(observation.event, continuation=exemplar)

    def place(match: Match) -> Match:
        offset = before.get((match.signature, match.alternative, match.excerpt))
        if offset is None:
            offset = 0 if is_on_one_line else line_offset(event, match.excerpt)
        return replace(match, line_offset=offset)

    return tuple(map(place, found))


def _merged(
    observation: Observation, found: Sequence[Match], pack: SignaturePack
) -> tuple[Match, ...]:
    """Combine new matches in the stored trace with earlier matches in the text of the event.

    An earlier match of the same alternative replaces a new match. New matches keep only the
    captures that belong to this event.
    """
    stored = {(m.signature, m.alternative): m for m in observation.matches}
    own = f"{observation.event.message}\n{observation.root_cause_message or ''}"
    merged = [
        stored.get((m.signature, m.alternative))
        or replace(m, captures=_own_captures(m.captures, own))
        for m in found
    ]
    shown = {match.signature for match in merged}
    merged += [
        match
        for match in observation.matches
        if match.signature in pack.signatures and match.signature not in shown
    ]
    kept = without_fallbacks(merged, pack.signatures)
    return tuple(sorted(kept, key=lambda match: _order(match, pack)))


def _own_captures(captures: Mapping[str, str], own: str) -> dict[str, str]:
    """The captures that occur in the event's own text, or that masking does not change."""
    return {name: value for name, value in captures.items() if value in own or mask(value) == value}


def _order(match: Match, pack: SignaturePack) -> tuple[bool, bool, int, int, str]:
    """The sort order of the matcher: generic signatures last, then by depth and specificity."""
    signature = pack.signatures[match.signature]
    alternatives = signature.alternatives[match.alternative : match.alternative + 1]
    specificity = alternatives[0].specificity if alternatives else 0
    depth = match.depth_from_root
    return (signature.is_generic, depth is None, depth or 0, -specificity, match.signature)
