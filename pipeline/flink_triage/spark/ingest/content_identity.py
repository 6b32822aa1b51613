"""Computes the identity of the content of a file: digests of its head and of a window.

The window is the last 64 KiB of the part that was read. Offsets count decompressed bytes, so that
``a.log.1`` and ``a.log.1.gz`` have the same identity. Two cases are not detected: an edit that
keeps the head and the window, and a different file with the same head and window.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import BinaryIO

from flink_triage.logs.inputs.archives import DamagedMember
from flink_triage.logs.inputs.compression import DecompressedStream, compression_of
from flink_triage.logs.inputs.files import InputFile, open_binary
from flink_triage.logs.inputs.storage import is_uri, stat_stored
from flink_triage.settings import KIB, MIB

# Lengths at which the head of a file is hashed. Files of different lengths are compared at the
# longest length that both reach.
HEAD_STEPS = (128, 1 * KIB, 8 * KIB, 64 * KIB)
HEAD_BYTES = HEAD_STEPS[-1]
WINDOW_BYTES = 64 * KIB
# Half of a SHA-256: a collision among a billion files is practically impossible.
DIGEST_BYTES = 16
_READ_BYTES = 1 * MIB
_MAGIC_BYTES = 16


@dataclass(frozen=True, slots=True)
class Mark:
    """Digests that identify the first ``consumed_bytes`` of a file.

    ``head`` has one digest for each of ``HEAD_STEPS`` that these bytes fill; ``window`` is the
    digest of their last 64 KiB. Up to 128 KiB are covered completely.
    """

    consumed_bytes: int = 0
    head: bytes = b""
    window: bytes = b""


NOTHING = Mark()


@dataclass(frozen=True, slots=True)
class Stamp:
    """Size on disk and times of an open file; a rename also updates ``changed_at``."""

    size_bytes: int
    modified_at: datetime
    changed_at: datetime


def digest(data: bytes) -> bytes:
    """The first 16 bytes of the SHA-256 of ``data``."""
    return hashlib.sha256(data).digest()[:DIGEST_BYTES]


def head_of(data: bytes) -> bytes:
    """The digests of a head; ``data`` is the first 64 KiB of a file, or the whole file."""
    running, at, digests = hashlib.sha256(), 0, b""
    for step in HEAD_STEPS:
        if step > len(data):
            break
        running.update(data[at:step])
        at = step
        digests += running.digest()[:DIGEST_BYTES]
    return digests


def heads_agree(one: bytes, other: bytes) -> bool:
    """Whether two heads are equal over the length that both have."""
    common = min(len(one), len(other))
    return one[:common] == other[:common]


class OpenFile:
    """A file that stays open: every read sees the same file, even after its path is replaced.

    An object in a store is an exception: its name may refer to a different object later. At most
    ``max_bytes`` of a compressed file are decompressed. Opening raises ``OSError``.
    """

    def __init__(self, listed: InputFile, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._listed = listed
        self.raw: BinaryIO = open_binary(listed.path)
        try:
            self.compression = compression_of(self.raw.read(_MAGIC_BYTES))
            self.raw.seek(0)
        except BaseException:
            self.raw.close()
            raise
        self._plain: DecompressedStream | None = None
        self._at = 0

    def __enter__(self) -> OpenFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.raw.close()

    @property
    def is_plain(self) -> bool:
        return self.compression == "none"

    def stamp(self) -> Stamp:
        """Current size and times; for a member of an archive, the values in the listing."""
        if isinstance(self.raw, io.FileIO):
            info = os.fstat(self.raw.fileno())
            modified_at = datetime.fromtimestamp(info.st_mtime, UTC)
            changed_at = datetime.fromtimestamp(info.st_ctime, UTC)
            return Stamp(info.st_size, modified_at, max(modified_at, changed_at))
        listed = self._listed
        if is_uri(listed.path):
            stored = stat_stored(listed.path)
            return Stamp(stored.size_bytes, stored.modified_at, stored.modified_at)
        return Stamp(listed.size_bytes, listed.modified_at, listed.modified_at)

    def rewound(self) -> BinaryIO:
        """The raw bytes from the start, for a reader that does not close them."""
        self._plain = None
        self.raw.seek(0)
        return self.raw

    def read_at(self, offset: int, size: int) -> bytes:
        """``size`` decompressed bytes from ``offset``; fewer if the readable part ends before.

        If ``offset`` is before the previous offset, a compressed file is reread from its start.
        """
        if self.is_plain:
            self.raw.seek(offset)
            return _read(self.raw, size)
        if self._plain is None or self._at > offset:
            self._plain = DecompressedStream(self.rewound(), self._max_bytes)
            self._at = 0
        while self._at < offset:
            skipped = len(self._plain.read(min(offset - self._at, _READ_BYTES)))
            if not skipped:
                return b""
            self._at += skipped
        data = self._plain.read(size)
        self._at += len(data)
        return data

    def goes_on_after(self, offset: int) -> bool:
        return bool(self.read_at(offset, 1))

    def tail(self, size_bytes: int) -> bytes:
        """The digest of the last 64 KiB of the first ``size_bytes`` on disk.

        It distinguishes files with the same beginning, and is empty if the file is shorter than
        ``size_bytes``. The end of an archive member cannot be reached without reading all preceding
        bytes, so its head is used instead.
        """
        if not (isinstance(self.raw, io.FileIO) or is_uri(self._listed.path)):
            return self.mark_of_head().window
        start = max(size_bytes - WINDOW_BYTES, 0)
        self._plain = None
        self.raw.seek(start)
        data = _read(self.raw, size_bytes - start)
        return digest(data) if len(data) == size_bytes - start else b""

    def mark(self, consumed_bytes: int, head: bytes = b"") -> Mark | None:
        """The mark of the first ``consumed_bytes``; ``None`` if not all of them can be read.

        ``head`` contains known digests of the first 64 KiB. If it is complete and
        ``consumed_bytes`` is larger than 64 KiB, only the window is read.
        """
        if consumed_bytes == 0:
            return NOTHING
        if consumed_bytes <= HEAD_BYTES:
            window = self.read_at(0, consumed_bytes)
            head = head_of(window)
        else:
            if len(head) < len(HEAD_STEPS) * DIGEST_BYTES:
                head = head_of(self.read_at(0, HEAD_BYTES))
            window = self.read_at(consumed_bytes - WINDOW_BYTES, WINDOW_BYTES)
        if len(window) < min(consumed_bytes, WINDOW_BYTES):
            return None
        return Mark(consumed_bytes, head, digest(window))

    def mark_of_head(self) -> Mark:
        """The mark of the first 64 KiB, or of the whole file if it is shorter."""
        head = self.read_at(0, HEAD_BYTES)
        return Mark(len(head), head_of(head), digest(head)) if head else NOTHING

    def holds(self, mark: Mark, head: bytes) -> bool:
        """Whether the file starts with the marked content; ``head`` are its own head digests."""
        return self.mark(mark.consumed_bytes, head) == mark


def _read(stream: BinaryIO, size: int) -> bytes:
    """Up to ``size`` bytes. A damaged zip member ends at the damage, as in gzip."""
    parts = []
    with contextlib.suppress(DamagedMember):
        while size > 0 and (part := stream.read(min(size, _READ_BYTES))):
            parts.append(part)
            size -= len(part)
    return b"".join(parts)
