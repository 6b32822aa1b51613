"""Determines the levels of the events in a block, and their volumes by level and minute."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from flink_triage.logs.layouts.header_shape import SHAPE_WIDTH, Shape, masks_of
from flink_triage.logs.readers.block_arrays import IS_WORD, WholeEvents, rows_at
from flink_triage.logs.readers.byte_account import Tally
from flink_triage.logs.readers.event_builder import ShapedEvents
from flink_triage.logs.readers.json_records import plain_levels
from flink_triage.logs.readers.small_block_reader import QUIET

_LEVELS: tuple[str | None, ...] = (*QUIET, "WARN", "ERROR", "FATAL", None)
_LEVEL_CODES = {level: code for code, level in enumerate(_LEVELS)}
_OTHER_LEVEL = _LEVEL_CODES[None]
UNRESOLVED = len(_LEVELS)


def code_of(level: str | None) -> int:
    """The code that represents a level in an array."""
    return _LEVEL_CODES.get(level, _OTHER_LEVEL)


def quiet_levels(
    view: WholeEvents, newlines: npt.NDArray[np.int64], shape: Shape
) -> npt.NDArray[np.int64]:
    """The code of each event's level (see ``code_of``) if it is INFO, DEBUG, or TRACE.

    It is ``UNRESOLVED`` for all other events, and for JSON records that must be parsed.
    """
    if shape.is_json:
        return plain_levels(view, UNRESOLVED)
    levels = np.full(len(view.bounds) - 1, UNRESOLVED, dtype=np.int64)
    columns = _anchor_columns(view, newlines, shape.anchor)
    if columns is None:
        return levels
    words = rows_at(view.data, columns)[:, 0]
    for code, word in enumerate(level.encode() for level in QUIET):
        mask = np.uint64((1 << (8 * len(word))) - 1)
        value = np.uint64(int.from_bytes(word, "little"))
        following = ((words >> np.uint64(8 * len(word))) & np.uint64(0xFF)).astype(np.uint8)
        levels[((words & mask) == value) & ~IS_WORD[following]] = code
    # The first event may be the text before the first header.
    if not view.begins_with_header:
        levels[0] = UNRESOLVED
    return levels


def _anchor_columns(
    view: WholeEvents, newlines: npt.NDArray[np.int64], anchor: str | None
) -> npt.NDArray[np.int64] | None:
    """The offset at which the level of each event is expected; ``None`` without an anchor.

    If a header line does not contain this position, the offset is the end of the data.
    """
    if anchor is None:
        return None
    starts = view.bounds[:-1]
    number = int(anchor[1:])
    nowhere = len(view.data)
    line_ends = newlines[view.lines[:-1]]
    if anchor[0] == "@":
        columns = starts + number
    else:
        array = np.frombuffer(view.data, dtype=np.uint8)
        brackets = np.append(np.flatnonzero(array == ord("]")), nowhere)
        nth = np.searchsorted(brackets, starts) + number - 1
        columns = brackets[np.minimum(nth, len(brackets) - 1)] + 2
        blanks = np.append(array, np.zeros(2, np.uint8))[np.minimum(columns, nowhere) - 1]
        columns = np.where(blanks == ord(" "), columns, nowhere)
    return np.where(columns < line_ends, columns, nowhere)


def count_volumes(
    view: WholeEvents,
    levels: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.int64],
    line_counts: npt.NDArray[np.int64],
    build: ShapedEvents,
    tally: Tally,
) -> None:
    """Add the events to the volumes by level and minute."""
    is_first = np.zeros(len(levels), dtype=np.bool_)
    is_first[0] = True
    if not view.begins_with_header:
        is_first[1:2] = True
    for word, mask in enumerate(masks_of(build.shape).minute_mask):
        if mask:
            keys = view.rows[:, word] & mask
            is_first[1:] |= keys[1:] != keys[:-1]
    segments = is_first.cumsum() - 1
    width = len(_LEVELS)
    cells = segments * width + levels
    cell_count = (int(segments[-1]) + 1) * width
    events = np.bincount(cells, minlength=cell_count)
    lines = np.bincount(cells, weights=line_counts, minlength=cell_count)
    sums = np.bincount(cells, weights=sizes, minlength=cell_count)
    firsts = is_first.nonzero()[0]
    for cell in events.nonzero()[0].tolist():
        first = int(firsts[cell // width])
        minute = None
        if first or view.begins_with_header:
            start = int(view.bounds[first])
            minute = build.minute_of(view.data[start : start + SHAPE_WIDTH])
        level = _LEVELS[cell % width]
        count = int(lines[cell]), int(sums[cell]), int(events[cell])
        tally.count(level, minute, *count)
