"""Recalls the analysis of an earlier event for an event that differs only in variable words.

The caller tries ``recall`` before it analyzes an event, and calls ``learn`` after the analysis. An
event has the same shape as an analyzed event only if it has the same level, logger, and process,
and if its text differs only in variable words outside of stack frames. Variable words are numbers,
IDs of 32 hexadecimal digits, UUIDs, and the only quoted word of a line. Each must have the same
length as in the analyzed event. Events of one shape have the same throwables in the same columns,
and the same fingerprint.

The literals whose presence may depend on a variable word must occur at the same positions. If a
quoted word may differ, this applies to all literals. Variable words are read from the event itself,
and every regex that is applied to changed text runs again. If such a regex matches at different
positions or times out, or if an excerpt or a capture is ambiguous, the event is analyzed like any
other event.
"""

from __future__ import annotations

from collections import OrderedDict

from flink_triage.model import Event, Process
from flink_triage.recurrence.digit_literals import SensitiveLiterals, repeats_of
from flink_triage.recurrence.event_shape import Analysis, Misfit, Shape
from flink_triage.recurrence.learn import Learner
from flink_triage.recurrence.outline import Outline, outline_of
from flink_triage.recurrence.recall import line_offset, recall_analysis
from flink_triage.settings import Settings
from flink_triage.signatures import SignaturePack

__all__ = [
    "Analysis",
    "Outline",
    "Recurrences",
    "line_offset",
    "outline_of",
    "repeats_of",
]

# Maximum number of keys for which a process keeps shapes; each shape takes about 10 KB.
_MAX_KEYS = 2048
# Learning a shape takes longer than analyzing its event, so no shape is learned from the first
# event with a key. This is the maximum number of stored hashes of such keys.
_MAX_MET = 65_536
_MAX_SHAPES_PER_KEY = 8
# After about this many attempts to learn a shape, a process makes only as many more as it has found
# events with a known shape, because free text rarely repeats.
_LEARNED_AT_FIRST = 256


class Recurrences:
    """The shapes that one process has learned; their number is limited."""

    def __init__(self, pack: SignaturePack, settings: Settings) -> None:
        self._settings = settings
        self._shapes: OrderedDict[tuple[object, ...], list[Shape]] = OrderedDict()
        self._met: set[int] = set()
        self._learned = self._recalled = 0
        self._sensitive = SensitiveLiterals(pack)
        self._learner = Learner(pack, self._sensitive, settings)

    def __len__(self) -> int:
        return len(self._shapes)

    def recall(self, event: Event, outline: Outline) -> Analysis | None:
        """The analysis of an event, without ``trace``; ``None`` if it cannot be recalled."""
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
                return recall_analysis(shape, event, outline.lines, self._settings)
        return None

    def learn(
        self, event: Event, outline: Outline, process: Process | None, analysis: Analysis
    ) -> None:
        """Store the shape of an event, if its analysis can be recalled for similar events.

        For the first event with a key, only a hash of the key is stored. If a limit is reached, no
        shape is stored.
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
