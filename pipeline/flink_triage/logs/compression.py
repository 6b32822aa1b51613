"""Compressed bytes in, plain bytes out, told by magic bytes and never by the file's name.

What can be read is given out; what cannot is named in ``problem`` once the stream has ended:
a truncated or damaged archive keeps its good prefix.
"""

from __future__ import annotations

import bz2
import importlib
import lzma
import zlib
from typing import Any, BinaryIO, Protocol

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"BZh", "bz2"),
    (b"\xfd7zXZ\x00", "xz"),
)
_PACKAGES = {"zstd": ("zstandard", "zstandard"), "lz4": ("lz4.frame", "lz4")}
_CHUNK = 256 * 1024


def compression_of(head: bytes) -> str:
    """``gzip``, ``zstd``, ``lz4``, ``bz2``, ``xz`` or ``none``, by the first bytes."""
    for magic, name in _MAGIC:
        if head.startswith(magic):
            # "BZh" may begin a text; a block size digit and the block magic must follow.
            if name == "bz2" and not (head[3:4].isdigit() and head[4:6] in (b"1A", b"\x17r")):
                continue
            return name
    return "none"


def missing_package(compression: str) -> str | None:
    """The package to install to read this compression, or ``None`` when it can be read."""
    if compression not in _PACKAGES:
        return None
    module, package = _PACKAGES[compression]
    try:
        importlib.import_module(module)
    except ImportError:
        return package
    return None


class _Decoder(Protocol):
    eof: bool
    unused_data: bytes

    def decompress(self, data: bytes, max_length: int = ..., /) -> bytes: ...


class DecompressedStream:
    """Reads plain bytes from ``raw``, which stands at its start.

    At most ``max_bytes`` are given out.  After the last read ``problem`` says what could not be
    read, or is ``None``.
    """

    def __init__(self, raw: BinaryIO, max_bytes: int, compression: str | None = None) -> None:
        self._raw = raw
        head = raw.read(16)
        self.compression = compression_of(head) if compression is None else compression
        self._input = head
        self._left = max_bytes
        self._given = 0
        self.problem: str | None = None
        self._is_done = False
        self._decoder: Any = None
        self._members = 0
        if self.compression != "none":
            package = missing_package(self.compression)
            if package:
                self.problem = f"{self.compression}: install {package} to read it"
                self._is_done = True
            else:
                self._decoder = _new_decoder(self.compression)

    def read(self, size: int = -1) -> bytes:
        """Up to ``size`` bytes, fewer only at the end; all of them when ``size`` is negative."""
        wanted = self._left if size < 0 else min(size, self._left)
        parts: list[bytes] = []
        while wanted > 0:
            part = self._next(min(wanted, 8 * 1024 * 1024))
            if not part:
                break
            parts.append(part)
            wanted -= len(part)
            self._left -= len(part)
            self._given += len(part)
        if self._left == 0 and self.problem is None and not self._is_done and self._next(1):
            self.problem = f"cut at {self._given} bytes, the limit of a decompressed file"
            self._is_done = True
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _next(self, size: int) -> bytes:
        if self._is_done:
            return b""
        if self.compression == "none":
            return self._next_plain(size)
        try:
            return self._next_decoded(size)
        except (zlib.error, lzma.LZMAError, OSError, ValueError, EOFError, RuntimeError) as error:
            self._stop(f"damaged after {self._given} bytes ({error})")
            return b""

    def _next_plain(self, size: int) -> bytes:
        if self._input:
            part, self._input = self._input[:size], self._input[size:]
            if len(part) < size:
                part += self._read_raw(size - len(part))
            return part
        return self._read_raw(size)

    def _read_raw(self, size: int) -> bytes:
        try:
            return self._raw.read(size)
        except OSError as error:
            self._stop(f"unreadable after {self._given} bytes ({error.strerror or error})")
            return b""

    def _next_decoded(self, size: int) -> bytes:
        while True:
            if self._decoder.eof and not self._next_member():
                return b""
            if not self._input and self._needs_input():
                self._input = self._read_raw(_CHUNK)
                if not self._input and not self._is_done:
                    return self._end_of_input(size)
            part = self._decode(size)
            if part or self._is_done:
                return part

    def _needs_input(self) -> bool:
        return bool(getattr(self._decoder, "needs_input", True))

    def _decode(self, size: int) -> bytes:
        data, self._input = self._input, b""
        # zlib drops what it had decoded when it meets damage: a copy decodes it again.
        before = self._decoder.copy() if self.compression == "gzip" else None
        try:
            part: bytes = self._decoder.decompress(data, size)
        except zlib.error as error:
            part = _up_to_damage(before, data, size)
            self._stop(f"damaged after {self._given + len(part)} bytes ({error})")
            return part
        if self._decoder.eof:
            self._input = self._decoder.unused_data
        elif self.compression == "gzip":
            self._input = self._decoder.unconsumed_tail
        return part

    def _end_of_input(self, size: int) -> bytes:
        if self.compression == "gzip":
            rest: bytes = self._decoder.flush()
            if rest:
                self._input = b""
                self._stop(f"truncated after {self._given + len(rest)} bytes")
                return rest[:size]
        self._stop(f"truncated after {self._given} bytes")
        return b""

    def _next_member(self) -> bool:
        """Starts the next member of a file made of several; false at the end or at garbage."""
        while len(self._input) < 16:
            more = self._read_raw(_CHUNK)
            if not more:
                break
            self._input += more
        # gzip(1) ignores zero padding, as tapes leave it.
        if self.compression == "gzip":
            self._input = self._input.lstrip(b"\0")
        if not self._input:
            self._is_done = True
            return False
        if compression_of(self._input) != self.compression:
            self._stop(f"followed by something else after {self._given} bytes")
            return False
        self._members += 1
        self._decoder = _new_decoder(self.compression)
        return True

    def _stop(self, problem: str) -> None:
        self._is_done = True
        self.problem = f"{self.compression}: {problem}" if self._decoder else problem


