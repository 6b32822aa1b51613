"""Lists the files inside an archive, each under the path ``archive!/member``, and opens them.

Supported archives are zip, tar with ``ustar`` headers, and the output of ``yarn logs``, which
concatenates the files of all containers; the last two may be compressed. Archives are detected by
content. A compressed archive is decompressed to an unnamed temporary file. Members are read as
streams and never written to a path named by the archive. Memory usage does not depend on the sizes
declared in an archive. A member that cannot be read safely is rejected with a reason.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO, cast

from flink_triage.logs.inputs.archives.members import ArchiveError, Member, Part, Place, refusal_of
from flink_triage.logs.inputs.archives.tar_headers import tar_places
from flink_triage.logs.inputs.archives.yarn_sections import HEADING, yarn_places
from flink_triage.logs.inputs.archives.zip_members import DamagedMember, ZipStream, zip_places
from flink_triage.logs.inputs.compression import DecompressedStream, compression_of
from flink_triage.logs.inputs.path_names import SEPARATOR, on_disk
from flink_triage.settings import Settings

__all__ = ["SEPARATOR", "DamagedMember", "Member", "list_members", "open_member", "split_member"]

_HEAD_BYTES = 4096
_CHUNK = 4 * 1024 * 1024


@dataclass(slots=True)
class _Index:
    """The members of an archive; ``flat`` is the archive without compression, ``None`` for zip."""

    places: dict[str, Place]
    refused: tuple[Member, ...]
    problem: str | None
    flat: BinaryIO | None


def split_member(path: str) -> tuple[str, str] | None:
    """Archive and member of a path such as ``bundle.tgz!/logs/jm.log``; ``None`` for a plain file.

    The path must come from ``path_names.shown``, which ensures that no folder name ends in ``!``.
    """
    archive, separator, member = path.partition(SEPARATOR)
    return (on_disk(archive), member) if separator else None


def list_members(path: str, settings: Settings) -> tuple[tuple[Member, ...], str | None] | None:
    """The members, and the problem if part of the archive is unreadable.

    The members to read come first, in archive order, and then the rejected members. Returns
    ``None`` if the file is not an archive. Raises ``OSError`` if it cannot be read, or cannot be
    decompressed to a temporary file.
    """
    with open(path, "rb", buffering=0) as raw:
        kind, _ = _kind_of(raw)
    # Most files are not archives.
    index = _index_of(path, settings) if kind is not None else None
    if index is None:
        return None
    members = (*(place.member for place in index.places.values()), *index.refused)
    return members, index.problem


def open_member(path: str, name: str, settings: Settings) -> BinaryIO:
    """A byte stream at the start of a member; raises ``OSError`` if it cannot be opened."""
    index = _index_of(path, settings)
    place = index.places.get(name) if index is not None else None
    if index is None or place is None:
        raise FileNotFoundError(errno.ENOENT, "no longer in its archive", f"{path}!/{name}")
    if index.flat is None:
        return cast(BinaryIO, ZipStream(path, place))
    return cast(BinaryIO, Part(index.flat, place.start, place.member.size_bytes))


# The number of indexes kept, so that a compressed archive is not decompressed again for each
# member.
_MAX_KEPT = 4
_kept: OrderedDict[tuple[str, int, int], _Index | None] = OrderedDict()


def _index_of(path: str, settings: Settings) -> _Index | None:
    info = os.stat(path)
    key = (os.path.abspath(path), info.st_size, info.st_mtime_ns)
    if key in _kept:
        _kept.move_to_end(key)
        return _kept[key]
    index = _read_index(path, settings)
    if index is not None:
        _kept[key] = index
        while len(_kept) > _MAX_KEPT:
            _kept.popitem(last=False)
    return index


def _read_index(path: str, settings: Settings) -> _Index | None:
    with open(path, "rb", buffering=0) as raw:
        kind, is_compressed = _kind_of(raw)
        if kind is None:
            return None
        if kind == "zip":
            return _index(lambda: zip_places(path), settings)
        read = tar_places if kind == "tar" else yarn_places
        problem = None
        if is_compressed:
            raw.seek(0)
            flat, problem = _spool(raw, settings)
        else:
            flat = cast(BinaryIO, os.fdopen(os.dup(raw.fileno()), "rb", buffering=0))
        return _index(lambda: read(flat), settings, flat, problem)


def _kind_of(raw: BinaryIO) -> tuple[str | None, bool]:
    """``zip``, ``tar``, ``yarn``, or ``None`` for any other file, and whether it is compressed.

    ``raw`` is positioned at its start.
    """
    head = raw.read(_HEAD_BYTES)
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "zip", False
    is_compressed = compression_of(head) != "none"
    if is_compressed:
        raw.seek(0)
        head = DecompressedStream(raw, _HEAD_BYTES).read(_HEAD_BYTES)
    if head[257:262] == b"ustar":
        return "tar", is_compressed
    is_yarn = b"Container: container_" in head and HEADING.search(head) is not None
    return "yarn" if is_yarn else None, is_compressed


def _spool(raw: BinaryIO, settings: Settings) -> tuple[BinaryIO, str | None]:
    """Write the decompressed bytes to an unnamed temporary file; return it, and the problem if any.

    The file is removed when it is closed.
    """
    free = shutil.disk_usage(tempfile.gettempdir()).free
    stream = DecompressedStream(raw, min(settings.max_file_bytes, free // 2))
    spool = tempfile.TemporaryFile(prefix="flink-triage-")  # noqa: SIM115
    while block := stream.read(_CHUNK):
        spool.write(block)
    spool.flush()
    return cast(BinaryIO, spool), stream.problem


def _index(
    read: Callable[[], Iterator[Place]],
    settings: Settings,
    flat: BinaryIO | None = None,
    problem: str | None = None,
) -> _Index:
    """List the members; ``problem`` is the problem found during decompression, if any."""
    size = os.fstat(flat.fileno()).st_size if flat is not None else None
    places: dict[str, Place] = {}
    refused: list[Member] = []
    left = settings.max_file_bytes
    most = settings.max_archive_members
    found = read()
    try:
        for place in islice(found, most):
            member = place.member
            reason = member.refusal or refusal_of(member.name)
            if reason is None and member.name in places:
                reason = "a duplicate member name"
            if reason is None and member.size_bytes > left:
                reason = f"exceeds {settings.max_file_bytes} bytes per archive"
            if reason is not None:
                refused.append(member.refused(reason))
                continue
            if size is not None and place.start + member.size_bytes > size:
                # The archive ends inside this member, so only the available part is read.
                problem = problem or "truncated"
                place = place.cut(max(size - place.start, 0))
            places[member.name] = place
            left -= member.size_bytes
        if next(found, None) is not None:
            problem = problem or f"only the first {most} members are read"
    except (ArchiveError, OSError) as error:
        problem = problem or f"damaged: {error}"
    return _Index(places, tuple(refused), problem, flat)
