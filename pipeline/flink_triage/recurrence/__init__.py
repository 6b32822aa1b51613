"""An event seen before with other numbers and ids: its analysis, without parsing it again.

A ``Recurrences`` is asked before an event is analysed and told afterwards.  An event has a known
shape if its text differs from one that was analysed in numbers, job ids, UUIDs and the only word in
quotes of a line, each as long as there, outside of frames.  Then it has the same throwables in the
same columns and the same fingerprint: the grammars of traces and of masks know digits and ids as
classes of characters only, and masks take all quoted words for one.  Where a quoted word may
differ, all literals of signatures have to stand where they stood.  What is written in those columns
is read from the event itself, and each regex that looks at changed text is run again; where it then
finds another place, or where it is open which words are meant, nothing is recalled and the event is
analysed as any other.
"""

from __future__ import annotations

from collections import OrderedDict

from flink_triage.model import Event, Process
from flink_triage.recurrence.learn import Learner
from flink_triage.recurrence.outline import Outline, outline_of
from flink_triage.recurrence.recall import again, line_offset
from flink_triage.recurrence.sensitive import Sensitive, telling_of
from flink_triage.recurrence.shape import Analysis, Misfit, Shape
from flink_triage.settings import Settings
from flink_triage.signatures import SignaturePack

__all__ = ["Analysis", "Outline", "Recurrences", "line_offset", "outline_of", "telling_of"]

# Shapes are kept per process by what is compared first; each is some ten KB.
_MAX_KEYS = 2048
# To learn a shape takes longer than to analyse its event: of keys that were met once only a hash
# is kept.
_MAX_MET = 65_536
_MAX_SHAPES_PER_KEY = 8
# Nor is one learned while those before it were of no use: in a flood of free text none is.
_LEARNED_AT_FIRST = 256


class Recurrences:
    """The shapes seen by one process; bounded."""

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
        """Remembers how the analysis of an event is made, if it can be made again.

        Of an event like which none was met before only that it was met is remembered.
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
