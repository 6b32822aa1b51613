"""Splits a small amount of data into events, using lists instead of NumPy arrays.

For a small file or the end of a large file, processing event by event is faster than the array
operations of ``block_reader``, because of NumPy's call overhead.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from flink_triage.logs.layouts.header_shape import SHAPE_WIDTH, Shape
from flink_triage.logs.readers.byte_account import Tally
from flink_triage.logs.readers.event_builder import ShapedEvents
from flink_triage.logs.text.block_literals import LiteralFinder

# Levels that alone never make an event notable.
QUIET = ("INFO", "DEBUG", "TRACE")
_LEVELS: dict[bytes | None, str | None] = {None: None, **{level.encode(): level for level in QUIET}}
_QUIET_WORD = b"(" + "|".join(QUIET).encode() + rb")(?![0-9A-Za-z_])"


@dataclass(frozen=True, slots=True)
class FewEvents:
    """The complete events of ``data``.

    ``bounds`` and ``lines`` contain the byte offset and the 0-based line number of the start of
    each event, followed by those of the end of the last event. All events start with a header,
    except for the first one if ``begins_with_header`` is false. ``levels`` contains the levels in
    ``QUIET``, and ``None`` for events with other text at the anchor.
    """

    data: bytes
    bounds: Sequence[int]
    lines: Sequence[int]
    levels: Sequence[str | None]
    begins_with_header: bool

    def judged(self, cut_bytes: int) -> list[bool]:
        """Whether each event may be notable without a literal."""
        sizes = (end - start for start, end in pairwise(self.bounds))
        counts = (end - start for start, end in pairwise(self.lines))
        return [
            level is None or count > 1 or size > cut_bytes
            for level, count, size in zip(self.levels, counts, sizes, strict=True)
        ]

    def suspects(self, finder: LiteralFinder, judged: Sequence[bool]) -> set[int]:
        """The indexes of events that may contain a literal, apart from those in ``judged``."""
        view = memoryview(self.data)
        ends: list[int] = []
        begun = None
        for bound, is_judged in zip(self.bounds, (*judged, True), strict=True):
            if not is_judged and begun is None:
                begun = bound
            elif is_judged and begun is not None:
                finder.suspects(view[begun:bound], begun, ends)
                begun = None
        return {bisect_right(self.bounds, end - 1) - 1 for end in ends}

    def count(self, levels: Sequence[str | None], build: ShapedEvents, tally: Tally) -> None:
        """Add every event to the volume of its level and minute."""
        for index, level in enumerate(levels):
            start, end = self.bounds[index : index + 2]
            minute = None
            if index or self.begins_with_header:
                minute = build.minute_of(self.data[start : start + SHAPE_WIDTH])
            tally.count(level, minute, self.lines[index + 1] - self.lines[index], end - start, 1)


def whole_events(data: bytes, shape: Shape, limit: int | None) -> FewEvents | None:
    """The events of ``data`` that start before ``limit``, except the last one, which may continue.

    ``None`` if no event remains.
    """
    bounds: list[int] = []
    levels: list[str | None] = []
    for match in _headers(shape).finditer(data):
        bounds.append(match.start())
        levels.append(_LEVELS[match[1]])
    begins_with_header = bool(bounds) and bounds[0] == 0
    if not begins_with_header:
        bounds.insert(0, 0)
        levels.insert(0, None)
    owned = len(bounds) - 1
    if limit is not None:
        owned = min(owned, sum(start < limit for start in bounds))
    if owned <= 0:
        return None
    bounds = bounds[: owned + 1]
    lines = [0]
    for start, end in pairwise(bounds):
        lines.append(lines[-1] + data.count(b"\n", start, end))
    return FewEvents(data, bounds, lines, levels[:owned], begins_with_header)


@lru_cache(maxsize=64)
def _headers(shape: Shape) -> re.Pattern[bytes]:
    """A regex for header lines, with a group for the level at the anchor if it is in ``QUIET``."""
    word = None
    anchor = shape.anchor or ""
    if anchor.startswith("@"):
        between = int(anchor[1:]) - len(shape.columns)
        word = rb"[^\n]{%d}" % between if between >= 0 else None
    elif anchor:
        between = int(anchor[1:]) - shape.columns.count("]")
        word = rb"(?:[^\n\]]*\]){%d} " % between if between > 0 else None
    group = b"((?!))?" if word is None else b"(?:" + word + _QUIET_WORD + b")?"
    return re.compile(b"^" + shape.header_pattern + group, re.MULTILINE)
