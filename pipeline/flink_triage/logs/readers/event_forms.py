"""Derives the forms of events by replacing their numbers and IDs with text of the same length.

Two events with the same form differ only in their timestamps, in the digits of whole numbers, and
in IDs of 32 hexadecimal digits. Stack frames are not changed. If the first or last character of an
ID may affect how it is masked, the form distinguishes a digit from a letter in this position.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt

ID_CHARS = 32
DIGIT, LETTER = ord("0"), ord("h")

_OTHER, _DIGIT, _HEX, _WORD = range(4)
_KINDS = np.full(256, _OTHER, dtype=np.uint8)
_KINDS[list(b"GHIJKLMNOPQRSTUVWXYZABCDEFghijklmnopqrstuvwxyz$")] = _WORD
_KINDS[list(b"abcdef")] = _HEX
_KINDS[list(b"0123456789")] = _DIGIT
_NEWLINE, _BLANK = ord("\n"), ord(" ")
# The prefix of a stack frame, as the low bytes of a word, and the mask of these bytes.
_HEAD_BYTES = 8
_FRAME_HEADS = tuple(
    (np.uint64(int.from_bytes(head, "little")), np.uint64((1 << 8 * len(head)) - 1))
    for head in (b"\tat ", b"\t\tat ", b"    at ")
)


def _among(characters: bytes) -> npt.NDArray[np.bool_]:
    table = np.zeros(256, dtype=np.bool_)
    table[list(characters)] = True
    return table


# Between these characters, an ID is a word, regardless of its first and last characters.
_BEFORE_ID = _among(b"_(=['\"{:")
_AFTER_ID = _among(b")],;\"'|}_")
_BLANKS = _among(b" \t\r\n")


def forms_of_events(events: Sequence[bytes], time: bytes) -> list[bytes]:
    """The form of each event; ``time`` replaces the timestamp at the start of each event."""
    if not events:
        return []
    together = forms_of(b"".join(events))
    ends = list(accumulate(map(len, events)))
    return [
        time + together[end - len(event) + len(time) : end]
        for end, event in zip(ends, events, strict=True)
    ]


def forms_of(data: bytes) -> bytes:
    """The form of ``data``, which consists of complete lines; stack frames remain unchanged."""
    bounds = _outside_of_frames(data)
    if len(bounds) == 2 and bounds[1] - bounds[0] == len(data):
        return _form(data)
    pieces = list(zip(bounds[::2], bounds[1::2], strict=True))
    changed = _form(b"".join([data[start:end] for start, end in pieces]))
    parts: list[bytes] = []
    at = done = 0
    for start, end in pieces:
        parts += (data[done:start], changed[at : at + end - start])
        at += end - start
        done = end
    parts.append(data[done:])
    return b"".join(parts)


def _outside_of_frames(data: bytes) -> list[int]:
    """The bounds of runs of lines that do not start like a stack frame, such as ``<tab>at ``."""
    if len(data) < _HEAD_BYTES:
        return [0, len(data)]
    newlines = np.flatnonzero(np.frombuffer(data, dtype=np.uint8)[:-_HEAD_BYTES] == _NEWLINE)
    heads: npt.NDArray[np.uint64] = np.ndarray(
        (len(data) - _HEAD_BYTES + 1,), dtype="<u8", buffer=data, strides=(1,)
    )
    starts = np.append(0, newlines + 1)
    is_frame = np.zeros(len(starts) + 2, dtype=np.bool_)
    is_frame[[0, -1]] = True
    for head, mask in _FRAME_HEADS:
        is_frame[1:-1] |= (heads[starts] & mask) == head
    edges = np.flatnonzero(is_frame[1:] != is_frame[:-1])
    bounds: list[int] = np.append(starts, len(data))[edges].tolist()
    return bounds


def _form(data: bytes) -> bytes:
    # Add newlines at both ends, so that the characters around each word can be inspected.
    text = np.frombuffer(b"\n\n" + data + b"\n\n\n\n", dtype=np.uint8)
    kinds = _KINDS[text]
    breaks = np.flatnonzero(kinds == _OTHER)
    starts = breaks[:-1] + 1
    sizes = np.diff(breaks) - 1
    form = text.copy()
    ids = _ids(kinds, starts[sizes == ID_CHARS])
    if len(ids):
        _blank_ids(text, form, ids)
    is_number = (sizes > 0) & (kinds[starts] == _DIGIT) & (kinds[starts + sizes - 1] == _DIGIT)
    starts, sizes = starts[is_number], sizes[is_number]
    # Exclude words with other characters between the first and the last digit.
    places = _positions(starts, sizes)
    is_digit = kinds[places] == _DIGIT
    if not is_digit.all():
        digits = np.add.reduceat(is_digit, np.cumsum(sizes) - sizes, dtype=np.int64)
        places = places[np.repeat(digits == sizes, sizes)]
    form[places] = DIGIT
    return bytes(form[2:-4])


def _ids(kinds: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The words that are IDs: hexadecimal digits with at least one digit and one letter."""
    words = kinds[starts[:, None] + np.arange(ID_CHARS)]
    digits = (words == _DIGIT).sum(axis=1)
    is_id = (words != _WORD).all(axis=1) & (digits > 0) & (digits < ID_CHARS)
    ids: npt.NDArray[np.int64] = starts[is_id]
    return ids


def _blank_ids(
    text: npt.NDArray[np.uint8], form: npt.NDArray[np.uint8], ids: npt.NDArray[np.int64]
) -> None:
    form[ids[:, None] + np.arange(1, ID_CHARS - 1)] = LETTER
    before, after = text[ids - 1], text[ids + ID_CHARS]
    behind = text[ids + ID_CHARS + 1]
    is_behind_word = (
        (before == _BLANK) & ~_BLANKS[text[ids - 2]] & (_KINDS[text[ids - 2]] != _DIGIT)
    )
    is_before_word = (after == _BLANK) & ~_BLANKS[behind] & (_KINDS[behind] != _DIGIT)
    is_closed = _AFTER_ID[after] | is_before_word
    is_first_free = (before == ord("_")) | ((_BEFORE_ID[before] | is_behind_word) & is_closed)
    for places, is_free in ((ids, is_first_free), (ids + ID_CHARS - 1, is_closed)):
        is_digit = _KINDS[text[places]] == _DIGIT
        form[places] = np.where(is_free | ~is_digit, LETTER, DIGIT)


def _positions(
    starts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """All byte positions of the words that start at ``starts``."""
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts - (ends - sizes), sizes) + np.arange(total)
