"""What a file is, by its content: heads, chunk digests, and whether one is a prefix of another.

All lengths and hashes are of decompressed bytes, so that ``.log.1`` and ``.log.1.gz`` are one.
A prefix is known by the sha256 of each whole chunk of 8 MiB and of the rest: it grows without
reading again what was hashed, and workers hash their own ranges side by side.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, cast

from flink_triage.logs.compression import compression_of, open_decompressed
from flink_triage.logs.files import open_binary
from flink_triage.settings import DEFAULT_SETTINGS, KIB, MIB

if TYPE_CHECKING:
    from hashlib import _Hash as Hash

HEAD_BYTES = 64 * KIB
CHUNK_BYTES = 8 * MIB
DIGEST_BYTES = 32
READ_BYTES = 1 * MIB
COMPRESSION_MAGIC_BYTES = 16

Opener = Callable[[str], BinaryIO]


@dataclass(frozen=True, slots=True)
class Prefix:
    """The first ``size_bytes`` of a file; ``digests`` holds 32 bytes per whole chunk."""

    size_bytes: int
    digests: bytes = b""
    tail_sha256: str = hashlib.sha256().hexdigest()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def read_head(path: str, open_file: Opener, size: int = HEAD_BYTES) -> bytes:
    """At most ``size`` first bytes; less where the file ends or breaks off."""
    with closing(open_file(path)) as stream:
        return read_exactly(stream, size)


def read_exactly(stream: BinaryIO, size: int) -> bytes:
    """``size`` bytes of the stream, fewer at its end (or where its compression breaks off)."""
    return b"".join(_parts(stream, size))


def _parts(stream: BinaryIO, size: int) -> Iterator[bytes]:
    while size > 0:
        try:
            part = stream.read(min(size, READ_BYTES))
        except (EOFError, OSError):
            return
        if not part:
            return
        yield part
        size -= len(part)


def hash_prefix(path: str, open_file: Opener, size: int | None = None) -> Prefix:
    """The prefix of ``size`` bytes, or of the whole file; shorter where the file is."""
    digests: list[bytes] = []
    done, tail = 0, hashlib.sha256()
    with closing(open_file(path)) as stream:
        for length, digest in _chunks(stream, size):
            done += length
            if length == CHUNK_BYTES:
                digests.append(digest.digest())
            else:
                tail = digest
    return Prefix(done, b"".join(digests), tail.hexdigest())


def _chunks(stream: BinaryIO, size: int | None) -> Iterator[tuple[int, Hash]]:
    """Length and hash of each chunk of the next ``size`` bytes; the last may be shorter."""
    left = size
    while left is None or left > 0:
        wanted = CHUNK_BYTES if left is None else min(CHUNK_BYTES, left)
        length, digest = _hash_of_next(stream, wanted)
        if not length:
            return
        yield length, digest
        if length < wanted:
            return
        if left is not None:
            left -= length


def _hash_of_next(stream: BinaryIO, size: int) -> tuple[int, Hash]:
    """How many of the next ``size`` bytes there are, and their hash; they are not kept."""
    digest = hashlib.sha256()
    length = 0
    for part in _parts(stream, size):
        digest.update(part)
        length += len(part)
    return length, digest


def hash_chunks(path: str, open_file: Opener, start: int, end: int) -> tuple[int, bytes]:
    """Digests of the whole chunks that begin in [start, end) of a file that can be sought.

    Returns the index of the first of them and their digests; a chunk that the file does not fill
    is left out.
    """
    first, last = -(-start // CHUNK_BYTES), -(-end // CHUNK_BYTES)
    if first >= last:
        return first, b""
    with closing(open_file(path)) as stream:
        stream.seek(first * CHUNK_BYTES)
        chunks = _chunks(stream, (last - first) * CHUNK_BYTES)
        whole = (digest.digest() for length, digest in chunks if length == CHUNK_BYTES)
        return first, b"".join(whole)


def tail_hash(path: str, open_file: Opener, consumed: int) -> str:
    """The hash of what lies between the last whole chunk and ``consumed``."""
    start = consumed // CHUNK_BYTES * CHUNK_BYTES
    with closing(open_file(path)) as stream:
        stream.seek(start)
        return _hash_of_next(stream, consumed - start)[1].hexdigest()


def starts_with(path: str, open_file: Opener, prefix: Prefix) -> bool:
    """Whether the file's first bytes are those of ``prefix``; reads that many of them."""
    return hash_prefix(path, open_file, prefix.size_bytes) == prefix


def compare(path: str, open_file: Opener, prefix: Prefix) -> bool | None:
    """Whether the file goes on after ``prefix``; None when it does not begin with it."""
    with closing(open_file(path)) as stream:
        digests: list[bytes] = []
        tail = hashlib.sha256()
        for length, digest in _chunks(stream, prefix.size_bytes):
            if length == CHUNK_BYTES:
                at = len(digests) * DIGEST_BYTES
                if prefix.digests[at : at + DIGEST_BYTES] != digest.digest():
                    return None
                digests.append(digest.digest())
            else:
                tail = digest
        read = len(digests) * DIGEST_BYTES
        if read != len(prefix.digests) or tail.hexdigest() != prefix.tail_sha256:
            return None
        return bool(read_exactly(stream, 1))


class _PlainStream(io.RawIOBase):
    """Decompressed bytes as a stream that can be closed but not sought."""

    def __init__(self, raw: BinaryIO, max_bytes: int) -> None:
        self._raw = raw
        self._plain = open_decompressed(raw, max_bytes)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        return self._plain.read(size)

    def close(self) -> None:
        self._raw.close()
        super().close()


def open_plain(path: str) -> BinaryIO:
    """The decompressed bytes of a file; it can be sought when it is not compressed.

    A stream that breaks off ends there, as it does for the scanner.
    """
    raw = open_binary(path)
    try:
        is_plain = compression_of(raw.read(COMPRESSION_MAGIC_BYTES)) == "none"
        raw.seek(0)
    except OSError:
        raw.close()
        raise
    return raw if is_plain else cast(BinaryIO, _PlainStream(raw, DEFAULT_SETTINGS.max_file_bytes))
