"""Types that all archive formats share: members, their positions, and reasons to reject them."""

from __future__ import annotations

import io
import os
import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import BinaryIO

# The maximum path length on Linux. Names are limited, because those of all members are kept in
# memory.
MAX_NAME_BYTES = 4096
# The number of characters that are shown of a name that is too long.
_SHOWN_NAME = 200


class ArchiveError(Exception):
    """An archive, or a part of it, cannot be listed; the message states the reason."""


@dataclass(frozen=True, slots=True)
class Member:
    """A file inside an archive; ``refusal`` is the reason why it is not read, or ``None``.

    ``is_seekable`` is false if reading from an offset requires decompressing all bytes before it.
    """

    name: str
    size_bytes: int
    modified_at: datetime | None = None
    host: str | None = None
    refusal: str | None = None
    is_seekable: bool = True

    def refused(self, reason: str) -> Member:
        return Member(self.name[:MAX_NAME_BYTES], self.size_bytes, refusal=reason)


@dataclass(frozen=True, slots=True)
class Place:
    """A member and its position: bytes [start, start + size) of the decompressed archive.

    In a zip, ``start`` is the offset of the member's local header; ``packed_bytes``, ``method``,
    ``flags``, and ``checksum`` are copied from the central directory.
    """

    member: Member
    start: int = 0
    packed_bytes: int = 0
    method: int = 0
    flags: int = 0
    checksum: int = 0

    def cut(self, size_bytes: int) -> Place:
        return replace(self, member=replace(self.member, size_bytes=size_bytes))


def refusal_of(name: str) -> str | None:
    """The reason to reject a member with this name, or ``None``."""
    if name.startswith(("/", "\\")) or re.match(r"[A-Za-z]:", name):
        return "an absolute path inside an archive"
    if ".." in name.replace("\\", "/").split("/"):
        return 'a path with ".." inside an archive'
    return None


def too_long(name: str) -> str | None:
    size = len(name.encode("utf-8", "surrogatepass"))
    return f"a name of {size} bytes, allowed: {MAX_NAME_BYTES}" if size > MAX_NAME_BYTES else None


def shortened(name: str) -> str:
    return name if too_long(name) is None else f"{name[:_SHOWN_NAME]}..."


class Part(io.RawIOBase):
    """Bytes [start, start + size) of a file, as a stream with its own position."""

    def __init__(self, flat: BinaryIO, start: int, size: int) -> None:
        self._flat = flat
        self._start = start
        self._size = size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = max(base + offset, 0)
        return self._position

    def tell(self) -> int:
        return self._position

    def read(self, size: int = -1, /) -> bytes:
        left = max(self._size - self._position, 0)
        wanted = left if size < 0 else min(size, left)
        # Do not seek: all users of an open file share one position, even in forked processes.
        data = os.pread(self._flat.fileno(), wanted, self._start + self._position)
        self._position += len(data)
        return data
