"""Converts the bytes of an event to decoded, cut, cleaned, and redacted text that may be stored."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from functools import lru_cache

from flink_triage.logs.layouts.headers import Header
from flink_triage.logs.text.decode import clean, decode
from flink_triage.logs.text.redact import NONE, Redactions, both, is_open_ended, redact
from flink_triage.settings import Settings


def cut_event(data: bytes, settings: Settings) -> tuple[bytes, bool]:
    """The event, shortened to the size limits if necessary, and whether it was cut.

    Of a large event, the head and tail are kept, and the bytes between them are replaced by their
    number. The end of a long line is replaced in the same way. The result depends only on the bytes
    of the event, and not on how they were read.
    """
    limit = settings.max_event_bytes
    if len(data) > limit:
        head, tail = head_and_tail_bytes(settings)
        return join_cut(data[:head], data[-tail:], len(data), settings)
    if len(data) > settings.max_line_bytes:
        return _cut_lines(data, settings)
    return data, False


def head_and_tail_bytes(settings: Settings) -> tuple[int, int]:
    """The number of bytes to keep at the start and at the end of a large event."""
    tail = max(settings.max_event_bytes // 2, 1)
    return max(settings.max_event_bytes - tail, 1), tail


def join_cut(head: bytes, tail: bytes, size: int, settings: Settings) -> tuple[bytes, bool]:
    """The head and tail of an event of ``size`` bytes, cut at line ends where possible."""
    end = head.rfind(b"\n")
    start = tail.find(b"\n", 0, len(tail) - 1)
    if end > 0:
        head = head[:end]
    if start >= 0:
        tail = tail[start + 1 :]
    left_out = b"[%d bytes left out]" % (size - len(head) - len(tail))
    separator = b"\n" if end > 0 or start >= 0 else b" "
    return _cut_lines(head + separator + left_out + separator + tail, settings)[0], True


def _cut_lines(data: bytes, settings: Settings) -> tuple[bytes, bool]:
    limit = settings.max_line_bytes
    lines = data.split(b"\n")
    is_cut = False
    for index, line in enumerate(lines):
        if len(line) > limit:
            lines[index] = line[:limit] + b" [%d bytes left out]" % (len(line) - limit)
            is_cut = True
    return (b"\n".join(lines), True) if is_cut else (data, False)


@dataclass(frozen=True, slots=True)
class StoredText:
    """Text that may be stored, with the numbers of masked secrets and decoding errors."""

    text: str
    redactions: Redactions
    decode_errors: int


class TextCache:
    """Caches stored text by its bytes, so that repeated stack traces are redacted only once.

    The number of cached bytes is limited.
    """

    def __init__(self, max_bytes: int = 64 * 1024 * 1024, *, personal: bool = False) -> None:
        self._texts: OrderedDict[bytes, StoredText] = OrderedDict()
        self._max_bytes = max_bytes
        self._bytes = 0
        self._personal = personal

    def get(self, data: bytes) -> StoredText:
        found = self._texts.get(data)
        if found is not None:
            return found
        stored = store_bytes(data, personal=self._personal)
        self._texts[data] = stored
        self._bytes += 3 * len(data) + 200
        while self._bytes > self._max_bytes:
            key, _ = self._texts.popitem(last=False)
            self._bytes -= 3 * len(key) + 200
        return stored


def store_bytes(data: bytes, *, personal: bool = False) -> StoredText:
    text, errors = decode(data)
    text, redactions = store_text(text, personal=personal)
    return StoredText(text, redactions, errors)


def store_text(text: str, *, personal: bool = False) -> tuple[str, Redactions]:
    """Return the cleaned and redacted text, and the number of masked secrets of each kind.

    If ``personal`` is set, personal data is masked as well.
    """
    return redact(clean(text), pii=personal)


def store_texts(
    message: str, continuation: str | None, *, personal: bool = False
) -> tuple[str, str | None, Redactions]:
    """Clean and redact both parts of an event.

    If the message may contain the key of a secret in the continuation, both are redacted together.
    """
    message = clean(message)
    if continuation is None or not is_open_ended(message):
        message, found = redact(message, pii=personal)
        if continuation is None:
            return message, None, found
        continuation, more = store_text(continuation, personal=personal)
        return message, continuation, both(found, more)
    text, found = redact(f"{message}\n{clean(continuation)}", pii=personal)
    # Redaction preserves line ends, so the parts can be split at the line where they were joined.
    cut = message.count("\n") + 1
    lines = text.split("\n")
    return "\n".join(lines[:cut]), "\n".join(lines[cut:]), found


def store_names(
    header: Header | None, *, personal: bool = False
) -> tuple[str | None, str | None, Redactions]:
    """The redacted logger and thread names; thread names may contain tables, URLs, and jobs.

    ``personal`` applies only to the thread name.
    """
    if header is None:
        return None, None, NONE
    logger, in_logger = _store_name(header.logger, False)
    thread, in_thread = _store_name(header.thread, personal)
    return logger, thread, both(in_logger, in_thread)


@lru_cache(maxsize=4096)
def _store_name(name: str | None, personal: bool) -> tuple[str | None, Redactions]:
    return (None, NONE) if name is None else redact(name, pii=personal)
