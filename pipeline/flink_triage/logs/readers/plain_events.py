"""Finds the plain events of a block, and groups them by header.

A plain event is a single line of ASCII text without signature or lifecycle literals, without
indications of a stack trace, a task, or a job, without possible secrets, and without characters
that may have to be replaced. Its message does not affect how it is analyzed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import hyperscan
import numpy as np
import numpy.typing as npt

from flink_triage.logs.readers.block_arrays import windows_at
from flink_triage.logs.readers.event_builder import MESSAGE_FOLLOWS, ShapedEvents
from flink_triage.logs.readers.quoted_text import INDICATIONS
from flink_triage.logs.readers.repeated_events import (
    LAST_TEN_SECONDS,
    MET_FROM,
    MINUTE_BYTES,
    Kind,
    Repeats,
)
from flink_triage.logs.text.block_literals import LiteralFinder
from flink_triage.logs.text.hyperscan_databases import database_of
from flink_triage.logs.text.secret_forms import MAYBE, MAYBE_CASED

# Events with a longer header are not grouped.
_MAX_HEADER_BYTES = 128


def plain_lines(
    events: Sequence[bytes], is_line: npt.NDArray[np.bool_], finder: LiteralFinder
) -> npt.NDArray[np.bool_]:
    """Which of the events in ``is_line`` are plain; none if there are too few to count them."""
    lines = is_line.nonzero()[0]
    if len(lines) < MET_FROM:
        return np.zeros_like(is_line)
    pieces = [events[index] for index in lines.tolist()]
    together = b"".join(pieces)
    ends: list[int] = []
    finder.ends(together, ends)

    def note(_id: int, _start: int, end: int, *_: object) -> None:
        ends.append(end)

    database, scratch = _database()
    # A match across the end of an event is a false positive: a plain event is not treated as plain.
    database.scan(together, match_event_handler=note, scratch=scratch)
    bounds = np.cumsum([len(piece) for piece in pieces])
    found = bounds.searchsorted(np.asarray(ends, dtype=np.int64) - 1, side="right")
    is_plain = is_line.copy()
    is_plain[lines[found]] = False
    return is_plain


def runs_of(
    data: bytes,
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    is_plain: npt.NDArray[np.bool_],
    build: ShapedEvents,
    repeats: Repeats,
) -> list[tuple[Kind, npt.NDArray[np.int64]]]:
    """The kinds of plain events, each with the indexes of the events for ``take_run``.

    The first events of a kind in a portion are excluded, because they must be built.
    """
    kinds: dict[Kind, list[npt.NDArray[np.int64]]] = {}
    plain = is_plain.nonzero()[0]
    for of_plain in _header_groups(data, starts[plain], ends[plain], build):
        group = plain[of_plain]
        event = data[starts[group[0]] : ends[group[0]]]
        header = build.header_of(event)
        kind = repeats.kind_of_header(header, event) if header is not None else None
        if kind is not None:
            kinds.setdefault(kind, []).append(group)
    runs = []
    for kind, groups in kinds.items():
        counted = np.sort(np.concatenate(groups))[repeats.to_build(kind) :]
        if len(counted):
            runs.append((kind, counted))
    return runs


def _header_groups(
    data: bytes,
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    build: ShapedEvents,
) -> list[npt.NDArray[np.int64]]:
    """Groups of events with the same header and minute, each as indexes in file order.

    Events whose header is too long or depends on the message, or whose second is invalid, are in no
    group. If the time of any event is before that of the previous event, there are no groups.
    """
    if build.time_columns is None or not len(starts):
        return []
    begin, _, after = build.time_columns
    padded = data + bytes(_MAX_HEADER_BYTES)
    times = windows_at(padded, starts + begin, after - begin).view(f"S{after - begin}")
    if bool((times[1:] < times[:-1]).any()):
        return []
    text = np.frombuffer(padded, dtype=np.uint8)
    widths = _header_widths(text, starts + after, ends, build)
    tens = text[starts + begin + MINUTE_BYTES + 1]
    is_usable = (widths > 0) & (widths <= _MAX_HEADER_BYTES) & (tens <= LAST_TEN_SECONDS)
    usable = is_usable.nonzero()[0]
    if not len(usable):
        return []
    headers = _bytes_at(padded, starts[usable] + after, _MAX_HEADER_BYTES)
    headers[np.arange(_MAX_HEADER_BYTES) >= widths[usable, None]] = 0
    keys = np.hstack([_bytes_at(padded, starts[usable] + begin, MINUTE_BYTES), headers])
    _, group = np.unique(keys.view(f"V{keys.shape[1]}").ravel(), return_inverse=True)
    order = np.argsort(group, kind="stable")
    edges = np.flatnonzero(np.diff(group[order])) + 1
    return [usable[some] for some in np.split(order, edges)]


def _header_widths(
    text: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    build: ShapedEvents,
) -> npt.NDArray[np.int64]:
    """The number of bytes from each start to the message.

    It is 0 if the position of the message is ambiguous (see ``ShapedEvents.header_of``).
    """
    places = np.flatnonzero(text[:-2] == MESSAGE_FOLLOWS[0])
    is_separator = [text[places + at] == byte for at, byte in enumerate(MESSAGE_FOLLOWS)]
    # The end of the text stands for missing separators.
    separators = np.append(places[np.logical_and.reduce(is_separator)], [len(text)] * 2)
    number = separators.searchsorted(starts)
    messages = separators[number] + len(MESSAGE_FOLLOWS)
    is_clear = (messages <= ends) & (separators[number + 1] + len(MESSAGE_FOLLOWS) > ends)
    if not build.has_level_column:
        brackets = np.append(np.flatnonzero(text == ord("]")), len(text) + len(MESSAGE_FOLLOWS))
        is_clear &= brackets[brackets.searchsorted(messages)] >= ends
    return np.where(is_clear, messages - starts, 0)


def _bytes_at(data: bytes, starts: npt.NDArray[np.int64], width: int) -> npt.NDArray[np.uint8]:
    return windows_at(data, starts, width).view(np.uint8).reshape(-1, width)


@lru_cache(maxsize=1)
def _database() -> tuple[Any, Any]:
    cased = (*MAYBE_CASED, *INDICATIONS, rb" by:|at[ \t]")
    flags = [hyperscan.HS_FLAG_CASELESS] * len(MAYBE) + [0] * len(cased)
    return database_of([*MAYBE, *cased], flags, literal=False)
