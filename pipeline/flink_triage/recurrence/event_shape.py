"""The remembered form of an analysed event: its text and the places of its variable words."""

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
    """All facts read from the text of an event; ``trace`` is ``None`` also if it was not parsed."""

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
    """A part of a line; ``line`` is -1 for a part that never changes."""

    line: int
    start: int
    end: int
    text: str

    def read(self, lines: Sequence[str]) -> str:
        return self.text if self.line < 0 else lines[self.line][self.start : self.end]


# A piece is a numbered string that the matcher reads: first the throwables in printed order, then
# the message, finally all of them together.


@dataclass(frozen=True, slots=True)
class Probe:
    """A regex on a piece, and its result there: the spans of all its groups."""

    pattern: Any
    piece: int
    position: int
    text: str
    spans: tuple[tuple[int, int], ...] | None


@dataclass(frozen=True, slots=True)
class Recipe:
    """Data to repeat a match: possible places of its excerpt and captures (piece, start, end)."""

    match: Match
    excerpts: tuple[tuple[int, int, int], ...]
    captures: tuple[tuple[str, tuple[tuple[int, int, int], ...]], ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """``pieces`` are those of the exemplar; ``varying`` describes how to read some of them again.

    ``pattern`` matches the lines. ``literals`` are the sensitive literals in the lines with their
    places, or all literals if ``has_words``, that is, if quoted words may differ. ``whole`` lists
    the components of the last piece, in order, if it is needed. ``root`` and ``task_of`` are a
    piece and the column at which its message starts.
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
    """The event does not fit a known shape; never raised outside of this package."""


def spans_of(
    pattern: Any, text: str, position: int, settings: Settings
) -> tuple[tuple[int, int], ...] | None:
    start, end = regex_window(text, position)
    found = pattern.search(text, start, end, timeout=settings.regex_timeout_seconds)
    return None if found is None else found.regs
