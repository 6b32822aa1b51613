"""Matches an event against all signatures, and returns the matches with evidence.

A single pass over the event finds the literals of all signatures. An alternative is checked in
detail only if all its literals occur. Without literals, it is checked for each stack trace. Regexes
have a time limit, and a signature that exceeds its time budget is switched off in this process for
the rest of the run and listed in ``skipped``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import regex

from flink_triage.model import Event, Match, Process, SkippedSignature, StackTrace
from flink_triage.settings import DEFAULT_SETTINGS, Settings
from flink_triage.signatures.candidates import Candidates
from flink_triage.signatures.conditions import failing_origin, frames_found, is_logger
from flink_triage.signatures.event_text import (
    MAX_REGEX_CHARS,
    EventText,
    Piece,
    excerpt,
    regex_window,
    says_enough,
)
from flink_triage.signatures.failed_process import failed_process
from flink_triage.signatures.pack import SignaturePack
from flink_triage.signatures.respelling import Respelling
from flink_triage.signatures.signature import Alternative, Signature, without_fallbacks
from flink_triage.traces import extract

# The levels of other logging systems and the levels above ERROR, which signatures do not have to
# list.
_LEVEL_NAMES = {"WARNING": "WARN", "SEVERE": "ERROR", "FATAL": "ERROR", "CRITICAL": "ERROR"}

_MAX_FOUND_IN_FRAMES = 256
# Characters between a literal and a value; a cut text may end with them.
_BEFORE_VALUES = " .:'\""
# Minimum length of a partial match at the end of a cut text; shorter ones are coincidental.
_MIN_CUT_CHARS = 10


@dataclass(frozen=True, slots=True)
class _Found:
    """The location and captures of a matching alternative."""

    alternative: int
    specificity: int
    depth: int | None
    excerpt: str
    captures: Mapping[str, str]

    @property
    def order(self) -> tuple[bool, int, int]:
        """A sort key: distance from the root cause (last if outside of a trace), specificity."""
        return (self.depth is None, self.depth or 0, -self.specificity)


@dataclass(slots=True)
class _Spent:
    """The time that this process has spent on the regexes of one signature."""

    seconds: float = 0.0
    timeouts: int = 0
    is_off: bool = False


class Matcher:
    """Matches one event at a time. Not thread-safe."""

    def __init__(
        self,
        pack: SignaturePack,
        settings: Settings = DEFAULT_SETTINGS,
        clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self._signatures = pack.signatures
        self._settings = settings
        self._clock = clock
        self._candidates = Candidates(pack)
        self._texts = pack.wordings
        # Regexes are compiled on first use: compiling one takes a millisecond, and most signatures
        # are never tried in a run.
        self._regexes: dict[str, Any] = {}
        self._spent: dict[str, _Spent] = {}
        self._found_in_frames: dict[tuple[str, str, str, int], Any] = {}
        self._slow: set[str] = set()
        # Created on the first text that does not match as written.
        self._respelling: Respelling | None = None

    @property
    def skipped(self) -> tuple[SkippedSignature, ...]:
        """The signatures that were not completely checked for every event, in ID order."""
        return tuple(
            SkippedSignature(name, self._reason(self._spent[name])) for name in sorted(self._slow)
        )

    def _reason(self, spent: _Spent) -> str:
        limit = self._settings.regex_timeout_seconds
        if spent.is_off:
            return f"switched off after its regexes had run for {spent.seconds:.1f} s"
        return f"a regex was stopped after {limit:g} s (timeouts: {spent.timeouts})"

    def match(
        self, event: Event, message: str, trace: StackTrace | None, process: Process | None
    ) -> tuple[Match, ...]:
        """The matches: generic ones last, then by distance from the root cause and specificity.

        ``message`` and ``trace`` are the result of ``traces.extract``. A signature matches once,
        with its best alternative; with ``sequence``, it matches once per matching alternative.
        Conditions on unknown properties (level, logger, process) are treated as met. If a benign
        signature of severity ``info`` matches the logger of the event, the logged exception is
        harmless, so signatures with other roles do not match it. A fallback matches only if no
        other signature explains the event (``explains_event``).
        """
        text = EventText(event, message, trace, process, self._settings.max_match_chars)
        results = self._results(text)
        if not results and text.has_elision:
            text.is_elided = True
            results = self._results(text)
        if not results and text.is_written:
            results = self._results_respelled(text)
        results = _without_harmless(results, text.event)
        results = [
            (s, _with_places(s, found, text) if s.asked_places else found) for s, found in results
        ]
        results.sort(key=lambda item: (item[0].is_generic, *item[1].order, item[0].id))
        matches = [
            Match(signature.id, found.alternative, found.captures, found.excerpt, found.depth)
            for signature, found in results
        ]
        return tuple(without_fallbacks(matches, self._signatures))

    def _results(self, text: EventText) -> list[tuple[Signature, _Found]]:
        results: list[tuple[Signature, _Found]] = []
        for signature_id, indexes in self._candidates.of(text).items():
            signature = self._signatures[signature_id]
            found = self._try(signature, indexes, text)
            results.extend((signature, one) for one in found)
        return results

    def _results_respelled(self, text: EventText) -> list[tuple[Signature, _Found]]:
        """The matches of a user's text after spelling correction; excerpts are kept as written."""
        if self._respelling is None:
            self._respelling = Respelling(self._texts)
        event = text.event
        written = "\n".join(filter(None, (event.message, event.continuation)))
        lines = [(self._respelling.respell(line), line) for line in written.split("\n")]
        respelled = "\n".join(line for line, _ in lines)
        if respelled == written:
            return []
        message, _, continuation = respelled.partition("\n")
        mended = replace(event, message=message, continuation=continuation or None)
        results = self._results(
            EventText(
                mended,
                *extract(message, continuation or None),
                text.process,
                self._settings.max_match_chars,
            )
        )
        return [
            (s, replace(found, excerpt=_as_written(found.excerpt, lines))) for s, found in results
        ]

    def _try(
        self, signature: Signature, indexes: Sequence[int], text: EventText
    ) -> Sequence[_Found]:
        spent = self._spent.get(signature.id)
        if spent is not None and spent.is_off:
            return ()
        if signature.mode == "all":
            indexes = range(len(signature.alternatives))
        found = []
        for index in sorted(indexes):
            held = self._hold(signature.id, signature.alternatives[index], index, text)
            if held is not None:
                found.append(held)
            elif signature.mode == "all":
                return ()
        if not found or self._is_vetoed(signature, text):
            return ()
        return found if signature.mode == "sequence" else (_join(signature, found),)

    def _is_vetoed(self, signature: Signature, text: EventText) -> bool:
        return any(
            self._hold(signature.id, veto, index, text) is not None
            for index, veto in enumerate(signature.vetoes)
        )

    # --- one alternative -----------------------------------------------------------------------

    def _hold(
        self, signature_id: str, alternative: Alternative, index: int, text: EventText
    ) -> _Found | None:
        if not (_header_holds(alternative, text) and _trace_holds(alternative, text)):
            return None
        for piece in _pieces(alternative, text):
            held = self._search(signature_id, alternative, piece, text)
            if held is not None:
                position, captures = held
                depth = piece.depth if piece.depth is not None else _depth(alternative, text)
                words = excerpt(piece.text, position, self._settings.max_excerpt_chars)
                return _Found(index, alternative.specificity, depth, words, captures)
        return None

    def _search(
        self, signature_id: str, alternative: Alternative, piece: Piece, text: EventText
    ) -> tuple[int, Mapping[str, str]] | None:
        """The position of the alternative in a piece of the text, and its captures.

        ``None`` if it does not match. If a user may have typed the text, literals that identify the
        failure suffice where the text omits, masks, or cuts off a value that the regex requires.
        """
        positions = [piece.text.find(literal) for literal in alternative.literals]
        if any(position < 0 for position in positions):
            return None
        position = min(positions, default=0)
        if alternative.regex is None:
            return position, {}
        if text.is_elided:
            is_sufficient = says_enough(alternative) and signature_id not in self._slow
            return (position, {}) if is_sufficient else None
        search = self._search_frames if alternative.scope == "frame" else self._run_regex
        found = search(signature_id, alternative.regex, piece.text, position)
        if found is None:
            may_be_cut = text.is_written and says_enough(alternative)
            return (position, {}) if may_be_cut and self._is_cut(alternative, piece) else None
        captures = {
            name: value[: self._settings.max_excerpt_chars]
            for name, value in found.groupdict().items()
            if value is not None
        }
        return found.start(), captures

    def _is_cut(self, alternative: Alternative, piece: Piece) -> bool:
        """Whether the text ends with a literal, where the regex still expects a value."""
        assert alternative.regex is not None
        text = piece.text[-MAX_REGEX_CHARS:].rstrip(_BEFORE_VALUES)
        if not text.endswith(tuple(one.rstrip(_BEFORE_VALUES) for one in alternative.literals)):
            return False
        timeout = self._settings.regex_timeout_seconds
        try:
            found = self._regexes[alternative.regex].search(text, timeout=timeout, partial=True)
        except TimeoutError:
            return False
        return found is not None and len(found[0]) >= _MIN_CUT_CHARS

    def _search_frames(self, signature_id: str, pattern: str, text: str, position: int) -> Any:
        """Search frames with a regex; results are cached, as repeated events have equal frames."""
        key = (signature_id, pattern, text, position)
        if key in self._found_in_frames:
            return self._found_in_frames[key]
        found = self._run_regex(*key)
        if signature_id not in self._slow:
            if len(self._found_in_frames) >= _MAX_FOUND_IN_FRAMES:
                self._found_in_frames.clear()
            self._found_in_frames[key] = found
        return found

    def _run_regex(self, signature_id: str, pattern: str, text: str, position: int) -> Any:
        compiled = self._regexes.get(pattern)
        if compiled is None:
            compiled = self._regexes[pattern] = regex.compile(pattern)
        spent = self._spent.setdefault(signature_id, _Spent())
        started = self._clock()
        try:
            start, end = regex_window(text, position)
            timeout = self._settings.regex_timeout_seconds
            return compiled.search(text, start, end, timeout=timeout)
        except TimeoutError:
            spent.timeouts += 1
            self._slow.add(signature_id)
            return None
        finally:
            spent.seconds += self._clock() - started
            if spent.seconds > self._settings.signature_budget_seconds:
                spent.is_off = True
                self._slow.add(signature_id)


