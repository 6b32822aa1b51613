"""The stored shape of an analyzed event: its text and the positions of its variable words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flink_triage.model import Fingerprint, Match, Product, StackTrace
from flink_triage.settings import Settings
from flink_triage.signatures.event_text import regex_window

TaskName = tuple[str, int, int, int | None]


@dataclass(frozen=True, slots=True)
class Analysis:
    """All properties derived from an event's text; ``trace`` is ``None`` if there is none or it
    was not parsed.
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
    """A part of a line; ``line`` is -1 for text that never varies."""

    line: int
    start: int
    end: int
    text: str

    def read(self, lines: Sequence[str]) -> str:
        return self.text if self.line < 0 else lines[self.line][self.start : self.end]


# A piece is a numbered string that the matcher searches: first the throwables in printed order,
# then the stack frames, which never vary, then the message, and finally the throwables and the
# message joined.


@dataclass(frozen=True, slots=True)
class Probe:
    """A regex applied to a piece, with its result: the spans of all groups."""

    pattern: Any
    piece: int
    position: int
    text: str
    spans: tuple[tuple[int, int], ...] | None


@dataclass(frozen=True, slots=True)
class Recipe:
    """The data to repeat a match: possible positions of its excerpt and captures.

    A position is (piece, start, end).
    """

    match: Match
    excerpts: tuple[tuple[int, int, int], ...]
    captures: tuple[tuple[str, tuple[tuple[int, int, int], ...]], ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of an event.

    ``pieces`` are the pieces of the exemplar; ``varying`` describes how to read those that may vary
    from a new event. ``pattern`` matches the lines. ``literals`` are the sensitive literals in the
    lines with their positions, or all literals if ``has_words`` (quoted words may differ).
    ``whole`` lists the components of the last piece, in order, if that piece is required. ``root``
    and ``task_of`` each consist of a piece and the column at which its message starts.
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
    """The event does not have a known shape; never raised outside of this package."""


def spans_of(
    pattern: Any, text: str, position: int, settings: Settings
) -> tuple[tuple[int, int], ...] | None:
    start, end = regex_window(text, position)
    found = pattern.search(text, start, end, timeout=settings.regex_timeout_seconds)
    return None if found is None else found.regs
