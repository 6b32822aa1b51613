"""Finds the plain events of a block, for which only the header matters, and groups them by header.

A plain event is a single line without signature or lifecycle literals, without indications of a
stack trace, a task, or a job, without possible secrets, and without characters to replace. All
plain events with the same header are treated alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import hyperscan
import numpy as np
import numpy.typing as npt

from flink_triage.logs.readers.event_builder import MESSAGE_FOLLOWS, ShapedEvents
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
from flink_triage.logs.text.trace_lines import TRACE_WORDS

# Indications of a subtask, an ID, characters to clean, or a stack trace.
_TELLING = (
    rb"\([0-9]{1,6}/[0-9]{1,6}\)",
    rb"[0-9a-f]{32}",
    rb"[\x00\x1b\r&\x80-\xff]",
    rb" by:|at[ \t]",
    "|".join(word.replace(".", r"\.") for word in TRACE_WORDS).encode(),
)

# Events with a longer header are not grouped.
_MAX_HEADER_BYTES = 128


def plain_lines(
    events: Sequence[bytes], is_line: npt.NDArray[np.bool_], finder: LiteralFinder
) -> npt.NDArray[np.bool_]:
    """The plain events among those that are one line; none if there are few lines."""
    is_plain = is_line.copy()
    lines = is_line.nonzero()[0]
    if len(lines) < MET_FROM:
        is_plain[:] = False
        return is_plain
    pieces = [events[index] for index in lines.tolist()]
    together = b"".join(pieces)
    ends: list[int] = []
    finder.ends(together, ends)

    def note(_id: int, _start: int, end: int, *_: object) -> None:
        ends.append(end)

    database, scratch = _database()
    # A match across the end of an event is a false positive, which at worst marks a plain event as
    # not plain.
    database.scan(together, match_event_handler=note, scratch=scratch)
    bounds = np.cumsum([len(piece) for piece in pieces])
    found = bounds.searchsorted(np.asarray(ends, dtype=np.int64) - 1, side="right")
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
    """The indexes of plain events that only have to be counted, in file order, by kind."""
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

    Events whose header depends on the message (see ``ShapedEvents.header_of``) or whose second is
    invalid are in no group. There are no groups if the times of the events decrease.
    """
    if build.time_columns is None or not len(starts):
        return []
    begin, _, after = build.time_columns
    text = np.frombuffer(data + bytes(_MAX_HEADER_BYTES), dtype=np.uint8)
    times = _windows(text, starts + begin, after - begin).view(f"S{after - begin}").ravel()
    if bool((times[1:] < times[:-1]).any()):
        return []
    blanks = np.flatnonzero(text[:-2] == MESSAGE_FOLLOWS[0])
    is_following = [text[blanks + at] == byte for at, byte in enumerate(MESSAGE_FOLLOWS)]
    follows = np.append(blanks[np.logical_and.reduce(is_following)], [len(text)] * 2)
    number = follows.searchsorted(starts + after)
    messages = follows[number] + len(MESSAGE_FOLLOWS)
    widths = messages - (starts + after)
    is_usable = (widths <= _MAX_HEADER_BYTES) & (messages <= ends)
    is_usable &= follows[number + 1] + len(MESSAGE_FOLLOWS) > ends
    is_usable &= text[starts + begin + MINUTE_BYTES + 1] <= LAST_TEN_SECONDS
    if not build.has_level_column:
        # An event without a message has its message behind the text.
        closing = np.append(np.flatnonzero(text == ord("]")), len(text) + len(MESSAGE_FOLLOWS))
        is_usable &= closing[closing.searchsorted(messages)] >= ends
    usable = is_usable.nonzero()[0]
    headers = _windows(text, starts[usable] + after, _MAX_HEADER_BYTES)
    headers[np.arange(_MAX_HEADER_BYTES) >= widths[usable, None]] = 0
    minutes = _windows(text, starts[usable] + begin, MINUTE_BYTES)
    keys = np.hstack([minutes, headers])
    _, group = np.unique(keys.view(f"V{keys.shape[1]}").ravel(), return_inverse=True)
    order = np.argsort(group, kind="stable")
    edges = np.flatnonzero(np.diff(group[order])) + 1
    return [usable[some] for some in np.split(order, edges)] if len(usable) else []


def _windows(
    text: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], width: int
) -> npt.NDArray[np.uint8]:
    """The ``width`` bytes at each start, as rows."""
    every = np.lib.stride_tricks.sliding_window_view(text, width)
    return np.ascontiguousarray(every[starts])


@lru_cache(maxsize=1)
def _database() -> tuple[Any, Any]:
    cased = (*MAYBE_CASED, *_TELLING)
    flags = [hyperscan.HS_FLAG_CASELESS] * len(MAYBE) + [0] * len(cased)
    return database_of([*MAYBE, *cased], flags, literal=False)
