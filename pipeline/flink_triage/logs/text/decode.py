"""Decodes bytes to text, removes color codes, and decodes HTML entities."""

from __future__ import annotations

import codecs
import html
import re

from flink_triage.errors import UsageError
from flink_triage.logs.text.redact import (
    may_hold_secret,
)

_ANSI = re.compile(
    r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|[@-Z\\^_=>])"
)
_SURROGATES = re.compile("[\ud800-\udfff]")
# HTML entities in a log copied from the source of a page: "Map -&gt; Sink", "&lt;init&gt;".
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|#39|#x27|nbsp);")
# A log may contain long runs of NUL bytes after a crash. A run is replaced by its length.
_NUL_RUN = re.compile("\0{64,}")


def encoding_named(name: str) -> str:
    """Python's name of an encoding.

    Raises ``UsageError`` for an unknown encoding, and for encodings in which a newline is not the
    byte ``\\n``, except for UTF-16 and UTF-32 with a specified byte order.
    """
    try:
        found = codecs.lookup(name)
        ends = "\n".encode(found.name)
    except (LookupError, TypeError, UnicodeError, ValueError):
        found, ends = None, b""
    if found is None or not (ends == b"\n" or found.name.startswith(("utf-16-", "utf-32-"))):
        raise UsageError(
            f"--encoding: {name!r} is not a supported encoding, such as gbk, latin-1 or utf-16-le"
        )
    return found.name


def decode(data: bytes) -> tuple[str, int]:
    """The text decoded as UTF-8, and the number of invalid sequences that were replaced."""
    try:
        return data.decode("utf-8"), 0
    except UnicodeDecodeError:
        text = data.decode("utf-8", errors="replace")
        return text, text.count("\ufffd") - data.count(b"\xef\xbf\xbd")


def clean(text: str) -> str:
    """``text`` without ANSI escape codes, and with HTML entities decoded.

    Entities are decoded only in text with at least one that often occurs in copied logs, such as
    ``&lt;``. NULs and lone surrogates are replaced by visible characters. Carriage returns are
    removed before a newline and at the end.
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
    # A string from `bytes.decode` never contains surrogates, but decoded JSON escapes may.
    if not text.isascii() and _SURROGATES.search(text):
        text = _SURROGATES.sub("\ufffd", text)
    return text


# Characters that `clean` may remove or replace.
_UNCLEAN = ("\x1b", "\0", "\r")


def plain_text(data: bytes) -> str | None:
    """The text of ``data``; ``None`` if it is not UTF-8, or may have to be cleaned or redacted."""
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
