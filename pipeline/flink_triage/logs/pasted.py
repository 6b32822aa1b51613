"""Lines of any kind in, events out: the general reader, which knows only what each line shows.

It reads what the block reader cannot: carriers, JSON, several layouts in one file, and text pasted
from a ticket, where no header says where an event begins.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, tzinfo

from flink_triage.model import Event
from flink_triage.settings import Settings

from .carriers import Peel, Peeled
from .layouts.headers import (
    WARN_AND_ABOVE,
    Header,
    is_below,
    parse_header,
    with_message_below,
)
from .layouts.json_lines import parse_json_line
from .layouts.own import OwnLayouts
from .lifecycle import parse_lifecycle
from .literals import LiteralFinder
from .logical import Logical, is_fence, joined
from .marks import record_behind_label, unmarked
from .physical import PhysicalLine
from .prose import mentions_failure
from .redact import both
from .tally import Tally
from .text import store_names, store_texts
from .throwables import LineKind, kind_of
from .trace_lines import TRACEBACK, is_elision

# Streams that share a file; beyond this the one longest silent is closed.
_MAX_OPEN_SOURCES = 256
_SECTION = re.compile(
    r"^(?:Container: container_|LogType: ?|LogLength: ?\d|Log Length: ?\d|Log Type: ?|"
    r"LogLastModifiedTime: ?|Log Upload Time: ?|"
    r"LogContents:|Log Contents:|End of LogType: ?|={20,}$|\*{20,}$)"
)
# What the JVM itself prints of an exception that nobody caught.
_OF_NO_LOGGER = ('Exception in thread "', "Exception: java.lang.")
_BLANK = ("", " ", "\t")
_WORDS = re.compile(r"[^\W\d_]{2,}")


class PastedEvents:
    """Assembles the events of one file; add lines with ``read``."""

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
        # A document about failures has no events: it is counted.
        self._is_document = is_document
        self._carriers = carriers
        self._finder = finder
        self._settings = settings
        self._timezone = default_timezone
        self._tally = tally
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._minutes: dict[str, datetime | None] = {}
        self._layout: str | None = None
        self._personal = settings.reading.redacts_personal
        self.own = OwnLayouts(settings.reading.layouts, settings.regex_timeout_seconds)

    def read(self, lines: Iterable[PhysicalLine], *, is_active: bool) -> Iterator[Sequence[Event]]:
        """Reads all lines, and gives portions of the events; the last is left in the tally.

        Of an active file, what ends it and may go on is held back.  Reading goes on at one byte: an
        event is closed where lines that are read stand behind it.
        """
        number = end = 0
        for line in joined(lines, self._carriers):
            number = self._add(line, number if line.number is None else line.number - 1)
            end = line.offset + line.size
            if self._tally.is_portion:
                yield self._tally.take()
        # A line that was cut in the middle of its prefix stands alone behind the event it is of.
        for last in sorted(self._open.values(), key=lambda event: -event.offset):
            is_active = is_active and last.offset + last.size == end
            if is_active:
                end = last.offset
                self._tally.held_back_bytes += last.size
            else:
                self._close(last)
        self._open.clear()

    def _add(self, line: Logical, number: int) -> int:
        peeled = line.peeled
        source = peeled.source
        current = self._open.get(source)
        if is_fence(peeled.text):
            # What is quoted ends here; the fence itself holds nothing.
            line.peeled = Peeled("", source, False, peeled.times)
            closing = self._open.pop(source, None) or _Open(line, number + 1, None, None)
            if closing is current:
                closing.add(line, self._settings)
            self._close(closing)
            return number + line.newline_count
        if "`" in peeled.text or "**" in peeled.text:
            line.peeled = peeled = replace(peeled, text=unmarked(peeled.text))
        header = None
        if current is None or not current.is_gone_on_with(peeled.text):
            header = self._header(peeled.text)
        if header is not None or current is None or current.is_ended_by(peeled.text):
            if current is not None:
                del self._open[source]
                self._close(current)
            stated_at = header.logged_at if header is not None else None
            logged_at = stated_at or peeled.carried_at(self._timezone)
            current = _Open(line, number + 1, header, logged_at)
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
        # No layout begins with a blank; most lines of a trace do.
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
        """The minute of this event, or of the nearest one before it that states a time."""
        if logged_at is not None:
            self._minutes[source] = logged_at.replace(second=0, microsecond=0)
        return self._minutes.get(source)

    def _close(self, event: _Open) -> None:
        tally = self._tally
        header, number = event.header, event.number
        message, continuation = event.texts()
        if header is not None and continuation is not None:
            below, _, rest = continuation.partition("\n")
            told = with_message_below(header, below)
            if told is not None:
                header, number = told, number + 1
                message, continuation = told.message, rest or None
        level = header.level if header else None
        tally.newline_count += event.newline_count
        tally.count(level, event.minute, event.line_count, event.size, 1)
        if not self._is_notable(event, level, message, continuation):
            tally.counted_bytes += event.size
            return
        message, continuation, redactions = store_texts(
            message, continuation, personal=self._personal
        )
        logger, thread, in_names = store_names(header, personal=self._personal)
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
                parse_lifecycle(message, logger),
                event.is_truncated,
            ),
            both(redactions, in_names),
            event.decode_errors,
        )

    def _is_notable(
        self, event: _Open, level: str | None, message: str, continuation: str | None
    ) -> bool:
        if self._is_document and event.header is None:
            return False
        if level in WARN_AND_ABOVE or event.holds_trace:
            return True
        if event.header is not None and continuation is not None:
            return True
        text = message if continuation is None else f"{message}\n{continuation}"
        if event.header is None and mentions_failure(text):
            return True
        return self._finder.contains(text.encode("utf-8", "replace"))


class _Open:
    """An event that further lines may still belong to."""

    __slots__ = (
        "_blank_seen",
        "_dropped",
        "_frames_seen",
        "_head",
        "_head_bytes",
        "_in_traceback",
        "_last",
        "_tail",
        "_tail_bytes",
        "_throwable_open",
        "decode_errors",
        "header",
        "holds_trace",
        "is_truncated",
        "line_count",
        "logged_at",
        "minute",
        "newline_count",
        "number",
        "offset",
        "size",
    )

    def __init__(
        self, line: Logical, number: int, header: Header | None, logged_at: datetime | None
    ) -> None:
        self.offset = line.offset
        self.size = 0
        self.number = number
        self.header = header
        self.logged_at = logged_at
        self.minute: datetime | None = None
        self.newline_count = 0
        self.line_count = 0
        self.decode_errors = 0
        self.is_truncated = False
        self.holds_trace = False
        self._head: list[str] = []
        self._tail: list[str] = []
        self._head_bytes = self._tail_bytes = self._dropped = 0
        self._blank_seen = False
        self._frames_seen = False
        self._in_traceback = False
        self._throwable_open = False
        self._last = ""
        self._count(line)
        if header is None:
            self._head.append(line.peeled.text)
            self._note(line.peeled.text)

    def _count(self, line: Logical) -> None:
        self.size += line.size
        self.newline_count += line.newline_count
        self.line_count += max(line.newline_count, 1)
        self.decode_errors += line.decode_errors
        self.is_truncated |= line.is_cut

    def add(self, line: Logical, settings: Settings) -> None:
        self._count(line)
        text = line.peeled.text
        self._note(text)
        half = settings.max_event_bytes // 2
        if not self._tail and self._head_bytes + len(text) <= half:
            self._head.append(text)
            self._head_bytes += len(text) + 1
            return
        self._tail.append(text)
        self._tail_bytes += len(text) + 1
        if self._tail_bytes > 2 * half + 4096:
            self._drop(half)

    def _drop(self, keep: int) -> None:
        kept: list[str] = []
        size = 0
        for text in reversed(self._tail):
            if size + len(text) > keep and kept:
                break
            kept.append(text)
            size += len(text) + 1
        self._dropped += len(self._tail) - len(kept)
        self._tail = kept[::-1]
        self._tail_bytes = size
        self.is_truncated = True

    def _note(self, text: str) -> None:
        if not text or text.isspace():
            self._blank_seen = True
            return
        self._blank_seen = False
        if text[:1] not in _BLANK:
            self._in_traceback = text.startswith(TRACEBACK)
        kind = kind_of(text)
        if kind is LineKind.OTHER and self._frames_seen and is_elision(text):
            return
        self._last = text
        if kind is LineKind.FRAME:
            self._frames_seen, self._throwable_open, self.holds_trace = True, False, True
        elif kind is not LineKind.OTHER:
            self.holds_trace = True
            if kind is LineKind.CAUSE or kind is LineKind.THROWABLE:
                self._throwable_open = True

    def is_gone_on_with(self, text: str) -> bool:
        """Whether a line that may look like a header stands below the one it belongs to."""
        return self.header is not None and self.line_count == 1 and is_below(self.header, text)

    def is_ended_by(self, text: str) -> bool:
        """Whether a line that is no log header begins a new event all the same."""
        if not text or text.isspace():
            return False
        kind = kind_of(text)
        if kind <= LineKind.INSIDE:
            return kind is LineKind.CAUSE and self._is_title(text)
        if _SECTION.match(text) or text.startswith(_OF_NO_LOGGER):
            return True
        if kind is LineKind.THROWABLE and not text[:1].isspace():
            if self._in_traceback and not self._blank_seen:
                # Python names the error below the frames.
                return False
            if self._throwable_open:
                # One without frames ended at the blank line.
                return self._blank_seen
            # A title that quotes the cause of the trace below it belongs to that trace.
            is_title = self.line_count == 1 and "Caused by: " in self._last
            return self._frames_seen or (self.header is None and not is_title)
        if self._blank_seen:
            # A message may hold blank lines; its throwable has no frame yet.
            return not (self._throwable_open and len(self._head) < 40)
        if not self._frames_seen or self._throwable_open or text[0] in " \t(~[":
            return False
        if is_elision(text):
            return False
        # A finished frame does not go on at column 0; an event with a header may.
        if self.header is None:
            return kind_of(self._last) is LineKind.FRAME
        return _is_prose(text, self._last)

    def _is_title(self, text: str) -> bool:
        """Whether this is a lone cause, quoted above a trace that begins further left.

        What a cause encloses is indented no less than the cause.
        """
        if self.header is not None or self.line_count > 1 or not self._throwable_open:
            return False
        return _indent(self._last) > _indent(text)

    def texts(self) -> tuple[str, str | None]:
        """The message, and the lines after it or ``None``."""
        lines = self._head
        if self._dropped:
            lines = [*lines, f"[{self._dropped} lines left out]"]
        lines = [*lines, *self._tail]
        if self.header is not None:
            message = self.header.message
            if self.header.stack:
                lines = [*self.header.stack.split("\n"), *lines]
            elif "\n" in message:
                message, _, rest = message.partition("\n")
                lines = [*rest.split("\n"), *lines]
        else:
            message, lines = (lines[0], lines[1:]) if lines else ("", [])
        continuation = "\n".join(lines).rstrip()
        return message, continuation if continuation.strip() else None


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _is_prose(text: str, last: str) -> bool:
    """A sentence after a finished frame, not the wrapped rest of that frame's line."""
    if text[:1].isspace() or not last.rstrip().endswith((")", "]", "more")):
        return False
    return len(_WORDS.findall(text[:200])) >= 5 and " " in text and not text.startswith("(")
