"""Determines which of the potentially notable events of a block only have to be counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import compress

import numpy as np
import numpy.typing as npt

from flink_triage.logs.readers.block_arrays import WholeEvents
from flink_triage.logs.readers.event_builder import ShapedEvents
from flink_triage.logs.readers.event_forms import forms_of_events
from flink_triage.logs.readers.json_records import is_countable
from flink_triage.logs.readers.plain_events import plain_lines, runs_of
from flink_triage.logs.readers.quoted_text import QuotedKey, QuotedText
from flink_triage.logs.readers.repeated_events import Kind, Repeats
from flink_triage.logs.text.block_literals import LiteralFinder


class Candidates:
    """The events of a block that may be notable, in file order, as parallel arrays.

    ``indexes`` are their numbers in the block. ``is_judged`` marks the events of the block that may
    be notable without a literal. ``runs`` contains the plain events that do not have to be read
    individually: for each kind, their positions in these arrays.
    """

    def __init__(
        self,
        view: WholeEvents,
        is_candidate: npt.NDArray[np.bool_],
        is_judged: npt.NDArray[np.bool_],
    ) -> None:
        self.indexes = is_candidate.nonzero()[0]
        self.starts, self.ends = view.bounds[self.indexes], view.bounds[self.indexes + 1]
        self.lines = view.lines[self.indexes]
        bounds = zip(self.starts.tolist(), self.ends.tolist(), strict=True)
        self.pieces = [view.data[start:end] for start, end in bounds]
        self.runs: list[tuple[Kind, npt.NDArray[np.int64]]] = []
        self._data = view.data
        self._is_judged = is_judged[self.indexes]
        self._is_headless = (self.starts == 0) & (not view.begins_with_header)
        is_line = view.lines[self.indexes + 1] - self.lines == 1
        self._is_plain = self._is_judged & is_line & ~self._is_headless
        self._is_single = np.ones(len(self.indexes), dtype=np.bool_)
        self._keys: Sequence[bytes | None] | None = None

    def leave_out(self, take_routine: Callable[[int, int, bytes], bool]) -> None:
        """Leave out the events that ``take_routine`` takes, by their start, line, and bytes.

        Events that may be notable without a literal are not routine.
        """
        indexes = (~self._is_judged).nonzero()[0]
        starts, lines = self.starts[indexes].tolist(), self.lines[indexes].tolist()
        for index, start, line in zip(indexes.tolist(), starts, lines, strict=True):
            if take_routine(start, line, self.pieces[index]):
                self._is_single[index] = False

    def find_repeats(self, build: ShapedEvents, finder: LiteralFinder, repeats: Repeats) -> None:
        """Find the runs, and the keys by which ``repeats`` looks up the other events."""
        if not build.shape.is_json:
            self._is_plain = plain_lines(self.pieces, self._is_plain, finder)
            self.runs = runs_of(self._data, self.starts, self.ends, self._is_plain, build, repeats)
        for _, run in self.runs:
            self._is_single[run] = False
        self._keys = self._keys_of_singles(build, repeats.quoted_text)

    def _keys_of_singles(self, build: ShapedEvents, quoted_text: QuotedText) -> list[bytes | None]:
        """The key of each event that is not in a run.

        It is the form of the event, a ``QuotedKey``, or the header of a plain event. ``None`` for
        an event without a header, and for a JSON record whose form does not determine its text.
        """
        pieces = list(compress(self.pieces, self._is_single.tolist()))
        zero_time = build.shape.zero_time
        if build.shape.is_json:
            forms = forms_of_events(pieces, zero_time)
            return [k if is_countable(p) else None for k, p in zip(forms, pieces, strict=True)]
        quoted = [quoted_text.without(piece) for piece in pieces]
        unquoted = [
            found[0] if found else piece for piece, found in zip(pieces, quoted, strict=True)
        ]
        keys: list[bytes | None] = [
            QuotedKey.of(form, found[1]) if found else form
            for form, found in zip(forms_of_events(unquoted, zero_time), quoted, strict=True)
        ]
        for index in self._is_plain[self._is_single].nonzero()[0].tolist():
            keys[index] = build.header_of(pieces[index]) or keys[index]
        for index in self._is_headless[self._is_single].nonzero()[0].tolist():
            keys[index] = None
        return keys

    def singles(self) -> Iterator[tuple[int, int, int, bytes, bool, bytes | None]]:
        """Index, start, line, bytes, ``judged``, and key of each event that is not in a run.

        ``judged`` means that the event may be notable without a literal.
        """
        is_single = self._is_single
        return zip(
            self.indexes[is_single].tolist(),
            self.starts[is_single].tolist(),
            self.lines[is_single].tolist(),
            compress(self.pieces, is_single.tolist()),
            self._is_judged[is_single].tolist(),
            [None] * int(is_single.sum()) if self._keys is None else self._keys,
            strict=True,
        )
