"""The reader of files whose header lines have a fixed shape: blocks of some MiB at a time.

Blocks are looked at with numpy and one literal scan; Python runs for notable events only.  It gives
what ``shaped_lines.read_lines`` gives.  A range owns the events whose first byte lies in it and is
read past its end to finish the last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import numpy as np
import numpy.typing as npt

from flink_triage.model import Event

from .event_text import BuiltEvent, ShapedEvents
from .few_events import QUIET, whole_events
from .layouts.shape import SHAPE_WIDTH, masks_of
from .literals import LiteralFinder
from .routine import job_of_completed
from .rows import IS_WORD, WholeEvents, rows_at
from .shaped_lines import ByteSource, Window
from .tally import Tally
from .text import head_and_tail_bytes, join_cut

# Larger blocks leave the processor's cache and are given new pages each time (a fifth of all time),
# smaller ones pay numpy's start-up more often.
BLOCK_BYTES = 1024 * 1024

# Below this numpy's start-up, paid for each call, costs more than a loop over the events.
FEW_BYTES = 16 * 1024

_LEVELS: tuple[str | None, ...] = (*QUIET, "WARN", "ERROR", "FATAL", None)
_LEVEL_CODES = {level: code for code, level in enumerate(_LEVELS)}
_OTHER_LEVEL = _LEVEL_CODES[None]
_UNRESOLVED = len(_LEVELS)


def read_blocks(
    source: ByteSource,
    window: Window,
    build: ShapedEvents,
    finder: LiteralFinder,
    tally: Tally,
    block_bytes: int = BLOCK_BYTES,
    few_bytes: int = FEW_BYTES,
) -> Iterator[Sequence[Event]]:
    """Reads ``source``, which stands at ``window.start``, block by block.

    Gives portions of what ``tally`` keeps; the last is left to be taken.
    """
    return _Blocks(source, window, build, finder, tally, block_bytes, few_bytes).run()


class _Blocks:
    """The state of one pass: where the buffer stands in the file, and which line that is."""

    def __init__(
        self,
        source: ByteSource,
        window: Window,
        build: ShapedEvents,
        finder: LiteralFinder,
        tally: Tally,
        block_bytes: int,
        few_bytes: int,
    ) -> None:
        self._source = source
        self._window = window
        self._build = build
        self._finder = finder
        self._tally = tally
        self._block_bytes = block_bytes
        self._few_bytes = few_bytes
        self._masks = masks_of(build.shape)
        self._offset = window.start
        self._line = 1
        # Even without the first bytes of a header at its end, a giant is beyond the event limit.
        self._giant_bytes = max(2 * block_bytes, build.settings.max_event_bytes + 2 * SHAPE_WIDTH)
        self._cut_bytes = min(build.settings.max_event_bytes, build.settings.max_line_bytes)
        # Minute and job of the run of completed checkpoints that is read, and the last of them.
        self._routine: tuple[datetime, bytes] | None = None
        self._last_routine: tuple[int, int, bytes] | None = None

    def run(self) -> Iterator[Sequence[Event]]:
        yield from self._read()
        self._end_routine()

    def _read(self) -> Iterator[Sequence[Event]]:
        carry = b""
        while self._window.owns(self._offset):
            block = self._source.read(self._block_bytes)
            data = carry + block if carry else block
            if not block:
                self._finish(data)
                return
            carry = self._take(data)
            if len(carry) > self._giant_bytes:
                # What was read with its end may be the last block, and hold many events.
                carry = self._take(self._take_giant(carry))
            if self._tally.is_portion:
                yield self._tally.take()

    def _take(self, data: bytes) -> bytes:
        """All events but the last are counted and kept; what is left of ``data``."""
        take = self._take_few if len(data) < self._few_bytes else self._take_events
        taken = take(data) if data else 0
        self._offset += taken
        return data[taken:]

    def _finish(self, data: bytes) -> None:
        """The end of the source: what is left is one event."""
        if not data:
            return
        if self._window.is_active:
            self._tally.held_back_bytes += len(data)
            return
        self._close(self._offset, len(data), data.count(b"\n"), data, data[-1:] != b"\n")

    def _close(
        self,
        offset: int,
        size: int,
        newlines: int,
        data: bytes,
        is_open: bool,
        is_cut: bool = False,
    ) -> None:
        """Counts one event on its own; ``is_open`` says that its last line has no newline."""
        shape = self._build.shape
        minute = self._build.minute_of(data) if shape.is_header(data) else None
        self._end_routine()
        built = self._build.build(offset, size, self._line, data, is_cut=is_cut)
        self._tally.newline_count += newlines
        self._line += newlines
        self._tally.count(built.level, minute, newlines + is_open, size, 1)
        if built.event is None:
            self._tally.counted_bytes += size
        else:
            self._tally.keep(built.event, built.redactions, built.decode_errors)

    def _take_giant(self, carry: bytes) -> bytes:
        """Reads on to the end of an event that is larger than the buffer; keeps its two ends."""
        settings = self._build.settings
        head_bytes, tail_bytes = head_and_tail_bytes(settings)
        head = carry[:head_bytes]
        # The next header's first bytes may already be in the tail: keep room to give them back.
        kept_bytes = tail_bytes + SHAPE_WIDTH + 1
        tail = carry[-kept_bytes:]
        size, newlines = len(carry), carry.count(b"\n")
        # A header may straddle two reads: the overlap is searched again.
        overlap = carry[-SHAPE_WIDTH - 1 :]
        while block := self._source.read(self._block_bytes):
            joined = overlap + block
            found = self._build.shape.next_header(joined, 0)
            if found >= 0:
                found -= len(overlap)
                return self._close_giant(head, tail, size, newlines, found, overlap, block)
            size += len(block)
            newlines += block.count(b"\n")
            tail = (tail + block)[-kept_bytes:]
            overlap = joined[-SHAPE_WIDTH - 1 :]
        if self._window.is_active:
            self._tally.held_back_bytes += size
        else:
            is_open = tail[-1:] != b"\n"
            kept, _ = join_cut(head, tail[-tail_bytes:], size, settings)
            self._close(self._offset, size, newlines, kept, is_open, is_cut=True)
        self._offset += size
        return b""

    def _close_giant(
        self,
        head: bytes,
        tail: bytes,
        size: int,
        newlines: int,
        found: int,
        overlap: bytes,
        block: bytes,
    ) -> bytes:
        """Ends the giant ``found`` bytes into ``block``; negative: inside the overlap before it."""
        _, tail_bytes = head_and_tail_bytes(self._build.settings)
        if found >= 0:
            tail, rest = (tail + block[:found])[-tail_bytes:], block[found:]
            newlines += block.count(b"\n", 0, found)
        else:
            tail, rest = tail[:found][-tail_bytes:], overlap[found:] + block
        size += found
        kept, _ = join_cut(head, tail, size, self._build.settings)
        self._close(self._offset, size, newlines, kept, False, is_cut=True)
        self._offset += size
        return rest

    def _take_events(self, data: bytes) -> int:
        """Counts and keeps all events of ``data`` but the last, which may go on; bytes taken."""
        newlines = (np.frombuffer(data, dtype=np.uint8) == 10).nonzero()[0]
        starts = np.empty(len(newlines) + 1, dtype=np.int64)
        starts[0] = 0
        np.add(newlines, 1, out=starts[1:])
        rows = rows_at(data, starts)
        is_header = self._masks.are_headers(rows)
        begins_with_header = bool(is_header[0])
        is_header[0] = True
        header_lines = is_header.nonzero()[0]
        owned = len(header_lines) - 1
        if self._window.end is not None:
            limit = self._window.end - self._offset
            owned = min(owned, int(np.searchsorted(starts[header_lines], limit)))
        if owned <= 0:
            return 0
        lines = header_lines[: owned + 1]
        bounds = starts[lines]
        view = WholeEvents(data, bounds, lines, rows[lines[:-1]], begins_with_header)
        self._count_events(view, newlines)
        self._line += int(lines[-1])
        return int(bounds[-1])

    def _count_events(self, view: WholeEvents, newlines: npt.NDArray[np.int64]) -> None:
        levels = self._quiet_levels(view, newlines)
        sizes = view.bounds[1:] - view.bounds[:-1]
        line_counts = view.lines[1:] - view.lines[:-1]
        # These are judged whatever words they hold; only in all others a literal decides.
        is_judged = (levels == _UNRESOLVED) | (line_counts > 1) | (sizes > self._cut_bytes)
        is_candidate = is_judged | self._may_hold_literals(view, is_judged)
        self._tally.newline_count += int(view.lines[-1])
        self._tally.counted_bytes += int(view.bounds[-1])
        candidates = is_candidate.nonzero()[0]
        for index, start, end, line, judged in zip(
            candidates.tolist(),
            view.bounds[candidates].tolist(),
            view.bounds[candidates + 1].tolist(),
            view.lines[candidates].tolist(),
            is_judged[candidates].tolist(),
            strict=True,
        ):
            built = self._judge(start, line, view.data[start:end], judged)
            if built is not None:
                levels[index] = _LEVEL_CODES.get(built.level, _OTHER_LEVEL)
        self._count_volumes(view, levels, sizes, line_counts)

    def _judge(self, start: int, line: int, data: bytes, judged: bool) -> BuiltEvent | None:
        """Keeps a candidate, counted so far, where it is notable; None where that is not asked.

        One that is not ``judged`` whatever it says counts only with a literal.
        """
        offset, line = self._offset + start, self._line + line
        if not judged and (self._is_routine(offset, line, data) or not self._finder.contains(data)):
            return None
        built = self._build.build(offset, len(data), line, data, has_literal=not judged or None)
        if built.event is not None:
            self._end_routine()
            self._tally.keep(built.event, built.redactions, built.decode_errors)
            self._tally.counted_bytes -= len(data)
        return built

    def _take_few(self, data: bytes) -> int:
        """What ``_take_events`` does, for little data."""
        limit = None if self._window.end is None else self._window.end - self._offset
        events = whole_events(data, self._build.shape, limit)
        if events is None:
            return 0
        judged = events.judged(self._cut_bytes)
        suspects = events.suspects(self._finder, judged)
        levels = list(events.levels)
        self._tally.newline_count += events.lines[-1]
        self._tally.counted_bytes += events.bounds[-1]
        for index, is_judged in enumerate(judged):
            if is_judged or index in suspects:
                start, end = events.bounds[index : index + 2]
                built = self._judge(start, events.lines[index], data[start:end], is_judged)
                if built is not None:
                    levels[index] = built.level
        events.count(levels, self._build, self._tally)
        self._line += events.lines[-1]
        return events.bounds[-1]

    def _is_routine(self, offset: int, line: int, data: bytes) -> bool:
        """Whether the event says that a checkpoint was completed; then it is dealt with.

        The first of a run is kept at once, the last when the run ends; what is between would be
        dropped.
        """
        job = job_of_completed(data)
        minute = self._build.minute_of(data) if job is not None else None
        if job is None or minute is None:
            return False
        key = minute, job
        if key == self._routine:
            self._last_routine = offset, line, data
        else:
            self._end_routine()
            self._keep_routine(offset, line, data)
            self._routine = key
        return True

    def _keep_routine(self, offset: int, line: int, data: bytes) -> None:
        built = self._build.build(offset, len(data), line, data, has_literal=True)
        if built.event is not None:
            self._tally.keep(built.event, built.redactions, built.decode_errors)
            self._tally.counted_bytes -= len(data)

    def _end_routine(self) -> None:
        """Keeps the last event of the run, unless that is its first."""
        if self._last_routine is not None:
            self._keep_routine(*self._last_routine)
        self._routine = self._last_routine = None

    def _may_hold_literals(
        self, view: WholeEvents, is_judged: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.bool_]:
        """Which of the events that are not judged anyway the finder suspects."""
        found = np.zeros(len(is_judged), dtype=np.bool_)
        fenced = np.ones(len(is_judged) + 2, dtype=np.bool_)
        fenced[1:-1] = is_judged
        edges = (fenced[1:] != fenced[:-1]).nonzero()[0]
        places = view.bounds[edges].tolist()
        ends: list[int] = []
        data = memoryview(view.data)
        for start, end in zip(places[::2], places[1::2], strict=True):
            self._finder.suspects(data[start:end], start, ends)
        if ends:
            found[np.searchsorted(view.bounds, np.asarray(ends) - 1, side="right") - 1] = True
        return found

    def _quiet_levels(
        self, view: WholeEvents, newlines: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Index into ``_LEVELS`` of events whose anchor says so; all others are unresolved."""
        levels = np.full(len(view.bounds) - 1, _UNRESOLVED, dtype=np.int64)
        columns = self._anchor_columns(view, newlines)
        if columns is None:
            return levels
        words = rows_at(view.data, columns)[:, 0]
        for code, word in enumerate(level.encode() for level in QUIET):
            mask = np.uint64((1 << (8 * len(word))) - 1)
            value = np.uint64(int.from_bytes(word, "little"))
            following = ((words >> np.uint64(8 * len(word))) & np.uint64(0xFF)).astype(np.uint8)
            levels[((words & mask) == value) & ~IS_WORD[following]] = code
        # A header is what has the shape; the file's first line may be none.
        if not view.begins_with_header:
            levels[0] = _UNRESOLVED
        return levels

    def _anchor_columns(
        self, view: WholeEvents, newlines: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64] | None:
        """Offset of the level word of each event; the data's end where there is none."""
        anchor = self._build.shape.anchor
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

    def _count_volumes(
        self,
        view: WholeEvents,
        levels: npt.NDArray[np.int64],
        sizes: npt.NDArray[np.int64],
        line_counts: npt.NDArray[np.int64],
    ) -> None:
        is_first = np.zeros(len(levels), dtype=np.bool_)
        is_first[0] = True
        if not view.begins_with_header:
            is_first[1:2] = True
        for word, mask in enumerate(self._masks.minute_mask):
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
                minute = self._build.minute_of(view.data[start : start + SHAPE_WIDTH])
            level = _LEVELS[cell % width]
            count = int(lines[cell]), int(sums[cell]), int(events[cell])
            self._tally.count(level, minute, *count)