def _as_written(excerpt: str, lines: Sequence[tuple[str, str]]) -> str:
    return next((line for mended, line in lines if excerpt in mended), excerpt)


# --- conditions other than text ----------------------------------------------------------------


def _header_holds(alternative: Alternative, text: EventText) -> bool:
    event = text.event
    if alternative.process and text.process and alternative.process != text.process:
        return False
    if alternative.levels and event.level:
        level = event.level.upper()
        if not {level, _LEVEL_NAMES.get(level, level)} & set(alternative.levels):
            return False
    if alternative.loggers and event.logger:
        logger = event.logger
        return any(is_logger(logger, wanted) for wanted in alternative.loggers)
    return True


def _trace_holds(alternative: Alternative, text: EventText) -> bool:
    # Users may quote a message without the exception class.
    is_quoted = text.is_prose and says_enough(alternative)
    if (
        alternative.throwables
        and not is_quoted
        and next(text.of_type(alternative.throwables, alternative.is_distinctive), None) is None
    ):
        return False
    if (
        alternative.root_causes
        and not is_quoted
        and not text.is_root_cause(alternative.root_causes, alternative.is_distinctive)
    ):
        return False
    if alternative.frame_origin is not None:
        return text.trace is not None and failing_origin(text.trace) == alternative.frame_origin
    return not alternative.frames or bool(frames_found(text.frame_names, alternative.frames))


