"""Builds events from their bytes in files with a header shape, and determines which are notable."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from functools import lru_cache

from flink_triage.logs.layouts.header_shape import SHAPE_WIDTH, Shape, sub_minute_columns
from flink_triage.logs.layouts.headers import (
    WARN_AND_ABOVE,
    Header,
    canonical_level,
    layout_named,
    parse_header,
    parts_of_match,
    with_message_below,
)
from flink_triage.logs.layouts.timestamps import (
    match_timestamp,
    parse_timestamp,
    time_of_columns,
    timestamp_of,
)
from flink_triage.logs.lifecycle import parse_lifecycle
from flink_triage.logs.readers.stored_text import (
    TextCache,
    cut_event,
    store_names,
    store_text,
    store_texts,
)
from flink_triage.logs.text.block_literals import LiteralFinder
from flink_triage.logs.text.decode import clean, decode, plain_text
from flink_triage.logs.text.redact import NONE, Redactions, both, is_open_ended
from flink_triage.logs.text.trace_line_kinds import holds_trace
from flink_triage.model import Event
from flink_triage.settings import Settings

# The separator before the message in most layouts.
MESSAGE_FOLLOWS = b" - "
_MAX_HEADERS = 4096
# The whitespace characters of `bytes.isspace`.
_BLANKS = " \t\n\r\x0b\f"


@dataclass(frozen=True, slots=True)
class BuiltEvent:
    """The result of judging an event; ``event`` is ``None`` if it is not notable."""

    event: Event | None
    level: str | None
    redactions: Redactions = field(default_factory=lambda: NONE)
    decode_errors: int = 0


class ShapedEvents:
    """Builds the events of one file whose header lines have a fixed shape.

    With ``is_general``, every event takes the general path, which defines the correct result.
    """

    def __init__(
        self,
        path: str,
        shape: Shape,
        finder: LiteralFinder,
        settings: Settings,
        default_timezone: tzinfo,
        *,
        is_general: bool = False,
    ) -> None:
        self._path = path
        self.shape = shape
        self._finder = finder
        self.settings = settings
        self._timezone = default_timezone
        self._personal = settings.reading.redacts_personal
        self._continuations = TextCache(personal=self._personal)
        layout = layout_named(shape.layout)
        # The fast path does not mask personal data.
        is_general = is_general or self._personal
        self.time_columns = None if is_general else shape.time_columns
        # Whether timestamps sort in the same order as their text: false if clocks may be set back
        # in the time zone.
        self.is_clock_steady = default_timezone.utcoffset(None) is not None
        self._after_time = layout.after_time if layout is not None else None
        # For each text between timestamp and message: whether it completes the header, regardless
        # of the message.
        self._headers: dict[bytes, bool] = {}
        anchor = shape.anchor or ""
        self._level_column = int(anchor[1:]) if anchor.startswith("@") else None
        columns = sub_minute_columns(shape.columns)
        self._below_minute = (min(columns), max(columns) + 1) if columns else (0, 0)
        self._no_seconds = shape.columns[slice(*self._below_minute)].replace("9", "0")
        self._time_start = shape.columns.find("9")
        # A fraction of variable length is not part of the shape, and neither is the UTC offset
        # after it.
        is_cut = shape.is_json and shape.time_columns is None
        self._minute_width = SHAPE_WIDTH if is_cut else len(shape.columns)
        self._whole_bytes = min(settings.max_event_bytes, settings.max_line_bytes)

    @property
    def has_level_column(self) -> bool:
        """Whether the level is in the same columns of every event."""
        return self._level_column is not None

    def header_of(self, data: bytes) -> bytes | None:
        """The header of ``data``, with blanks in place of its timestamp.

        One-line events with the same header have the same level, logger, thread, and job. ``None``
        if the message may affect how the header is parsed, or if the layout is not supported.
        """
        if self.time_columns is None or self._after_time is None:
            return None
        after = self.time_columns[2]
        end = data.find(MESSAGE_FOLLOWS, after)
        start = end + len(MESSAGE_FOLLOWS)
        if end < 0 or data.find(MESSAGE_FOLLOWS, start) >= 0:
            return None
        if self._level_column is None and data.find(b"]", start) >= 0:
            return None
        header = data[after:start]
        is_whole = self._headers.get(header)
        if is_whole is None:
            text = data.decode("latin-1")
            match = self._after_time.match(text, after, len(text) - 1)
            is_whole = match is not None and match.start("message") == start
            if len(self._headers) >= _MAX_HEADERS:
                self._headers.clear()
            self._headers[header] = is_whole
        return b" " * after + header if is_whole else None

    def minute_of(self, line: bytes) -> datetime | None:
        """The minute in the columns of a header line; ``None`` if its timestamp is invalid."""
        text = line[: self._minute_width].decode("latin-1")
        start, end = self._below_minute
        # One cache entry serves all seconds of a minute; 60 is not a valid second.
        if start < end <= len(text) and text[start] < "6":
            text = f"{text[:start]}{self._no_seconds}{text[end:]}"
        return _minute(text, self._time_start, self._timezone)

    def time_of(self, text: bytes) -> datetime | None:
        """The UTC time of the timestamp at the start of ``text``, or ``None``."""
        return parse_timestamp(text.decode("latin-1"), self._timezone)

    def build(
        self,
        offset: int,
        size: int,
        line: int,
        data: bytes,
        *,
        is_cut: bool = False,
        has_literal: bool | None = None,
    ) -> BuiltEvent:
        """Judge one event: determine whether it is notable, and if so, build it.

        ``data`` is the whole event, or its head and tail if ``is_cut``. ``has_literal`` is the
        result of an earlier literal scan of the whole event, if any.
        """
        if not is_cut and len(data) <= self._whole_bytes:
            built = self._build_regular(offset, size, line, data, has_literal)
            if built is not None:
                return built
        if not is_cut:
            data, is_cut = cut_event(data, self.settings)
            has_literal = None if is_cut else has_literal
        head, _, rest = data.partition(b"\n")
        if not self.shape.is_header(head):
            return self._headless(offset, size, line, data, is_cut)
        text, errors = decode(head)
        header, rest = self._parts(clean(text), head, rest.rstrip(b"\r\n"))
        if rest and not header.message.strip():
            below, _, behind = rest.partition(b"\n")
            text, more = decode(below)
            full_header = with_message_below(header, clean(text))
            if full_header is not None:
                header, rest, line = full_header, behind, line + 1
                errors += more
        continues = bool(rest) and not rest.isspace()
        if not (continues or header.level in WARN_AND_ABOVE):
            if has_literal is None:
                has_literal = self._has_literal(data, header)
            if not has_literal:
                return BuiltEvent(None, header.level)
        message, continuation, redactions, more = self._texts(header, rest if continues else b"")
        errors += more
        logger, thread, in_names = store_names(header, personal=self._personal)
        event = Event(
            self._path,
            offset,
            size,
            line,
            header.logged_at,
            header.level,
            logger,
            thread,
            message,
            continuation,
            header.job_id,
            parse_lifecycle(message, header.logger),
            is_cut,
        )
        return BuiltEvent(event, header.level, both(redactions, in_names), errors)

    def _build_regular(
        self, offset: int, size: int, line: int, data: bytes, has_literal: bool | None
    ) -> BuiltEvent | None:
        """Judge an event whose header has the layout of the file and whose text needs no change.

        ``None`` for all other events, which are rare and take the general path.
        """
        if self.time_columns is None or self._after_time is None:
            return None
        text = plain_text(data) if self.shape.is_header(data) else None
        if text is None:
            return None
        end = text.find("\n")
        end = len(text) if end < 0 else end
        second, fraction, after = self.time_columns
        match = self._after_time.match(text, after, end)
        if match is None:
            return None
        level, logger, thread, message, job_id = parts_of_match(match)
        if self._level_column is None:
            word = self.shape.level_of(data[:end])
            if word is not None and canonical_level(word.decode()) != level:
                return None
        elif match.start("level") != self._level_column:
            return None
        continuation: str | None = text[end + 1 :].rstrip("\n")
        if not continuation or not continuation.strip(_BLANKS):
            continuation = None
        elif not message.strip(_BLANKS):
            return None
        if continuation is None and level not in WARN_AND_ABOVE:
            if has_literal is None:
                has_literal = self._finder.contains(data)
            if not has_literal:
                return BuiltEvent(None, level)
        event = Event(
            self._path,
            offset,
            size,
            line,
            time_of_columns(text[second : fraction - 1], text[fraction:after], self._timezone),
            level,
            logger,
            thread,
            message,
            continuation,
            job_id,
            parse_lifecycle(message, logger),
        )
        return BuiltEvent(event, level)

    def _texts(self, header: Header, rest: bytes) -> tuple[str, str | None, Redactions, int]:
        """Message, continuation, redactions, and decode errors of an event's stored text."""
        if rest and is_open_ended(clean(header.message)):
            text, errors = decode(rest)
            return *store_texts(header.message, text, personal=self._personal), errors
        message, redactions = store_text(header.message, personal=self._personal)
        if not rest:
            return message, None, redactions, 0
        stored = self._continuations.get(rest)
        return message, stored.text, both(redactions, stored.redactions), stored.decode_errors

    def _has_literal(self, data: bytes, _header: Header) -> bool:
        return self._finder.contains(data)

    def _parts(self, text: str, line: bytes, rest: bytes) -> tuple[Header, bytes]:
        """The header on the first line of an event, decoded as ``text``, and the bytes below it."""
        return self._header(text, line), rest

    def _header(self, text: str, line: bytes) -> Header:
        level = self.shape.level_of(line)
        header = parse_header(text, self._timezone, self.shape.layout)
        canonical = canonical_level(level.decode()) if level else None
        if header is None:
            match = match_timestamp(text, self._time_start)
            logged_at = timestamp_of(match, self._timezone) if match else None
            message = text[len(self.shape.columns) :].strip()
            return Header("unknown", logged_at, canonical, None, None, message)
        if canonical is None or canonical == header.level:
            return header
        return Header(
            header.layout,
            header.logged_at,
            canonical,
            header.logger,
            header.thread,
            header.message,
            header.job_id,
        )

    def _headless(self, offset: int, size: int, line: int, data: bytes, is_cut: bool) -> BuiltEvent:
        """Judge the text before the first header.

        Usually, it is the rest of an event that started before a log rotation, or the output of a
        start script. It is notable if it contains a literal or a stack trace.
        """
        text, errors = decode(data)
        text = clean(text)
        if not (self._finder.contains(data) or holds_trace(text)):
            return BuiltEvent(None, None)
        text, redactions = store_text(text.strip("\n"), personal=self._personal)
        message, _, continuation = text.partition("\n")
        event = Event(
            self._path,
            offset,
            size,
            line,
            None,
            None,
            None,
            None,
            message,
            continuation if continuation.strip() else None,
            None,
            parse_lifecycle(message, None),
            is_cut,
        )
        return BuiltEvent(event, None, redactions, errors)


@lru_cache(maxsize=4096)
def _minute(columns: str, start: int, default_timezone: tzinfo) -> datetime | None:
    match = match_timestamp(columns, start)
    moment = timestamp_of(match, default_timezone) if match else None
    return moment.replace(second=0, microsecond=0) if moment else None
