"""Bytes of one event in, the text that may be stored out: decoded, cut, cleaned and redacted."""

from __future__ import annotations

import codecs
import html
import re
from collections import OrderedDict
from dataclasses import dataclass
from functools import lru_cache

from flink_triage.errors import UsageError
from flink_triage.settings import Settings

from .layouts.headers import Header
from .redact import NONE, Redactions, both, is_open_ended, may_hold_secret, redact

_ANSI = re.compile(
    r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|[@-Z\\^_=>])"
)
_SURROGATES = re.compile("[\ud800-\udfff]")
# What a browser's view of a page's source makes of a trace: "Map -&gt; Sink", "&lt;init&gt;".
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|#39|#x27|nbsp);")
# A crash leaves sparse blocks of NUL: a long run is one fact, not a page.
_NUL_RUN = re.compile("\0{64,}")


def encoding_named(name: str) -> str:
    """Python's name of a text encoding whose lines end with a newline byte, or of UTF-16 or 32.

    Raises ``UsageError`` for any other.
    """
    try:
        found = codecs.lookup(name)
        ends = "\n".encode(found.name)
    except (LookupError, TypeError, UnicodeError, ValueError):
        found, ends = None, b""
    if found is None or not (ends == b"\n" or found.name.startswith(("utf-16-", "utf-32-"))):
        raise UsageError(
            f"--encoding: {name!r} is not an encoding such as gbk, latin-1 or utf-16-le"
        )
    return found.name


def decode(data: bytes) -> tuple[str, int]:
    """UTF-8 text and the number of places where it had to be replaced."""
    try:
        return data.decode("utf-8"), 0
    except UnicodeDecodeError:
        text = data.decode("utf-8", errors="replace")
        return text, text.count("\ufffd") - data.count(b"\xef\xbf\xbd")


def clean(text: str) -> str:
    """``text`` without escape codes, lone surrogates, NULs, carriage returns before newlines, and
    HTML's entities.
    """
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if "\0" in text:
        text = _NUL_RUN.sub(lambda run: f"\u2400 x {len(run[0])}", text).replace("\0", "\u2400")
    if "&" in text and _ENTITY.search(text):
        text = html.unescape(text)
    if "\r" in text:
        text = text.replace("\r\n", "\n")
        text = text[:-1] if text.endswith("\r") else text
    # A str from `bytes.decode` holds none; one from JSON escapes may.
    if not text.isascii() and _SURROGATES.search(text):
        text = _SURROGATES.sub("\ufffd", text)
    return text


# What `clean` takes out.  "\r" stands for the line ends of Windows.
_UNCLEAN = ("\x1b", "\0", "\r")


def plain_text(data: bytes) -> str | None:
    """The text of ``data`` if there is nothing to replace, to clean or to redact in it."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    for character in _UNCLEAN:
        if character in text:
            return None
    if "&" in text and _ENTITY.search(text):
        return None
    return None if may_hold_secret(text) else text


def cut_event(data: bytes, settings: Settings) -> tuple[bytes, bool]:
    """The event within the limits: head and tail are kept, what lies between is counted.

    A function of the event's bytes alone, so that it does not matter how they were read.
    """
    limit = settings.max_event_bytes
    if len(data) > limit:
        head, tail = head_and_tail_bytes(settings)
        return join_cut(data[:head], data[-tail:], len(data), settings)
    if len(data) > settings.max_line_bytes:
        return _cut_lines(data, settings)
    return data, False


def head_and_tail_bytes(settings: Settings) -> tuple[int, int]:
    """How much of a cut event is kept at its start and at its end: the root cause stands last."""
    tail = max(settings.max_event_bytes // 2, 1)
    return max(settings.max_event_bytes - tail, 1), tail


def join_cut(head: bytes, tail: bytes, size: int, settings: Settings) -> tuple[bytes, bool]:
    """Head and tail of an event of ``size`` bytes, cut at line ends where they have one."""
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
    """Text ready for a row, with the counts of what was done to it."""

    text: str
    redactions: Redactions
    decode_errors: int


class TextCache:
    """Stored texts of bytes seen before: repeated stack traces are decoded and redacted once.

    Bounded by the bytes it holds.
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
    """``text`` cleaned and redacted, and how many secrets of each kind were taken out.

    With ``personal`` also names of people and machines.
    """
    return redact(clean(text), pii=personal)


def store_texts(
    message: str, continuation: str | None, *, personal: bool = False
) -> tuple[str, str | None, Redactions]:
    """Both parts of an event, cleaned and redacted; a secret may be named in one, given in the
    other.
    """
    message = clean(message)
    if continuation is None or not is_open_ended(message):
        message, found = redact(message, pii=personal)
        if continuation is None:
            return message, None, found
        continuation, more = store_text(continuation, personal=personal)
        return message, continuation, both(found, more)
    text, found = redact(f"{message}\n{clean(continuation)}", pii=personal)
    # Redaction keeps line ends, so the parts come apart where they were joined.
    cut = message.count("\n") + 1
    lines = text.split("\n")
    return "\n".join(lines[:cut]), "\n".join(lines[cut:]), found


def store_names(
    header: Header | None, *, personal: bool = False
) -> tuple[str | None, str | None, Redactions]:
    """The names of logger and thread, redacted: threads are named after tables, URLs and jobs."""
    if header is None:
        return None, None, NONE
    logger, in_logger = _store_name(header.logger, False)
    thread, in_thread = _store_name(header.thread, personal)
    return logger, thread, both(in_logger, in_thread)


@lru_cache(maxsize=4096)
def _store_name(name: str | None, personal: bool) -> tuple[str | None, Redactions]:
    return (None, NONE) if name is None else redact(name, pii=personal)