def _up_to_damage(decoder: Any, data: bytes, size: int) -> bytes:
    """What a zlib decoder gives before it fails, at most ``size`` bytes; byte by byte."""
    parts: list[bytes] = []
    for index in range(len(data)):
        try:
            part = decoder.decompress(data[index : index + 1], size)
        except zlib.error:
            break
        parts.append(part)
        size -= len(part)
        if size <= 0:
            break
    return b"".join(parts)


def open_decompressed(raw: BinaryIO, max_bytes: int) -> DecompressedStream:
    """A stream of the plain bytes of ``raw``, whatever it is compressed with."""
    return DecompressedStream(raw, max_bytes)


def _new_decoder(compression: str) -> Any:
    if compression == "gzip":
        return zlib.decompressobj(wbits=31)
    if compression == "bz2":
        return bz2.BZ2Decompressor()
    if compression == "xz":
        return lzma.LZMADecompressor(format=lzma.FORMAT_XZ)
    return _PackageDecoder(compression)


class _PackageDecoder:
    """The decompressors of zstandard and lz4 behind the interface of bz2's; output is held."""

    def __init__(self, compression: str) -> None:
        module = importlib.import_module(_PACKAGES[compression][0])
        if compression == "zstd":
            self._decoder = module.ZstdDecompressor().decompressobj()
        else:
            self._decoder = module.LZ4FrameDecompressor()
        self._held = b""

    @property
    def eof(self) -> bool:
        return bool(self._decoder.eof) and not self._held

    @property
    def needs_input(self) -> bool:
        return not self._held

    @property
    def unused_data(self) -> bytes:
        return bytes(self._decoder.unused_data or b"")

    def decompress(self, data: bytes, max_length: int) -> bytes:
        # Small pieces in, so that a bomb is never held as a whole.
        if data and not self._decoder.eof:
            self._held += self._decoder.decompress(data)
        part, self._held = self._held[:max_length], self._held[max_length:]
        return part