def _pieces(alternative: Alternative, text: EventText) -> Sequence[Piece]:
    if alternative.frame_origin is not None and not alternative.literals:
        # Use the throwable whose frames were checked.
        return [piece for piece in text.throwables if piece.depth == text.framed_depth][:1]
    return list(text.pieces(alternative))


def _depth(alternative: Alternative, text: EventText) -> int | None:
    """The depth of the throwable with the required class, or else with one of the literals.

    ``None`` if there is no such throwable. Used if the text was found outside of the throwables.
    """
    types = alternative.throwables or alternative.root_causes
    if types:
        return next(
            (piece.depth for piece in text.of_type(types, alternative.is_distinctive)), None
        )
    return next(
        (
            piece.depth
            for piece in text.throwables
            if any(literal in piece.text for literal in alternative.literals)
        ),
        None,
    )


def _with_places(signature: Signature, found: _Found, text: EventText) -> _Found:
    """Add the failed process and the matching frame to the captures, if the remedy uses them."""
    places: dict[str, str | None] = {}
    if "process" in signature.asked_places:
        places["process"] = failed_process(text)
    if "frame" in signature.asked_places:
        places["frame"] = next(
            (
                frame
                for alternative in signature.alternatives
                for frame in frames_found(text.frame_names, alternative.frames)
            ),
            None,
        )
    known_places = {name: place for name, place in places.items() if place is not None}
    return replace(found, captures={**known_places, **found.captures}) if known_places else found


def _join(signature: Signature, found: Sequence[_Found]) -> _Found:
    """The best location of a signature, with the additional captures of its other alternatives."""
    best = min(found, key=lambda one: one.order)
    captures = {name: value for one in found for name, value in one.captures.items()}
    captures.update(best.captures)
    if signature.mode == "all":
        return _Found(0, signature.specificity, best.depth, best.excerpt, captures)
    return _Found(best.alternative, best.specificity, best.depth, best.excerpt, captures)


def _without_harmless(
    results: list[tuple[Signature, _Found]], event: Event
) -> list[tuple[Signature, _Found]]:
    is_harmless = event.logger is not None and any(
        (signature.role, signature.severity) == ("benign", "info")
        and signature.alternatives[found.alternative].loggers
        for signature, found in results
    )
    if not is_harmless:
        return results
    return [
        (signature, found)
        for signature, found in results
        if signature.role == "benign" or found.depth is None
    ]
