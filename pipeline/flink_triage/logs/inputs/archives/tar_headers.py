"""Lists the members of an uncompressed tar, in archive order.

``tarfile`` parses the header of each member. This module reads the extension headers (long names,
pax records) itself, with limits, because ``tarfile`` reads them completely and recursively, and
keeps a copy of the archive's pax records for every member. After a damaged header, the listing
continues at the next block that looks like a header.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import BinaryIO

from flink_triage.logs.inputs.archives.members import (
    ArchiveError,
    Member,
    Place,
    shortened,
    too_long,
)
from flink_triage.logs.inputs.path_names import shown
from flink_triage.settings import KIB, MIB

_BLOCK = tarfile.BLOCKSIZE
# Sufficient for two names of 4 KiB and the records that Solaris, macOS, and SELinux add.
_MAX_RECORDS_BYTES = 64 * KIB
_RECORD = re.compile(rb"(\d{1,20}) ([^=\n]{1,255})=")
_KNOWN_RECORDS = frozenset({b"path", b"size", b"mtime", b"GNU.sparse.name"})
# pax records with this prefix indicate a sparse file.
_SPARSE = b"GNU.sparse."
_MAGIC = re.compile(rb"ustar")
_MAGIC_AT = 257
_CHUNK = MIB


@dataclass(slots=True)
class _Announced:
    """The extension headers before a member; ``problem`` states why they cannot be used."""

    records: dict[bytes, bytes] = field(default_factory=dict)
    problem: str | None = None


def tar_places(flat: BinaryIO) -> Iterator[Place]:
    """Yield the members; raises ``ArchiveError`` at the end if any header was damaged.

    If the offset after a member is too large to seek to, the error is raised immediately.
    """
    offset, of_all, announced = 0, dict[bytes, bytes](), _Announced()
    damage: str | None = None
    while (block := _read_at(flat, offset, _BLOCK)).strip(b"\0"):
        try:
            info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except (tarfile.HeaderError, ValueError, OverflowError) as error:
            damage = damage or f"{error} at byte {offset}"
            offset = _next_header(flat, offset + _BLOCK)
            announced = _Announced()
            continue
        offset += _BLOCK
        if info.type in (tarfile.XGLTYPE, *_BEFORE_A_MEMBER) and info.size >= 0:
            extension = _read_extension(flat, offset, info)
            offset += _in_blocks(info.size)
            if info.type == tarfile.XGLTYPE:
                of_all |= extension.records
            else:
                announced.records |= extension.records
                announced.problem = announced.problem or extension.problem
            continue
        if info.type == tarfile.GNUTYPE_SPARSE:
            offset = _behind_sparse_map(flat, offset, block)
        place = _place(info, offset, of_all | announced.records, announced.problem)
        announced = _Announced()
        if place is not None:
            yield place
        size = place.member.size_bytes if place is not None else info.size
        if info.isreg() or info.type not in tarfile.SUPPORTED_TYPES:
            offset += _in_blocks(max(size, 0))
    if damage is not None:
        raise ArchiveError(damage)


_BEFORE_A_MEMBER = (
    tarfile.XHDTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)


def _place(
    info: tarfile.TarInfo, offset: int, records: Mapping[bytes, bytes], problem: str | None
) -> Place | None:
    """The member that a header describes; ``None`` for a folder."""
    name, size, mtime = info.name, info.size, float(info.mtime)
    raw = records.get(b"GNU.sparse.name", records.get(b"path"))
    if raw is not None:
        name = raw.decode("utf-8", "surrogateescape").rstrip("/")
    if info.isdir():
        return None
    try:
        size = int(records.get(b"size", size))
        mtime = float(records.get(b"mtime", mtime))
    except ValueError as error:
        problem = problem or f"a damaged pax header ({error})"
    refusal = problem or too_long(name)
    if size < 0:
        refusal, size = f"an invalid size of {size} bytes", 0
    elif info.issym() or info.islnk():
        refusal = "a link inside an archive"
    elif not info.isreg() or info.type == tarfile.GNUTYPE_SPARSE or _SPARSE in records:
        refusal = refusal or "not a regular file"
    member = Member(shown(shortened(name)), size, _moment(mtime), refusal=refusal)
    return Place(member, offset)


def _read_extension(flat: BinaryIO, offset: int, info: tarfile.TarInfo) -> _Announced:
    """The known records in a pax header; a GNU long name is returned as a ``path`` record."""
    if info.size > _MAX_RECORDS_BYTES:
        kind = "name" if info.type == tarfile.GNUTYPE_LONGNAME else "header"
        return _Announced(problem=f"a {kind} of {info.size} bytes, allowed: {_MAX_RECORDS_BYTES}")
    if info.type == tarfile.GNUTYPE_LONGLINK:
        return _Announced()
    data = _read_at(flat, offset, info.size)
    if info.type == tarfile.GNUTYPE_LONGNAME:
        return _Announced({b"path": data.partition(b"\0")[0]})
    records: dict[bytes, bytes] = {}
    position = 0
    while position < len(data) and data[position]:
        match = _RECORD.match(data, position)
        end = position + int(match[1]) if match else 0
        if match is None or not match.end() < end <= len(data):
            return _Announced(records, "a damaged pax header")
        if match[2].startswith(_SPARSE):
            records[_SPARSE] = b""
        if match[2] in _KNOWN_RECORDS:
            records[match[2]] = data[match.end() : end - 1]
        position = end
    return _Announced(records)


def _behind_sparse_map(flat: BinaryIO, offset: int, block: bytes) -> int:
    """The offset after the sparse map of old GNU tar.

    A flag in each block indicates whether another block follows.
    """
    is_continued = bool(block[482])
    while is_continued:
        more = _read_at(flat, offset, _BLOCK)
        offset += _BLOCK
        is_continued = len(more) == _BLOCK and bool(more[504])
    return offset


def _next_header(flat: BinaryIO, offset: int) -> int:
    """Offset of the next block that looks like a header, or of the end of the file."""
    while data := _read_at(flat, offset, _CHUNK):
        for match in _MAGIC.finditer(data):
            if match.start() % _BLOCK == _MAGIC_AT:
                return offset + match.start() - _MAGIC_AT
        offset += len(data)
    return offset


def _read_at(flat: BinaryIO, offset: int, size: int) -> bytes:
    try:
        flat.seek(offset)
    except (OverflowError, ValueError) as error:
        raise ArchiveError(f"a member ends beyond the end of the archive ({error})") from None
    return flat.read(size)


def _in_blocks(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK


def _moment(seconds: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(seconds, tz=UTC)
    except (ValueError, OverflowError, OSError):
        return None
