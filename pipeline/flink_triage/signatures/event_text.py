"""The texts of an event that are searched for literals and regexes, each cut to a length limit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from flink_triage.model import Event, Frame, Process, StackTrace, Throwable
from flink_triage.signatures.conditions import (
    chain_with_depths,
    frame_names,
    hides_class,
    is_any_type,
    simple_name,
    stated_types,
)
from flink_triage.signatures.signature import Alternative
from flink_triage.traces import mentioned

# The maximum length of the text around the literal that a regex searches. A careless regex takes
# quadratic time, but for 8 KiB it usually finishes within its timeout.
MAX_REGEX_CHARS = 8 * 1024
# A phrase of at least this length is usually specific to one library.
_DISTINCTIVE_CHARS = 20
# Values that a user omitted or masked: "Job **** not found", "size XXXX", "job 5e21…9a07",
# "of job <id>".
_ELISION = re.compile(r"\*{2,}|\b[Xx]{3,}\b|\u2026|\.{3}|<[a-z][\w -]{0,30}>|_{3,}|\?{3,}|#{3,}")
# The newline prevents literals from matching across the cut.
_CUT = "\n"
# Markdown escapes in prose: "max\_allowed\_packet".
_MARKDOWN_ESCAPE = re.compile(r"\\([_*`\[\]<>#|~])")


@dataclass(frozen=True, slots=True)
class Piece:
    """A text, and its depth from the root cause (``None`` outside of a stack trace)."""

    depth: int | None
    text: str


class EventText:
    """The texts of an event for the matcher; all but ``message`` are created on first use."""

    def __init__(
        self,
        event: Event,
        message: str,
        trace: StackTrace | None,
        process: Process | None,
        max_chars: int,
    ) -> None:
        self.event = event
        # Whether the text is prose, because it has neither a log header nor a stack trace.
        self.is_prose = trace is None and event.level is None and event.logged_at is None
        # Whether a user may have typed the text, because a program would have printed stack frames.
        self.is_written = self.is_prose or (
            event.level is None
            and event.logged_at is None
            and trace is not None
            and not any(throwable.frames for throwable in trace.throwables)
        )
        whole = message
        if trace is None and event.continuation and event.continuation not in message:
            whole = f"{message}\n{event.continuation}"
        if self.is_prose:
            message, whole = (_MARKDOWN_ESCAPE.sub(r"\1", text) for text in (message, whole))
            trace = mentioned(message)
        self.trace = trace
        self.process = process
        # Whether text that a regex requires may be missing, because users shorten IDs and numbers.
        self.is_elided = False
        self._max_chars = max_chars
        self.message = Piece(None, cut_middle(whole, max_chars))

    @cached_property
    def has_elision(self) -> bool:
        """Whether part of the prose was omitted or masked."""
        return self.is_prose and _ELISION.search(self.message.text) is not None

    @cached_property
    def chain(self) -> tuple[tuple[int, Throwable], ...]:
        return tuple(chain_with_depths(self.trace)) if self.trace is not None else ()

    @cached_property
    def throwables(self) -> tuple[Piece, ...]:
        """``type: message`` of every throwable, starting with the root cause."""
        return tuple(
            Piece(depth, cut_middle(throwable.text, self._max_chars))
            for depth, throwable in self.chain
        )

    @cached_property
    def whole(self) -> Piece:
        parts = (self.message.text, *(piece.text for piece in reversed(self.throwables)))
        return Piece(None, cut_middle("\n".join(parts), self._max_chars))

    @cached_property
    def frames(self) -> tuple[Piece, ...]:
        return tuple(
            Piece(depth, cut_middle(_frame_lines(throwable.frames), self._max_chars))
            for depth, throwable in self.chain
            if throwable.frames
        )

    @cached_property
    def frame_names(self) -> str:
        return frame_names(tuple(throwable.frames for _, throwable in self.chain))

    def searched(self, *, with_frames: bool) -> str:
        """All text that may contain a literal."""
        # The pieces are joined uncut: each may be as long as the limit, so `whole` may lack text.
        parts = [self.message.text, *(piece.text for piece in self.throwables)]
        if with_frames:
            parts.extend(piece.text for piece in self.frames)
        return "\n".join(parts)

    def pieces(self, alternative: Alternative) -> Iterator[Piece]:
        """The pieces in which to search for an alternative's literals and regex, best first."""
        scope = alternative.scope
        if scope in ("throwable", "root-cause") and self.is_prose and says_enough(alternative):
            yield from self.throwables
            yield self.message
        elif scope == "throwable":
            yield from self.of_type(alternative.throwables, alternative.is_distinctive)
        elif scope == "root-cause":
            yield from self.throwables[:1]
        elif scope == "message":
            yield self.message
        elif scope == "frame":
            yield from self.frames
        else:
            yield from self.throwables
            yield self.message
            if self.throwables and (len(alternative.literals) > 1 or alternative.regex):
                yield self.whole

    @property
    def framed_depth(self) -> int | None:
        """The depth of the innermost cause that has frames; ``None`` if no cause has frames."""
        causes = len(self.trace.throwables) if self.trace is not None else 0
        return next((d for d, t in self.chain[:causes] if t.frames), None)

    def is_root_cause(self, types: tuple[str, ...], is_distinctive: bool) -> bool:
        if self.trace is None:
            return False
        root = self.trace.root_cause.type
        return is_any_type(self._root_types[-1], types) or (is_distinctive and hides_class(root))

    @cached_property
    def _root_types(self) -> tuple[str, ...]:
        """The class of the root cause, and the classes at the start of its message."""
        return tuple(stated_types(self.trace.root_cause)) if self.trace is not None else ()

    @cached_property
    def simple_types(self) -> frozenset[str] | None:
        """The simple class names that ``of_type`` compares; ``None`` if any class may match."""
        names = [throwable.type for _, throwable in self.chain]
        if self.is_prose or any(map(hides_class, names)):
            return None
        return frozenset(map(simple_name, (*names, *self._root_types)))

    def of_type(self, types: tuple[str, ...], is_distinctive: bool) -> Iterator[Piece]:
        """The throwables of the given classes; with distinctive text, also those of unknown class.

        The root cause also counts as an instance of the classes at the start of its message.
        """
        for (depth, throwable), piece in zip(self.chain, self.throwables, strict=True):
            names = (throwable.type,) if depth else self._root_types
            if any(is_any_type(name, types) for name in names) or (
                is_distinctive and hides_class(throwable.type)
            ):
                yield piece


