"""Decompresses byte streams; the format is detected from magic bytes, not from the file name.

Memory usage does not depend on the compression ratio: decoders return small chunks, and a stream
that requires a window of more than 128 MiB is rejected. ``problem`` states why a stream ended
early. For a truncated or corrupt stream, the data before the damage is returned; if the input is
not seekable, the end of the data before corrupt bytes may be missing.
"""

from __future__ import annotations

import bz2
import contextlib
import importlib
import lzma
import os
import zlib
from functools import cache
from types import ModuleType
from typing import Any, BinaryIO, Protocol

from flink_triage.settings import MIB

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"BZh", "bz2"),
    (b"\xfd7zXZ\x00", "xz"),
)
# Decoder modules in order of preference, and the package to install if none is available.
_PACKAGES = {
    "zstd": (("compression.zstd", "backports.zstd"), "backports.zstd"),
    "lz4": (("lz4.frame",), "lz4"),
}
# First bytes of skippable zstd and lz4 frames.
_SKIPPABLE = bytes(range(0x50, 0x60))
_CHUNK = 64 * 1024
_PIECE = 128 * 1024
# The default limit of zstd; `xz -9` requires half of it.
_WINDOW_LOG = 27
_XZ_MEMORY = (1 << _WINDOW_LOG) + MIB


def compression_of(head: bytes) -> str:
    """The compression format detected from the first bytes; ``none`` if it is not recognized."""
    for magic, name in _MAGIC:
        if head.startswith(magic):
            # Text may also start with "BZh", so a block size digit and the block magic must follow.
            if name == "bz2" and not (head[3:4].isdigit() and head[4:6] in (b"1A", b"\x17r")):
                continue
            return name
    return "none"


def missing_package(compression: str) -> str | None:
    """The package required to read this compression format, or ``None`` if it can be read."""
    if compression not in _PACKAGES or _module_of(compression) is not None:
        return None
    return _PACKAGES[compression][1]


class DecompressedStream:
    """Reads decompressed bytes from ``raw``, which must be positioned at its start.

    ``read`` returns at most ``max_bytes`` bytes in total. After the last read, ``problem`` states
    why the data is incomplete, or is ``None``; ``read_error`` is the error of ``raw`` that caused
    the problem, if any. If ``compression`` is given, it is not detected; for zip members, it may
    also be ``deflate`` or ``lzma``.
    """

    def __init__(self, raw: BinaryIO, max_bytes: int, compression: str | None = None) -> None:
        self._raw = raw
        head = raw.read(16)
        self.compression = compression_of(head) if compression is None else compression
        self._input = head
        self._taken = len(head)
        self._left = max_bytes
        self._given = 0
        self.problem: str | None = None
        self.read_error: OSError | None = None
        self._is_done = False
        self._decoder: _Decoder | None = None
        # The offsets of the current member in ``raw`` and in the decompressed bytes.
        self._member = (0, 0)
        # The offset in ``raw`` of the last chunk that the decoder received.
        self._fed_at = 0
        # Decompressed data before the damage that has not been returned yet.
        self._rest = b""
        if self.compression != "none":
            package = missing_package(self.compression)
            if package:
                self.problem = f"{self.compression}: install {package} to read it"
                self._is_done = True
            else:
                self._decoder = _new_decoder(self.compression)

    def read(self, size: int = -1) -> bytes:
        """Read ``size`` bytes, or fewer at the end; all remaining bytes if ``size`` is negative."""
        wanted = self._left if size < 0 else min(size, self._left)
        parts: list[bytes] = []
        while wanted > 0:
            part = self._next(min(wanted, 8 * MIB))
            if not part:
                break
            parts.append(part)
            wanted -= len(part)
            self._left -= len(part)
            self._given += len(part)
        if self._left == 0 and self.problem is None and self._next(1):
            self.problem = f"cut at {self._given} bytes, the size limit of a file"
            self._is_done = True
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _next(self, size: int) -> bytes:
        if self._is_done:
            return self._next_of_rest(size)
        if self._decoder is None:
            return self._next_plain(size)
        return self._next_decoded(self._decoder, min(size, _PIECE))

    def _next_plain(self, size: int) -> bytes:
        part, self._input = self._input[:size], self._input[size:]
        return part + self._read_raw(size - len(part)) if len(part) < size else part

    def _read_raw(self, size: int) -> bytes:
        try:
            data = self._raw.read(size)
        except OSError as error:
            self.read_error = error
            self._stop(f"unreadable after {self._given} bytes ({error.strerror or error})")
            return b""
        self._taken += len(data)
        return data

    def _next_decoded(self, decoder: _Decoder, size: int) -> bytes:
        while True:
            if decoder.eof:
                following = self._next_member()
                if following is None:
                    return b""
                decoder = self._decoder = following
            data, self._input = self._input, b""
            is_end = False
            if not data and decoder.needs_input:
                data = self._read_raw(_CHUNK)
                is_end = not data
            if data:
                self._fed_at = self._taken - len(data)
            try:
                part = decoder.decompress(data, size)
            except Exception as error:  # Each library raises its own exceptions for damaged input.
                self._rest = self._before_damage()
                self._stop(_reason(error, self._given + len(self._rest)))
                return self._next_of_rest(size)
            if decoder.eof:
                self._input = decoder.unused_data or b""
            elif is_end and not part and not self._is_done:
                self._stop(f"truncated after {self._given} bytes")
            if part or self._is_done:
                return part

    def _next_of_rest(self, size: int) -> bytes:
        part, self._rest = self._rest[:size], self._rest[size:]
        return part

    def _before_damage(self) -> bytes:
        """The bytes between the data already returned and the corrupt data, up to ``_PIECE``.

        A decoder that detects corrupt data discards the whole chunk. The member is therefore
        decoded again: up to this chunk as before, and from there byte by byte. Empty if ``raw`` is
        not seekable.
        """
        position, at = self._member
        decoder = _new_decoder(self.compression)
        found = bytearray()
        with contextlib.suppress(Exception):  # The data is damaged, or ``raw`` is not seekable.
            self._raw.seek(position - self._taken, os.SEEK_CUR)
            while len(found) < _PIECE:
                data, is_end = b"", False
                if decoder.needs_input:
                    # zlib and other decoders verify the checksum as soon as they read it, before
                    # they return the last bytes. The input is therefore also passed byte by byte.
                    data = self._raw.read(min(max(self._fed_at - position, 1), _CHUNK))
                    position += len(data)
                    is_end = not data
                skipped = max(min(self._given - at, _PIECE), 0)
                part = decoder.decompress(data, skipped or 1)
                at += len(part)
                found += b"" if skipped else part
                if is_end and not part:  # bz2 requests input before it has returned all output
                    break
        return bytes(found)

    def _next_member(self) -> _Decoder | None:
        """The decoder for the next member of a multi-member file, or ``None`` at the end."""
        while True:
            # Ignore zero padding, which tape drives add, as gzip(1) does.
            if self.compression == "gzip":
                self._input = self._input.lstrip(b"\0")
            more = self._read_raw(_CHUNK) if len(self._input) < 16 else b""
            if not more:
                break
            self._input += more
        if self._is_done:
            return None
        if not self._input:
            self._is_done = True
            return None
        if not self._is_member(self._input):
            self._stop(f"followed by other data after {self._given} bytes")
            return None
        self._member = (self._taken - len(self._input), self._given)
        return _new_decoder(self.compression)

    def _is_member(self, head: bytes) -> bool:
        # pzstd and seekable formats insert skippable frames with metadata.
        is_skippable = head[0] in _SKIPPABLE and head[1:4] == b"\x2a\x4d\x18"
        return compression_of(head) == self.compression or (
            is_skippable and self.compression in _PACKAGES
        )

    def _stop(self, problem: str) -> None:
        self._is_done = True
        self.problem = f"{self.compression}: {problem}" if self._decoder else problem


