"""Splits a byte stream into physical lines of text, with byte offsets.

Only a newline ends a line; a lone carriage return, U+2028, or a form feed does not. A line that
exceeds the limit is cut during reading, so that memory usage does not depend on its length.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from flink_triage.logs.text.decode import decode

_CHUNK = 1024 * 1024


class ByteSource(Protocol):
    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class PhysicalLine:
    """One line; ``text`` excludes the line end, ``size_bytes`` includes it.

    ``is_cut`` is set if the end of the line is missing from ``text``. ``number``, the 1-based line
    number, is set only for the records of an export, which may not be in file order.
    """

    offset: int
    size_bytes: int
    newline_count: int
    text: str
    decode_errors: int = 0
    is_cut: bool = False
    number: int | None = None


def physical_lines(
    source: ByteSource, encoding: str, max_line_bytes: int, first_offset: int = 0
) -> Iterator[PhysicalLine]:
    """Yield all lines of ``source``; ``first_offset`` is the offset of its first byte in the file.

    A byte order mark at offset 0 is removed. Invalid sequences are replaced.
    """
    newline = _newline(encoding)
    is_utf8 = encoding == "utf-8"
    offset = first_offset
    for data, size, ended in _raw_lines(source, newline, max_line_bytes):
        is_cut = size > len(data)
        if is_utf8 and not is_cut and ended and offset:
            text, errors = decode(data)
            yield PhysicalLine(offset, size, 1, text[: -2 if text[-2:] == "\r\n" else -1], errors)
            offset += size
            continue
        if ended and not is_cut:
            data = data[: -len(newline)]
        if offset == 0:
            data = _without_bom(data)
        text, errors = decode(data) if is_utf8 else _decode_as(data, encoding)
        if text.endswith("\r"):
            text = text[:-1]
        if is_cut:
            text += f" [{size - len(data)} bytes left out]"
        yield PhysicalLine(offset, size, int(ended), text, errors, is_cut)
        offset += size


def _raw_lines(source: ByteSource, newline: bytes, limit: int) -> Iterator[tuple[bytes, int, bool]]:
    """The kept bytes, the size, and whether a newline ends the line, for each line.

    The kept bytes include the newline, unless the line is cut.
    """
    width = len(newline)
    rest = b""
    size_cut = 0
    while block := source.read(_CHUNK):
        data = rest + block
        start = 0
        if width == 1 and size_cut == 0:
            parts = data.split(b"\n")
            rest = parts.pop()
            for part in parts:
                size = len(part) + 1
                yield (part[:limit] if size - 1 > limit else part + b"\n"), size, True
            start, data = 0, rest
        while (end := _find(data, newline, start)) >= 0:
            line = data[start : end + width]
            size = len(line) + size_cut
            if size - width > limit:
                yield line[:limit], size, True
            else:
                yield line, size, True
            start, size_cut = end + width, 0
        rest = data[start:]
        excess = len(rest) - limit - 2 * width
        if excess > 0:
            # The last bytes may be the first part of a newline character.
            excess -= excess % width
            size_cut += excess
            rest = rest[:limit] + rest[limit + excess :]
    if rest:
        size = len(rest) + size_cut
        yield rest[:limit] if size > limit else rest, size, False


def _find(data: bytes, newline: bytes, start: int) -> int:
    """The position of the next newline; a multi-byte newline must be aligned to its width."""
    position = data.find(newline, start)
    while position >= 0 and (position - start) % len(newline):
        position = data.find(newline, position + 1)
    return position


def _newline(encoding: str) -> bytes:
    return "\n".encode(encoding)


def _without_bom(data: bytes) -> bytes:
    for bom in (codecs.BOM_UTF8, codecs.BOM_UTF32_LE, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        if data.startswith(bom):
            return data[len(bom) :]
    return data


def _decode_as(data: bytes, encoding: str) -> tuple[str, int]:
    try:
        return data.decode(encoding), 0
    except UnicodeDecodeError:
        text = data.decode(encoding, errors="replace")
        return text, text.count("\ufffd")
