"""Reads the notable events of a byte range, and accounts for every byte."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from datetime import UTC, tzinfo
from typing import BinaryIO

from flink_triage.fold_grains import Grain
from flink_triage.logs.detect.documents import DOCUMENT
from flink_triage.logs.formats.carriers import carriers_named
from flink_triage.logs.formats.log_store_exports import EXPORTS, read_export
from flink_triage.logs.inputs.compression import DecompressedStream
from flink_triage.logs.inputs.files import open_binary
from flink_triage.logs.layouts.header_shape import Shape, shape_named
from flink_triage.logs.lifecycle import LITERALS
from flink_triage.logs.readers.block_reader import BLOCK_BYTES, FEW_BYTES, read_blocks
from flink_triage.logs.readers.byte_account import Tally
from flink_triage.logs.readers.event_builder import ShapedEvents
from flink_triage.logs.readers.json_records import JsonEvents
from flink_triage.logs.readers.line_reader import LineEvents
from flink_triage.logs.readers.reference_reader import ByteSource, Window, read_lines
from flink_triage.logs.readers.repeated_events import Repeats
from flink_triage.logs.text.block_literals import finder_of
from flink_triage.logs.text.physical_lines import PhysicalLine, physical_lines
from flink_triage.model import ByteRange, Event, FileProfile, Quarantined, RangeScan
from flink_triage.settings import Settings


class Scanner:
    """Reads byte ranges; create one per process, because it compiles its literals.

    ``literals`` are ``SignaturePack.anchors``; the lifecycle literals are added. With
    ``line_by_line``, the slow reference reader reads files with a header shape.
    """

    def __init__(
        self,
        literals: Sequence[str],
        settings: Settings,
        *,
        block_bytes: int = BLOCK_BYTES,
        few_bytes: int = FEW_BYTES,
        line_by_line: bool = False,
    ) -> None:
        self._finder = finder_of(tuple(sorted({*literals, *LITERALS})))
        self._settings = settings
        self._block_bytes = block_bytes
        self._few_bytes = few_bytes
        self._line_by_line = line_by_line

    def scan(
        self,
        byte_range: ByteRange,
        *,
        is_active: bool = False,
        default_timezone: tzinfo = UTC,
    ) -> RangeScan:
        """The result for the range with all notable events; see ``read``."""
        tally = Tally(is_whole=True)
        portions = self.read(
            byte_range, tally, is_active=is_active, default_timezone=default_timezone
        )
        return tally.finish(byte_range, [event for events in portions for event in events])

    def read(
        self,
        byte_range: ByteRange,
        tally: Tally,
        *,
        is_active: bool = False,
        default_timezone: tzinfo = UTC,
        raw: BinaryIO | None = None,
        repeats: Repeats | None = None,
        grain: Grain | None = None,
    ) -> Iterator[Sequence[Event]]:
        """Yield the notable events that start in the range; ``tally`` accounts for every byte.

        The events are yielded in portions. With ``is_active``, the last event of the file is held
        back, because it may continue, except in an export. If the file is already open, pass it as
        ``raw``, positioned at its start; it is left open. With ``repeats`` and ``grain``, events
        that this grain only counts may be counted instead of yielded. If reading fails, the rest of
        the range is quarantined, with the reason in ``tally.problems``; ``OSError`` is not raised.
        """
        profile = byte_range.profile
        try:
            if profile.problem is not None:
                tally.quarantine_rest(byte_range, profile.problem)
            else:
                with nullcontext(raw) if raw is not None else open_binary(profile.path) as file:
                    yield from self._read_open(
                        file, byte_range, tally, is_active, default_timezone, repeats, grain
                    )
        except OSError as error:
            tally.read_error = error
            tally.quarantine_rest(byte_range, (error.strerror or str(error)).lower())
        yield tally.take()

    def _read_open(
        self,
        raw: BinaryIO,
        byte_range: ByteRange,
        tally: Tally,
        is_active: bool,
        default_timezone: tzinfo,
        repeats: Repeats | None,
        grain: Grain | None,
    ) -> Iterator[Sequence[Event]]:
        profile = byte_range.profile
        shape = shape_named(profile.layout)
        limit = self._settings.max_file_bytes
        if profile.compression == "none":
            # A growing file is read up to its size in the profile.
            limit = min(limit, profile.size_bytes)
        source: ByteSource
        if byte_range.is_continued:
            start = byte_range.start
            source = _after(raw, start, limit, profile.compression)
        elif byte_range.start > 0:
            source, start = _seek(raw, byte_range, limit, shape)
        else:
            source, start = DecompressedStream(raw, limit, profile.compression), 0
        tally.began_at = start
        if shape is not None:
            window = Window(start, byte_range.end, is_active)
            build = self._builder(profile, shape, default_timezone)
            if build.time_columns is None or grain is None:
                repeats = None
            elif repeats is not None:
                repeats.begin(build, grain, profile.process)
            yield from self._read_shaped(source, window, build, tally, repeats)
        else:
            events = LineEvents(
                profile.path,
                carriers_named(profile.carrier),
                self._finder,
                self._settings,
                default_timezone,
                tally,
                is_document=profile.layout == DOCUMENT,
            )
            is_export = _export_of(profile) is not None
            lines = self._lines(source, profile, start)
            # An export is written at once, and its order may be reversed, so nothing is held back.
            yield from events.read(lines, is_active=is_active and not is_export)
            if events.own.problem is not None:
                tally.problems.append(Quarantined(profile.path, events.own.problem))
        if isinstance(source, DecompressedStream) and source.problem:
            tally.read_error = source.read_error
            is_partial = profile.compression != "none" or profile.size_bytes > limit
            if is_partial or "unreadable" in source.problem:
                tally.problems.append(Quarantined(profile.path, f"partial: {source.problem}"))
            if profile.compression == "none" and "unreadable" in source.problem:
                # Reading stopped here, so the rest of the file is quarantined.
                left = limit - start - tally.accounted_bytes
                tally.quarantined_bytes = max(left, 0)

    def _lines(
        self, source: ByteSource, profile: FileProfile, start: int
    ) -> Iterable[PhysicalLine]:
        kind = _export_of(profile)
        if kind is not None:
            return read_export(_read_whole(source), kind, profile.encoding)
        limit = self._settings.max_line_bytes
        return physical_lines(source, profile.encoding, limit, first_offset=start)

    def _builder(
        self, profile: FileProfile, shape: Shape, default_timezone: tzinfo
    ) -> ShapedEvents:
        events = JsonEvents if shape.is_json else ShapedEvents
        return events(
            profile.path,
            shape,
            self._finder,
            self._settings,
            default_timezone,
            is_general=self._line_by_line,
        )

    def _read_shaped(
        self,
        source: ByteSource,
        window: Window,
        build: ShapedEvents,
        tally: Tally,
        repeats: Repeats | None,
    ) -> Iterator[Sequence[Event]]:
        if self._line_by_line:
            return read_lines(source, window, build, tally)
        return read_blocks(
            source, window, build, self._finder, tally, self._block_bytes, self._few_bytes, repeats
        )


def _export_of(profile: FileProfile) -> str | None:
    kind = profile.carrier.partition("+")[0]
    return kind if kind in EXPORTS else None


def _read_whole(source: ByteSource) -> bytes:
    parts: list[bytes] = []
    while block := source.read(1024 * 1024):
        parts.append(block)
    return b"".join(parts)


def _after(raw: BinaryIO, start: int, limit: int, compression: str) -> ByteSource:
    """The source, positioned at ``start``, where an earlier run stopped reading."""
    if compression == "none":
        raw.seek(start)
        return _Rest(raw, b"", max(limit - start, 0))
    source = DecompressedStream(raw, limit, compression)
    left = start
    while left > 0 and (skipped := source.read(min(left, 1024 * 1024))):
        left -= len(skipped)
    return source


class _Rest:
    """The rest of an uncompressed file up to a limit, preceded by bytes that were already read."""

    def __init__(self, raw: BinaryIO, pending: bytes, left: int) -> None:
        self._raw = raw
        self._pending = pending
        self._left = left

    def read(self, size: int, /) -> bytes:
        if self._pending:
            part, self._pending = self._pending[:size], self._pending[size:]
            return part
        part = self._raw.read(min(size, self._left))
        self._left -= len(part)
        return part


def _seek(
    raw: BinaryIO, byte_range: ByteRange, limit: int, shape: Shape | None
) -> tuple[ByteSource, int]:
    """The source and the offset of the first header in a range that starts inside a file.

    If the range contains no header, the source is empty, and the offset is the end of the range or
    file.
    """
    if shape is None:
        raise ValueError(f"range of {byte_range.profile.path!r}: start must be 0 without a shape")
    # The byte before the range shows whether the range starts at the start of a line.
    position = byte_range.start - 1
    raw.seek(position)
    left = max(limit - position, 0)
    pending = b""
    while True:
        if byte_range.end is not None and position + 1 >= byte_range.end:
            return _Rest(raw, b"", 0), byte_range.end
        block = raw.read(min(1024 * 1024, left))
        left -= len(block)
        pending += block
        found = shape.next_header(pending, 0)
        if found >= 0:
            return _Rest(raw, pending[found:], left), position + found
        if not block:
            return _Rest(raw, b"", 0), position + len(pending)
        # A header may start in the last bytes, so these are searched again with the next block.
        drop = max(len(pending) - len(shape.columns), 0)
        pending = pending[drop:]
        position += drop
