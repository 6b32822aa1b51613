"""A stored observation and another pack in, the signatures that it shows by that pack out.

Of an event is kept its text without the stack trace, the message of its root cause, and its
fingerprint; of each fingerprint one trace.  Equal fingerprints mean the same throwables, the same
calls, and the same words in messages, but other numbers, ids, paths and quoted words.  So the text
is known whole where nothing else could stand in it; elsewhere what the tables have is matched, and
what was once found in the whole text stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from flink_triage.model import Match, Observation, StackTrace, Throwable
from flink_triage.recurrence import line_offset
from flink_triage.signatures import Matcher, SignaturePack
from flink_triage.traces import mask

# As a fingerprint compares messages: what stands behind so many characters may differ.
_COMPARED_CHARS = 200
# What is stored of the message of a root cause; one as long may have gone on.
_STORED_CHARS = 2000


@dataclass(frozen=True, slots=True)
class KnownTrace:
    """The trace that is kept of a fingerprint: how many events had it, and its text in the log."""

    trace: StackTrace
    event_count: int
    exemplar: str


@dataclass(frozen=True, slots=True)
class Rematched:
    """``matches`` by the new pack; ``unknown_count`` events were not all there to be looked at."""

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
    """Match an event anew.  Where its text is known whole, as if it had been read again.

    ``known`` is what its run stored of its fingerprint.  An observation that others were folded
    into speaks for them; they count as unknown.  ``is_on_one_line`` is for logs of JSON lines.
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
    # The lines are counted in the exemplar, as if its root cause said what the event's says.
    text = known.exemplar.replace(known.trace.root_cause.message, trace.root_cause.message)
    found = _placed(observation, found, text, is_on_one_line or _is_message(observation, text))
    if known.event_count == 1 or _is_told_whole(observation, trace):
        return Rematched(found, folded)
    return Rematched(_merged(observation, found, pack), folded + 1)


def _is_message(observation: Observation, exemplar: str) -> bool:
    """Whether the exemplar is a whole message: the trace began on the header's line."""
    said = mask(observation.event.message.partition("\n")[0])
    return bool(said) and mask(exemplar.partition("\n")[0]).startswith(said)


def _with_own_root(observation: Observation, trace: StackTrace) -> StackTrace:
    """The trace with the root cause's message as the event has it."""
    message = observation.root_cause_message
    if message is None or len(message) >= _STORED_CHARS:
        return trace
    root = replace(trace.root_cause, message=message)
    return replace(trace, throwables=(*trace.throwables[:-1], root))


def _is_told_whole(observation: Observation, trace: StackTrace) -> bool:
    """Whether every event of this fingerprint and root cause has this text."""
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
    """Matches with the lines that they stand on: as they were found before, else in the trace."""
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
    """What the whole text once showed stays; what is new loses the numbers of another event."""
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
    return tuple(sorted(merged, key=lambda match: _order(match, pack)))


def _own_captures(captures: Mapping[str, str], own: str) -> dict[str, str]:
    """Captures that stand in the event's own text, or could not differ in it."""
    return {name: value for name, value in captures.items() if value in own or mask(value) == value}


def _order(match: Match, pack: SignaturePack) -> tuple[bool, bool, int, int, str]:
    """The matcher's: named before generic, near the root cause before far, specific first."""
    signature = pack.signatures[match.signature]
    alternatives = signature.alternatives[match.alternative : match.alternative + 1]
    specificity = alternatives[0].specificity if alternatives else 0
    depth = match.depth_from_root
    return (signature.is_generic, depth is None, depth or 0, -specificity, match.signature)
