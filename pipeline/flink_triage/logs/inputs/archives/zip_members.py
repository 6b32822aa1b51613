"""Lists the members of a zip, and decompresses a member in bounded memory.

``zipfile`` reads the central directory. Its bz2 and lzma decoders have no output limit, so this
module opens members itself and uses ``compression`` to decompress them.
"""

from __future__ import annotations

import errno
import io
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import BinaryIO, cast

from flink_triage.logs.inputs.archives.members import (
    ArchiveError,
    Member,
    Part,
    Place,
    shortened,
    too_long,
)
from flink_triage.logs.inputs.compression import DecompressedStream
from flink_triage.logs.inputs.path_names import shown
from flink_triage.settings import MIB

# Sufficient for 10,000 members with names of 700 bytes. `zipfile` requires ten times as much memory
# to read the directory.
_MAX_DIRECTORY_BYTES = 8 * MIB
# Compression method numbers from APPNOTE.TXT.
_METHODS = {0: "none", 8: "deflate", 12: "bz2", 14: "lzma", 93: "zstd", 95: "xz"}
_HEADER_BYTES = 30
_IS_ENCRYPTED = 1
_HAS_END_MARK = 2
_CHUNK = MIB


def zip_places(path: str) -> Iterator[Place]:
    """Yield the members; raises ``ArchiveError`` if the central directory is damaged or too large.

    Raises ``OSError`` if the file cannot be read.
    """
    try:
        with _Directory(path) as file, zipfile.ZipFile(cast(BinaryIO, file)) as archive:
            infos = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OverflowError) as error:
        raise ArchiveError(str(error)) from None
    except (struct.error, EOFError) as error:
        raise ArchiveError(f"zip directory: {error}") from None
    starts = sorted({info.header_offset for info in infos})
    following = dict(zip(starts, (*starts[1:], os.stat(path).st_size), strict=False))
    taken: set[int] = set()
    for info in infos:
        if info.filename.endswith("/"):  # `is_dir` fails for an empty name
            continue
        end = info.header_offset + _HEADER_BYTES + info.compress_size
        overlaps = info.header_offset in taken or end > following[info.header_offset]
        taken.add(info.header_offset)
        member = Member(
            shown(shortened(info.filename)),
            info.file_size,
            _moment(info.date_time),
            refusal=_refusal(info)
            or ("overlaps the next member of its archive" if overlaps else None),
            is_seekable=False,
        )
        yield Place(
            member,
            info.header_offset,
            info.compress_size,
            info.compress_type,
            info.flag_bits,
            info.CRC,
        )


class _Directory(io.FileIO):
    """A zip file that rejects a central directory whose declared size exceeds the limit.

    ``zipfile`` reads the whole directory in one call.
    """

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > _MAX_DIRECTORY_BYTES:
            raise zipfile.BadZipFile(f"directory of {size} bytes, allowed: {_MAX_DIRECTORY_BYTES}")
        return super().read(-1 if size is None else size) or b""


def _refusal(info: zipfile.ZipInfo) -> str | None:
    if info.flag_bits & _IS_ENCRYPTED:
        return "encrypted"
    if stat.S_ISLNK(info.external_attr >> 16):
        return "a link inside an archive"
    if info.compress_type not in _METHODS:
        methods = ", ".join(_METHODS.values())
        return f"compressed by method {info.compress_type}, allowed: {methods}"
    if info.header_offset < 0:
        return "an invalid offset in its archive"
    return too_long(info.filename)


def _moment(parts: tuple[int, int, int, int, int, int]) -> datetime | None:
    try:
        return datetime(*parts, tzinfo=UTC)
    except ValueError:
        return None


class DamagedMember(OSError):
    """The content of a member is damaged; a retry would return the same bytes and error."""


class ZipStream(io.RawIOBase):
    """The decompressed bytes of one member.

    If the member is damaged, ``read`` raises ``DamagedMember`` after it has returned the bytes that
    can be decompressed. The constructor raises ``OSError`` if the member's header is damaged.
    """

    def __init__(self, path: str, place: Place) -> None:
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115
        self._place = place
        try:
            self._begin()
        except BaseException:
            self._file.close()
            raise

    def _begin(self) -> None:
        place = self._place
        header = os.pread(self._file.fileno(), _HEADER_BYTES, place.start)
        if len(header) < _HEADER_BYTES or not header.startswith(b"PK\x03\x04"):
            raise OSError(errno.EIO, "zip: the member has no header", self._file.name)
        start = place.start + _HEADER_BYTES + sum(struct.unpack("<HH", header[26:30]))
        raw: io.RawIOBase = Part(self._file, start, place.packed_bytes)
        method = _METHODS[place.method]
        if method == "lzma":
            raw = _as_lzma_file(raw, place)
        size = place.member.size_bytes
        # Allow one more byte, to detect a member that is longer than its declared size.
        self._stream = DecompressedStream(cast(BinaryIO, raw), size + 1, method)
        self._position = 0
        self._checksum = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        base = {
            os.SEEK_SET: 0,
            os.SEEK_CUR: self._position,
            os.SEEK_END: self._place.member.size_bytes,
        }[whence]
        target = max(base + offset, 0)
        if target < self._position:
            self._begin()
        while self._position < target:
            if not self.read(min(target - self._position, _CHUNK)):
                break
        return self._position

    def read(self, size: int = -1, /) -> bytes:
        left = self._place.member.size_bytes - self._position
        wanted = left if size < 0 else min(size, left)
        data = self._stream.read(wanted) if wanted > 0 else b""
        self._position += len(data)
        self._checksum = zlib.crc32(data, self._checksum)
        if not data and size != 0:
            problem = self._problem()
            if problem is not None:
                raise DamagedMember(errno.EIO, f"zip: {problem}")
        return data

    def _problem(self) -> str | None:
        """The problem found in the data, or ``None``; valid after all bytes have been read."""
        size = self._place.member.size_bytes
        if self._position < size:
            return self._stream.problem or f"ends after {self._position} of {size} bytes"
        if self._stream.read(1):
            return f"continues after {size} bytes, its size in the directory"
        if self._checksum != self._place.checksum:
            return "its checksum does not match"
        return None

    def close(self) -> None:
        self._file.close()
        super().close()


class _Joined(io.RawIOBase):
    """A stream that returns some given bytes, followed by the bytes of another stream."""

    def __init__(self, head: bytes, rest: io.RawIOBase) -> None:
        self._head = head
        self._rest = rest

    def read(self, size: int = -1, /) -> bytes:
        data, self._head = self._head[:size], self._head[size:]
        return data + (self._rest.read(size - len(data)) or b"")


def _as_lzma_file(raw: io.RawIOBase, place: Place) -> _Joined:
    """The member in the ``.lzma`` file format, because the raw stream decoder has no memory limit.

    In a zip, the LZMA properties follow a version field, and the uncompressed size is missing.
    """
    head = raw.read(9) or b""
    if len(head) < 9 or struct.unpack("<H", head[2:4])[0] != 5:
        raise OSError(errno.EIO, "zip: the lzma header of the member is damaged")
    size = (1 << 64) - 1 if place.flags & _HAS_END_MARK else place.member.size_bytes
    return _Joined(head[4:] + struct.pack("<Q", size), raw)
