"""Recalls the analysis of an earlier event for an event that differs only in numbers and ids.

The caller tries ``recall`` before it analyses an event, and calls ``learn`` afterwards. An event
has a known shape if its text differs from an analysed one only outside of frames, in numbers, job
ids, UUIDs and the only quoted word of a line, each of the same length. It then has the same
throwables in the same columns and the same fingerprint: the grammars of traces and masks treat
digits and ids only as classes of characters, and masks treat all quoted words alike. If a quoted
word may differ, all literals of signatures must be at the same positions. The text in the changed
columns is read from the event itself, and each regex that reads changed text runs again. If such a
regex matches elsewhere, or the words are ambiguous, the event is analysed like any other.
"""

from __future__ import annotations

from collections import OrderedDict

from flink_triage.model import Event, Process
from flink_triage.recurrence.digit_literals import Sensitive, telling_of
from flink_triage.recurrence.event_shape import Analysis, Misfit, Shape
from flink_triage.recurrence.learn import Learner
from flink_triage.recurrence.outline import Outline, outline_of
from flink_triage.recurrence.recall import again, line_offset
from flink_triage.settings import Settings
from flink_triage.signatures import SignaturePack

__all__ = ["Analysis", "Outline", "Recurrences", "line_offset", "outline_of", "telling_of"]

# Shapes are kept per process by the part that is compared first; each takes about 10 KB.
_MAX_KEYS = 2048
# Learning a shape takes longer than analysing its event, so a key that was seen once is kept only
# as a hash.
_MAX_MET = 65_536
_MAX_SHAPES_PER_KEY = 8
# Learning also pauses while earlier shapes are not reused: free text does not repeat.
_LEARNED_AT_FIRST = 256


class Recurrences:
    """The shapes seen by one process; their number is limited."""

    def __init__(self, pack: SignaturePack, settings: Settings) -> None:
        self._settings = settings
        self._shapes: OrderedDict[tuple[object, ...], list[Shape]] = OrderedDict()
        self._met: set[int] = set()
        self._learned = self._recalled = 0
        self._sensitive = Sensitive(pack)
        self._learner = Learner(pack, self._sensitive, settings)

    def __len__(self) -> int:
        return len(self._shapes)

    def recall(self, event: Event, outline: Outline) -> Analysis | None:
        """The analysis of an event whose shape is known, or ``None``."""
        shapes = self._shapes.get(outline.key)
        if shapes is None:
            return None
        self._shapes.move_to_end(outline.key)
        text = "\n".join(outline.lines)
        for shape in shapes:
            if shape.pattern.fullmatch(text):
                if self._sensitive.places(text, is_any=shape.has_words) != shape.literals:
                    continue
                self._recalled += 1
                return again(shape, event, outline.lines, self._settings)
        return None

    def learn(
        self, event: Event, outline: Outline, process: Process | None, analysis: Analysis
    ) -> None:
        """Store how to repeat the analysis of an event, if it can be repeated.

        The first event of a kind is only recorded as seen.
        """
        shapes = self._shapes.get(outline.key, [])
        if len(shapes) >= _MAX_SHAPES_PER_KEY or not (shapes or self._is_met(outline)):
            return
        if self._learned > _LEARNED_AT_FIRST + self._recalled:
            return
        self._learned += 1
        try:
            shape = self._learner.shape_of(event, outline, process, analysis)
        except Misfit:
            return
        self._shapes[outline.key] = [*shapes, shape]
        if len(self._shapes) > _MAX_KEYS:
            self._shapes.popitem(last=False)

    def _is_met(self, outline: Outline) -> bool:
        key = hash(outline.key)
        if key in self._met:
            return True
        if len(self._met) >= _MAX_MET:
            self._met.clear()
        self._met.add(key)
        return False
