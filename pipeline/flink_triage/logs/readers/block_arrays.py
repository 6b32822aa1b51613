"""Represents the events of a buffer as arrays of their offsets and first bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flink_triage.logs.layouts.header_shape import SHAPE_WIDTH
from flink_triage.logs.text.block_literals import LiteralFinder


@dataclass(frozen=True, slots=True)
class WholeEvents:
    """The complete events of the buffer ``data``.

    ``bounds`` and ``lines`` contain the byte offset and the 0-based line number of the start of
    each event, followed by those of the end of the last event. ``rows`` are the first bytes of each
    event, as 64-bit words. All events start with a header, except for the first one if
    ``begins_with_header`` is false.
    """

    data: bytes
    bounds: npt.NDArray[np.int64]
    lines: npt.NDArray[np.int64]
    rows: npt.NDArray[np.uint64]
    begins_with_header: bool


IS_WORD = np.zeros(256, dtype=np.bool_)
for _byte in b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_":
    IS_WORD[_byte] = True


def rows_at(data: bytes, starts: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """The ``SHAPE_WIDTH`` bytes at each start, as 64-bit words; zero past the end of the data."""
    size = len(data)
    rows = np.zeros((len(starts), SHAPE_WIDTH // 8), dtype="<u8")
    inside = int(starts.searchsorted(size - SHAPE_WIDTH, side="right"))
    if len(starts) and not bool((starts[:-1] <= starts[1:]).all()):
        return _unsorted_rows(data, starts)
    if inside > 0:
        windows = windows_at(data, starts[:inside], SHAPE_WIDTH)
        rows[:inside] = windows.view("<u8").reshape(-1, SHAPE_WIDTH // 8)
    for index in range(inside, len(starts)):
        piece = data[int(starts[index]) : int(starts[index]) + SHAPE_WIDTH]
        rows[index] = np.frombuffer(piece.ljust(SHAPE_WIDTH, b"\0"), dtype="<u8")
    return rows


def windows_at(data: bytes, starts: npt.NDArray[np.int64], width: int) -> npt.NDArray[np.void]:
    """The ``width`` bytes at each start; all of them must be inside the data."""
    view: npt.NDArray[np.void] = np.ndarray(
        (len(data) - width + 1,), dtype=f"V{width}", buffer=data, strides=(1,)
    )
    return view[starts]


def _unsorted_rows(data: bytes, starts: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    order = np.argsort(starts, kind="stable")
    rows = np.empty((len(starts), SHAPE_WIDTH // 8), dtype="<u8")
    rows[order] = rows_at(data, starts[order])
    return rows


def suspects_of(
    view: WholeEvents, is_judged: npt.NDArray[np.bool_], finder: LiteralFinder
) -> npt.NDArray[np.bool_]:
    """Whether each event may contain a literal of the finder.

    Events for which ``is_judged`` is true are not searched; their result is false.
    """
    found = np.zeros(len(is_judged), dtype=np.bool_)
    fenced = np.ones(len(is_judged) + 2, dtype=np.bool_)
    fenced[1:-1] = is_judged
    edges = (fenced[1:] != fenced[:-1]).nonzero()[0]
    places = view.bounds[edges].tolist()
    ends: list[int] = []
    data = memoryview(view.data)
    for start, end in zip(places[::2], places[1::2], strict=True):
        finder.suspects(data[start:end], start, ends)
    if ends:
        found[np.searchsorted(view.bounds, np.asarray(ends) - 1, side="right") - 1] = True
    return found
