"""The reference implementation that reads a file with a header shape line by line.

The runners use ``block_reader.read_blocks``. Tests compare its result with the result of this
reader, which is correct by definition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from flink_triage.logs.readers.byte_account import Tally
from flink_triage.logs.readers.event_builder import ShapedEvents
from flink_triage.model import Event

_READ_BYTES = 1024 * 1024


class ByteSource(Protocol):
    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Window:
    """The offset at which reading starts, and the offset before which all included events start.

    ``end`` is ``None`` for the end of the file. If ``is_active`` is set, the last event of the file
    may continue.
    """

    start: int
    end: int | None
    is_active: bool

    def owns(self, offset: int) -> bool:
        return self.end is None or offset < self.end


def read_lines(
    source: ByteSource, window: Window, build: ShapedEvents, tally: Tally
) -> Iterator[Sequence[Event]]:
    """Read ``source``, which must be positioned at ``window.start``, line by line.

    Yields the notable events in portions; the last portion stays in ``tally``.
    """
    reader = _Lines(source)
    lines: list[bytes] = []
    offset = window.start
    at = window.start
    number = 1
    for line in reader:
        if lines and build.shape.is_header(line):
            _close_lines(build, tally, offset, number, lines)
            number += len(lines)
            offset, lines = at, []
            if tally.is_portion:
                yield tally.take()
        if not lines and not window.owns(at):
            return
        lines.append(line)
        at += len(line)
    if lines and window.is_active:
        tally.held_back_bytes += at - offset
    elif lines:
        _close_lines(build, tally, offset, number, lines)


class _Lines:
    def __init__(self, source: ByteSource) -> None:
        self._source = source

    def __iter__(self) -> Iterator[bytes]:
        rest = b""
        while block := self._source.read(_READ_BYTES):
            parts = (rest + block).split(b"\n")
            rest = parts.pop()
            for part in parts:
                yield part + b"\n"
        if rest:
            yield rest


def _close_lines(
    build: ShapedEvents, tally: Tally, offset: int, number: int, lines: list[bytes]
) -> None:
    data = b"".join(lines)
    minute = build.minute_of(lines[0]) if build.shape.is_header(lines[0]) else None
    built = build.build(offset, len(data), number, data)
    tally.newline_count += data.count(b"\n")
    tally.count(built.level, minute, len(lines), len(data), 1)
    if built.event is None:
        tally.counted_bytes += len(data)
    else:
        tally.keep(built.event, built.redactions, built.decode_errors)
