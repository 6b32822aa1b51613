"""Reads a file whose header lines have a fixed shape, and yields its notable events in portions.

The file is read in large blocks. NumPy and a literal scan find the events that may be notable, and
only these are processed individually. Without ``repeats``, the result equals that of
``reference_reader``. A range includes every event whose first byte is in the range, up to the end
of that event.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from flink_triage.logs.layouts.header_shape import SHAPE_WIDTH, masks_of
from flink_triage.logs.readers.block_arrays import WholeEvents, rows_at, suspects_of
from flink_triage.logs.readers.block_levels import UNRESOLVED, code_of, count_volumes, quiet_levels
from flink_triage.logs.readers.byte_account import Tally
from flink_triage.logs.readers.candidate_events import Candidates
from flink_triage.logs.readers.event_builder import BuiltEvent, ShapedEvents
from flink_triage.logs.readers.reference_reader import ByteSource, Window
from flink_triage.logs.readers.repeated_events import Kind, Repeats
from flink_triage.logs.readers.small_block_reader import whole_events
from flink_triage.logs.readers.stored_text import head_and_tail_bytes, join_cut
from flink_triage.logs.routine import (
    Routine,
    Separator,
    UnbuiltRoutine,
    drop_unbuilt,
    job_of_completed,
)
from flink_triage.logs.text.block_literals import LiteralFinder
from flink_triage.model import Event

# Larger blocks exceed the CPU cache and require new memory pages for each block, which takes a
# fifth of the total time. With smaller blocks, NumPy's call overhead occurs more often.
BLOCK_BYTES = 1024 * 1024

# Below this size, NumPy's call overhead exceeds the cost of a loop over the events.
FEW_BYTES = 16 * 1024

# With larger portions, more events are counted without building them, but more memory is required.
MAX_PORTION_BLOCKS = 16
# Completed checkpoints are trimmed when this many have been collected.
MAX_ROUTINE = 16 * 1024

# Returned instead of a level if the level that was determined for the block applies.
_UNCHANGED = "unchanged"


def read_blocks(
    source: ByteSource,
    window: Window,
    build: ShapedEvents,
    finder: LiteralFinder,
    tally: Tally,
    block_bytes: int = BLOCK_BYTES,
    few_bytes: int = FEW_BYTES,
    repeats: Repeats | None = None,
) -> Iterator[Sequence[Event]]:
    """Read ``source``, which must be positioned at ``window.start``, block by block.

    Yields the events that ``tally`` keeps, in portions; the last portion stays in ``tally``. If
    given, ``repeats`` counts repeated events that do not have to be built; call its ``begin``
    first.
    """
    return _Blocks(source, window, build, finder, tally, block_bytes, few_bytes, repeats).run()


class _Blocks:
    """The state of one pass over a file, such as the buffer's offset and line number."""

    def __init__(
        self,
        source: ByteSource,
        window: Window,
        build: ShapedEvents,
        finder: LiteralFinder,
        tally: Tally,
        block_bytes: int,
        few_bytes: int,
        repeats: Repeats | None,
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
        # An event of this size exceeds the event limit even if it ends with a partial header.
        self._giant_bytes = max(2 * block_bytes, build.settings.max_event_bytes + 2 * SHAPE_WIDTH)
        self._cut_bytes = min(build.settings.max_event_bytes, build.settings.max_line_bytes)
        self._repeats = repeats
        # Blocks per portion. The first portions are small, because forms are learned from a portion
        # only after it was returned.
        self._portion_blocks = 1
        self._blocks = 0
        # The completed checkpoints of the portion.
        self._routine: list[UnbuiltRoutine] = []

    def run(self) -> Iterator[Sequence[Event]]:
        yield from self._read()
        self._settle()

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
                # The data after the oversized event may contain many events and be the last block.
                carry = self._take(self._take_giant(carry))
            if self._is_portion():
                self._settle()
                yield self._tally.take()

    def _is_portion(self) -> bool:
        if self._repeats is None:
            return self._tally.is_portion
        self._blocks += 1
        is_due = self._blocks >= self._portion_blocks
        if is_due or self._tally.is_portion:
            self._blocks = 0
            self._portion_blocks = min(2 * self._portion_blocks, MAX_PORTION_BLOCKS)
            return True
        return False

    def _settle(self) -> None:
        """Build the events that can be selected only at the end of the portion."""
        if self._repeats is not None:
            for offset, line, data in self._repeats.lasts():
                self._keep_notable(offset, line, data)
            self._tally.keep_counted(self._repeats.take_counted_bytes())
        self._trim_routine()
        self._keep_routine()

    def _trim_routine(self) -> None:
        """Drop each completed checkpoint between two others of the same job and minute."""
        lasts: list[tuple[int, Separator]] = []
        if self._repeats is not None:
            self._tally.inner_offsets |= self._repeats.inner_offsets
            lasts = [(offset, Separator(None)) for offset, _, _ in self._repeats.lasts()]
        self._routine = drop_unbuilt(self._routine, [*self._tally.separators, *lasts])

    def _take(self, data: bytes) -> bytes:
        """Read the events of the range except the last; return the rest of ``data``."""
        take = self._take_few if len(data) < self._few_bytes else self._take_events
        taken = take(data) if data else 0
        self._offset += taken
        return data[taken:]

    def _finish(self, data: bytes) -> None:
        """Close the last event at the end of the source, or hold it back if the file is active."""
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
        """Count a single event, and keep it if it is notable.

        ``is_open`` means that its last line has no newline.
        """
        shape = self._build.shape
        minute = self._build.minute_of(data) if shape.is_header(data) else None
        built = self._build.build(offset, size, self._line, data, is_cut=is_cut)
        self._tally.newline_count += newlines
        self._line += newlines
        self._tally.count(built.level, minute, newlines + is_open, size, 1)
        if built.event is None:
            self._tally.counted_bytes += size
        else:
            self._tally.keep(built.event, built.redactions, built.decode_errors)

    def _take_giant(self, carry: bytes) -> bytes:
        """Read to the end of an event that exceeds the buffer; return the data after it.

        Only the head and tail of the event are kept.
        """
        settings = self._build.settings
        head_bytes, tail_bytes = head_and_tail_bytes(settings)
        head = carry[:head_bytes]
        # The tail may already contain the start of the next header, which must be returned.
        kept_bytes = tail_bytes + SHAPE_WIDTH + 1
        tail = carry[-kept_bytes:]
        size, newlines = len(carry), carry.count(b"\n")
        # A header may span two reads, so the overlap is searched again.
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
        """End the oversized event at ``found`` in ``block``.

        If ``found`` is negative, the event ends in ``overlap``, which precedes ``block``.
        """
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
        """Read the events of ``data`` in the range, except the last, and return their size."""
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
        levels = quiet_levels(view, newlines, self._build.shape)
        sizes = view.bounds[1:] - view.bounds[:-1]
        line_counts = view.lines[1:] - view.lines[:-1]
        # To judge an event means to determine whether it is notable. Except for these, events are
        # judged only if they contain a literal.
        is_judged = (levels == UNRESOLVED) | (line_counts > 1) | (sizes > self._cut_bytes)
        is_candidate = is_judged | suspects_of(view, is_judged, self._finder)
        self._tally.newline_count += int(view.lines[-1])
        self._tally.counted_bytes += int(view.bounds[-1])
        found = Candidates(view, is_candidate, is_judged)
        found.leave_out(self._take_routine)
        if self._repeats is not None:
            found.find_repeats(self._build, self._finder, self._repeats)
        for index, start, line, data, judged, key in found.singles():
            level = self._read_event(start, line, data, judged, key)
            if level is not _UNCHANGED:
                levels[index] = code_of(level)
        for kind, run in found.runs:
            levels[found.indexes[run]] = self._read_run(found, kind, run.tolist())
        count_volumes(view, levels, sizes, line_counts, self._build, self._tally)
        if len(self._routine) >= MAX_ROUTINE:
            self._trim_routine()
            if len(self._routine) > MAX_ROUTINE // 2:
                self._keep_routine()

    def _read_run(self, found: Candidates, kind: Kind, run: list[int]) -> int | list[int]:
        """Count plain events of one kind, or read them individually; return their level codes."""
        assert self._repeats is not None
        starts, lines = found.starts[run].tolist(), found.lines[run].tolist()
        events = [found.pieces[index] for index in run]
        form = self._repeats.take_run(
            kind, events, self._offset + starts[-1], self._line + lines[-1]
        )
        if form is not None:
            return code_of(form.level)
        return [
            code_of(self._read_event(start, line, data, True, self._build.header_of(data)))
            for start, line, data in zip(starts, lines, events, strict=True)
        ]

    def _read_event(
        self, start: int, line: int, data: bytes, judged: bool, key: bytes | None
    ) -> str | None:
        """Keep or count an event, and return its level.

        If ``judged`` is false, the event is built only if it contains a literal. Otherwise, the
        result is ``_UNCHANGED``.
        """
        offset, line = self._offset + start, self._line + line
        repeats = self._repeats
        if repeats is not None and key is not None:
            known = repeats.take(key, data, offset, line)
            if known is not None:
                return known.level
        built = self._judge(offset, line, data, judged)
        if built is None:
            return _UNCHANGED
        if repeats is not None and key is not None and built.event is not None:
            if built.redactions or built.decode_errors or built.event.is_truncated:
                repeats.distrust(key)
            else:
                repeats.expect(key, data, offset, built.level)
        return built.level

    def _judge(self, offset: int, line: int, data: bytes, judged: bool) -> BuiltEvent | None:
        """Build an event, and keep it if it is notable.

        ``None`` if ``judged`` is false and the event contains no literal: it is not notable.
        """
        if not judged and not self._finder.contains(data):
            return None
        built = self._build.build(offset, len(data), line, data, has_literal=not judged or None)
        if built.event is not None:
            self._tally.keep(built.event, built.redactions, built.decode_errors)
            self._tally.counted_bytes -= len(data)
        return built

    def _take_few(self, data: bytes) -> int:
        """Like ``_take_events``, but faster for small amounts of data."""
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
            if not is_judged and index not in suspects:
                continue
            start, end = events.bounds[index : index + 2]
            line, event = events.lines[index], data[start:end]
            if is_judged or not self._take_routine(start, line, event):
                level = self._read_event(start, line, event, is_judged, None)
                if level is not _UNCHANGED:
                    levels[index] = level
        events.count(levels, self._build, self._tally)
        self._line += events.lines[-1]
        return events.bounds[-1]

    def _take_routine(self, start: int, line: int, data: bytes) -> bool:
        """Store an event that reports a completed checkpoint for later; false for other events."""
        job = job_of_completed(data)
        minute = self._build.minute_of(data) if job is not None else None
        if job is None or minute is None:
            return False
        role = Routine(job, (job, minute))
        self._routine.append(UnbuiltRoutine(self._offset + start, self._line + line, data, role))
        return True

    def _keep_routine(self) -> None:
        for one in self._routine:
            self._keep_notable(one.offset, one.line, one.data)
        self._routine = []

    def _keep_notable(self, offset: int, line: int, data: bytes) -> None:
        built = self._build.build(offset, len(data), line, data, has_literal=True)
        if built.event is not None:
            self._tally.keep(built.event, built.redactions, built.decode_errors)
            self._tally.counted_bytes -= len(data)