def _reason(error: Exception, given: int) -> str:
    if isinstance(error, MemoryError) or "memory" in str(error).lower():
        return f"requires a window of more than {(1 << _WINDOW_LOG) // MIB} MiB to decompress"
    return f"damaged after {given} bytes ({error})"


def open_decompressed(raw: BinaryIO, max_bytes: int) -> DecompressedStream:
    """A stream of the decompressed bytes of ``raw``, which may also be uncompressed."""
    return DecompressedStream(raw, max_bytes)


class _Decoder(Protocol):
    """The common interface of the bz2, lzma, zstd, and lz4 decoders."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes | None: ...

    def decompress(self, data: bytes, max_length: int = ..., /) -> bytes: ...


class _ZlibDecoder:
    """Adapts the zlib decoder to the ``_Decoder`` interface."""

    def __init__(self, wbits: int) -> None:
        self._zlib = zlib.decompressobj(wbits=wbits)

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def needs_input(self) -> bool:
        return not self._zlib.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    def decompress(self, data: bytes, max_length: int = 0, /) -> bytes:
        return self._zlib.decompress(self._zlib.unconsumed_tail + data, max_length)


def _new_decoder(compression: str) -> _Decoder:
    if compression == "gzip":
        return _ZlibDecoder(31)
    if compression == "deflate":
        return _ZlibDecoder(-15)
    if compression == "bz2":
        return bz2.BZ2Decompressor()
    if compression == "xz":
        return lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
    if compression == "lzma":
        return lzma.LZMADecompressor(format=lzma.FORMAT_ALONE, memlimit=_XZ_MEMORY)
    module: Any = _module_of(compression)
    decoder: _Decoder
    if compression == "zstd":
        options = {module.DecompressionParameter.window_log_max: _WINDOW_LOG}
        decoder = module.ZstdDecompressor(options=options)
    else:
        decoder = module.LZ4FrameDecompressor()
    return decoder


@cache
def _module_of(compression: str) -> ModuleType | None:
    for name in _PACKAGES[compression][0]:
        with contextlib.suppress(ImportError):
            return importlib.import_module(name)
    return None
