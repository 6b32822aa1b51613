"""The shape of an analyzed event: its text, and the positions of its variable words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flink_triage.logs.text.regex_steps import SHORT_CHARS, is_quick
from flink_triage.model import Fingerprint, Match, Product, StackTrace
from flink_triage.settings import Settings
from flink_triage.signatures.event_text import regex_window

# Task, 1-based subtask, parallelism, and 0-based attempt.
TaskName = tuple[str, int, int, int | None]


@dataclass(frozen=True, slots=True)
class Analysis:
    """The properties derived from an event's text, logger, and process.

    ``trace`` is ``None`` if the text has no stack trace, or if the analysis was recalled.
    """

    message: str
    trace: StackTrace | None
    fingerprint: Fingerprint | None
    first_user_frame: str | None
    product: Product | None
    exception_type: str | None
    root_cause_type: str | None
    root_cause_message: str | None
    has_frames: bool
    task: TaskName | None
    job_id: str | None
    matches: tuple[Match, ...]


@dataclass(frozen=True, slots=True)
class Slot:
    """The characters [start, end) of a line, or a ``text`` that does not vary if ``line`` is -1."""

    line: int
    start: int
    end: int
    text: str

    def read(self, lines: Sequence[str]) -> str:
        return self.text if self.line < 0 else lines[self.line][self.start : self.end]


# A piece is a numbered string that the matcher searches. The order is: the throwables as printed,
# the stack frames of each throwable, which do not vary, the message, and the message joined with
# the throwables.


@dataclass(frozen=True, slots=True)
class Probe:
    """A regex applied to the piece with the number ``piece``, whose text was ``text``.

    A long text is searched only around ``position``. ``spans`` are the spans of all groups, or
    ``None`` if the regex does not match.
    """

    pattern: Any
    piece: int
    position: int
    text: str
    spans: tuple[tuple[int, int], ...] | None


@dataclass(frozen=True, slots=True)
class Recipe:
    """A match, and the positions from which to read its excerpt and captures in a new event.

    A position is (piece, start, end). If there are several, all must contain the same text.
    """

    match: Match
    excerpts: tuple[tuple[int, int, int], ...]
    captures: tuple[tuple[str, tuple[tuple[int, int, int], ...]], ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of an analyzed event.

    ``pieces`` are the pieces of the analyzed event. ``varying`` describes the pieces that may vary,
    and how to read them from the lines of a new event. ``pattern`` matches the lines. ``literals``
    are the sensitive literals in the lines with their positions, or all literals if ``has_words``
    is set, which means that quoted words may differ. ``whole`` lists the components of the last
    piece, in order, if that piece is required. ``root`` and ``task_of`` each consist of the number
    of a piece and the column at which its message starts; they are ``None`` if the analyzed event
    has no stack trace or no task.
    """

    pattern: re.Pattern[str]
    literals: list[tuple[int, int]]
    has_words: bool
    analysis: Analysis
    pieces: tuple[str, ...]
    varying: tuple[tuple[int, str, tuple[Slot, ...]], ...]
    whole: tuple[int, ...]
    probes: tuple[Probe, ...]
    recipes: tuple[Recipe, ...]
    root: tuple[int, int] | None
    task_of: tuple[int, int] | None


class Misfit(Exception):
    """No shape can be derived from the event; caught within this package."""


def spans_of(
    pattern: Any, text: str, position: int, settings: Settings
) -> tuple[tuple[int, int], ...] | None:
    start, end = regex_window(text, position)
    if end - start <= SHORT_CHARS and is_quick(pattern.pattern):
        found = pattern.search(text, start, end)
    else:
        found = pattern.search(text, start, end, timeout=settings.regex_timeout_seconds)
    return None if found is None else found.regs
