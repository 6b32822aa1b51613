"""Assembles events from lines of any kind; this general reader inspects the text of each line.

It reads all files without a header shape, for example exports of log stores, and files with
carriers, several layouts, custom layouts, other encodings, or JSON records that do not begin with
their timestamp. It also reads text pasted from a ticket, in which events may have no header.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, tzinfo

from flink_triage.logs.detect.prose import mentions_failure
from flink_triage.logs.formats.carriers import Peel, Peeled
from flink_triage.logs.formats.pasted_lines import record_behind_label, unmarked, whole_frame
from flink_triage.logs.inputs.path_names import is_output
from flink_triage.logs.layouts.custom_layouts import OwnLayouts
from flink_triage.logs.layouts.headers import (
    WARN_AND_ABOVE,
    Header,
    parse_header,
    with_message_below,
)
from flink_triage.logs.layouts.json_lines import parse_json_line
from flink_triage.logs.lifecycle import parse_lifecycle
from flink_triage.logs.operator_status import parse_status
from flink_triage.logs.readers.byte_account import Tally
from flink_triage.logs.readers.event_end import OpenEvent
from flink_triage.logs.readers.logical_lines import Logical, is_fence, joined
from flink_triage.logs.readers.stored_text import store_names, store_texts
from flink_triage.logs.text.block_literals import LiteralFinder
from flink_triage.logs.text.physical_lines import PhysicalLine
from flink_triage.logs.text.redact import both
from flink_triage.model import Event
from flink_triage.settings import Settings

# Maximum number of open events per file, one per stream; if there are more, the event whose last
# line is oldest is closed.
_MAX_OPEN_SOURCES = 256
_BLANK = ("", " ", "\t")


class LineEvents:
    """Assembles the events of one file from the lines passed to ``read``."""

    def __init__(
        self,
        path: str,
        carriers: Sequence[Peel],
        finder: LiteralFinder,
        settings: Settings,
        default_timezone: tzinfo,
        tally: Tally,
        *,
        is_document: bool = False,
    ) -> None:
        self._path = path
        # In a document that discusses failures, events without a timestamp are only counted.
        self._is_document = is_document
        self._is_output = is_output(path)
        self._carriers = carriers
        self._finder = finder
        self._settings = settings
        self._timezone = default_timezone
        self._tally = tally
        self._open: OrderedDict[str, OpenEvent] = OrderedDict()
        self._minutes: dict[str, datetime | None] = {}
        self._layout: str | None = None
        self._personal = settings.reading.redacts_personal
        self.own = OwnLayouts(settings.reading.layouts, settings.regex_timeout_seconds)

    def read(self, lines: Iterable[PhysicalLine], *, is_active: bool) -> Iterator[Sequence[Event]]:
        """Read all lines and yield the events in portions; the last portion stays in the tally.

        At the end of an active file, the open events at the end of the file are held back. An open
        event that lines of other events follow is closed, because the next run continues at a
        single offset.
        """
        number = end = 0
        for line in joined(lines, self._carriers):
            number = self._add(line, number if line.number is None else line.number - 1)
            end = line.offset + line.size
            if self._tally.is_portion:
                yield self._tally.take()
        # If the last line ends inside its prefix, its stream is unknown, and it forms a separate
        # event.
        for last in sorted(self._open.values(), key=lambda event: -event.offset):
            is_active = is_active and last.offset + last.size == end
            if is_active:
                end = last.offset
                self._tally.held_back_bytes += last.size
            else:
                self._close(last, is_last=True)
        self._open.clear()

    def _add(self, line: Logical, number: int) -> int:
        peeled = line.peeled
        source = peeled.source
        current = self._open.get(source)
        if is_fence(peeled.text):
            # The code block starts or ends here; the fence itself has no content.
            line.peeled = Peeled("", source, False, peeled.times)
            closing = self._open.pop(source, None) or OpenEvent(line, number + 1, None, None)
            if closing is current:
                closing.add(line, self._settings)
            self._close(closing)
            return number + line.newline_count
        if "`" in peeled.text or "**" in peeled.text:
            line.peeled = peeled = replace(peeled, text=unmarked(peeled.text))
        if not self._is_document and (frame := whole_frame(peeled.text)) is not None:
            line.peeled = peeled = replace(peeled, text=frame)
        header = None
        if current is None or not current.is_continued_by(peeled.text):
            header = self._header(peeled.text)
        if header is not None or current is None or current.is_ended_by(peeled.text):
            if current is not None:
                del self._open[source]
                self._close(current)
            stated_at = header.logged_at if header is not None else None
            logged_at = stated_at or peeled.carried_at(self._timezone)
            current = OpenEvent(line, number + 1, header, logged_at)
            current.minute = self._minute(source, logged_at)
            self._open[source] = current
            if len(self._open) > _MAX_OPEN_SOURCES:
                self._close(self._open.popitem(last=False)[1])
        else:
            current.add(line, self._settings)
            self._open.move_to_end(source)
        return number + line.newline_count

    def _header(self, text: str) -> Header | None:
        header = self.own.parse(text, self._timezone)
        if header is not None:
            return header
        # No layout starts with a space or tab, but most lines of a stack trace do.
        if text[:1] in _BLANK:
            return None
        if text.startswith("{"):
            header = parse_json_line(text, self._timezone)
        else:
            header = parse_header(text, self._timezone, self._layout)
            bare = text.lstrip("\ufeff\u200b`> ")
            if header is None and len(bare) < len(text):
                header = parse_header(bare, self._timezone, self._layout)
            if header is None and (record := record_behind_label(text)) is not None:
                header = parse_header(record, self._timezone, self._layout)
        if header is None:
            return None
        self._layout = header.layout
        return header

    def _minute(self, source: str, logged_at: datetime | None) -> datetime | None:
        """The minute of this event, or else of the last earlier event of the stream with a time."""
        if logged_at is not None:
            self._minutes[source] = logged_at.replace(second=0, microsecond=0)
        return self._minutes.get(source)

    def _close(self, event: OpenEvent, *, is_last: bool = False) -> None:
        tally = self._tally
        header, number = event.header, event.number
        message, continuation = event.texts()
        is_last_word = is_last and self._is_output and self._is_plain(event, message, continuation)
        if is_last_word:
            # The last line that a process printed is kept, even if it mentions no failure.
            message, continuation = event.last_line, None
            number += event.last_line_offset
        if header is not None and continuation is not None:
            below, _, rest = continuation.partition("\n")
            full_header = with_message_below(header, below)
            if full_header is not None:
                header, number = full_header, number + 1
                message, continuation = full_header.message, rest or None
        level = header.level if header else None
        tally.newline_count += event.newline_count
        tally.count(level, event.minute, event.line_count, event.size, 1)
        if not (is_last_word or self._is_notable(event, level, message, continuation)):
            tally.counted_bytes += event.size
            return
        message, continuation, redactions = store_texts(
            message, continuation, personal=self._personal
        )
        logger, thread, in_names = store_names(header, personal=self._personal)
        lifecycle = parse_lifecycle(message, logger)
        if lifecycle is None and header is None:
            lifecycle = parse_status("\n".join(filter(None, (message, continuation))))
        tally.keep(
            Event(
                self._path,
                event.offset,
                event.size,
                number,
                event.logged_at,
                level,
                logger,
                thread,
                message,
                continuation,
                header.job_id if header else None,
                lifecycle,
                event.is_truncated,
            ),
            both(redactions, in_names),
            event.decode_errors,
        )

    def _is_plain(self, event: OpenEvent, message: str, continuation: str | None) -> bool:
        """Whether the event has no header, no stack trace, and no signature or lifecycle literal.

        If a plain event mentions a failure, its last line, which is kept, also mentions one. A
        document has no plain events.
        """
        if self._is_document or event.header is not None or event.holds_trace:
            return False
        text = message if continuation is None else f"{message}\n{continuation}"
        if mentions_failure(text) and not mentions_failure(event.last_line):
            return False
        return event.last_line != "" and not self._finder.contains(text.encode("utf-8", "replace"))

    def _is_notable(
        self, event: OpenEvent, level: str | None, message: str, continuation: str | None
    ) -> bool:
        if self._is_document and (event.header is None or event.header.logged_at is None):
            # A document may quote messages such as "Error: ...", which are parsed as headers.
            return False
        if level in WARN_AND_ABOVE or event.holds_trace:
            return True
        if event.header is not None and continuation is not None:
            return True
        text = message if continuation is None else f"{message}\n{continuation}"
        if event.header is None and mentions_failure(text):
            return True
        return self._finder.contains(text.encode("utf-8", "replace"))
