"""The properties that the events of one form share (see ``event_forms``).

They are learned from the first events of the form.
"""

from __future__ import annotations

from collections.abc import Hashable

from flink_triage.fold_grains import KEPT_KINDS, LOGGED_AT_STARTUP, Grain
from flink_triage.logs.readers.event_form_details import Span, is_plain
from flink_triage.logs.routine import COMPLETED

# The number of events of a form to parse before counting starts, and before learning stops.
_TRUSTED_FROM = 2
_LEARNED_FROM = 8

# Events of these kinds are built individually: the diagnosis reads their values or their order.
_NEVER_COUNTED = LOGGED_AT_STARTUP | {COMPLETED}


class LearnedForm:
    """The properties learned from the events of one form."""

    __slots__ = (
        "columns", "constant", "is_counted", "is_foldable", "keep", "level", "number", "places",
        "seen", "spans", "subtask",
    )  # fmt: skip

    def __init__(self, number: int, spans: list[Span] | None) -> None:
        self.number = number
        # Columns whose digits affect matches: each variant of them has its own form. May be empty.
        self.spans = spans
        self.is_foldable = spans is not None
        self.level: str | None = None
        self.seen = 0
        self.constant: tuple[Hashable, ...] = ()
        # Candidate columns of each detail; at least one of them contains the detail.
        self.places: dict[str, list[Span]] = {}
        # The columns that distinguish the kinds of the form.
        self.columns: tuple[Span, ...] = ()
        # Candidate columns of the subtask, which does not distinguish kinds.
        self.subtask: tuple[Span, ...] = ()
        # Whether repeated events are counted without being built.
        self.is_counted = False
        # The number of events of each kind to keep.
        self.keep = 0

    @property
    def is_settled(self) -> bool:
        """Whether the form requires no further learning."""
        if not self.is_foldable or self.seen >= _LEARNED_FROM:
            return True
        return self.seen >= _TRUSTED_FROM and all(len(of) < 2 for of in self.places.values())

    def adapt_to(self, grain: Grain) -> None:
        """Set ``is_counted``, ``columns``, ``subtask``, and ``keep`` for a grain of folding."""
        if not self.is_foldable or self.seen < _TRUSTED_FROM:
            self.is_counted = False
            return
        kind = self.constant[0]
        is_kept = kind in KEPT_KINDS and (grain.is_finest or kind in _NEVER_COUNTED)
        # Even if the grain drops the task, events of different tasks are different kinds here,
        # because the task names of counted events are not parsed.
        dropped = grain.drops - {"task"}
        kept_places = (of for name, of in self.places.items() if name not in {*dropped, "subtask"})
        self.columns = tuple(sorted({span for of in kept_places for span in of}))
        self.subtask = tuple(self.places["subtask"])
        self.keep = grain.kept_of(is_plain=is_plain(self.constant))
        self.is_counted = not is_kept