def says_enough(alternative: Alternative) -> bool:
    """Whether the literals of an alternative identify the failure without the exception class."""
    return any(" " in word and len(word) >= _DISTINCTIVE_CHARS for word in alternative.literals)


def cut_middle(text: str, max_chars: int) -> str:
    """The head and tail of a text that is too long; the tail is kept because it has the causes."""
    if len(text) <= max_chars:
        return text
    half = max_chars // 2
    return text[:half] + _CUT + text[-half:]


def regex_window(text: str, position: int) -> tuple[int, int]:
    """The bounds of the part of ``text`` around ``position`` that a regex searches."""
    if len(text) <= MAX_REGEX_CHARS:
        return 0, len(text)
    start = max(0, min(position - MAX_REGEX_CHARS // 4, len(text) - MAX_REGEX_CHARS))
    return start, start + MAX_REGEX_CHARS


def excerpt(text: str, position: int, max_chars: int) -> str:
    """The line of ``text`` at ``position`` without outer spaces, at most ``max_chars`` of it."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    end = len(text) if end < 0 else end
    if position - start > max_chars // 2:
        start = position - max_chars // 4
    return text[start : min(end, start + max_chars)].strip()


@lru_cache(maxsize=256)
def _frame_lines(frames: tuple[Frame, ...]) -> str:
    return "\n".join(
        f"{frame.class_name}.{frame.method}({frame.file or 'Unknown Source'})" for frame in frames
    )
