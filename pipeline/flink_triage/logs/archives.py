"""An archive in, the log files inside it out, each under the path ``archive!/member``.

Archives are tar (plain or compressed), zip, and what ``yarn logs`` prints: the files of all
containers one after another.  Told by content.  Nothing is unpacked under a name of the archive's
choosing: a member is a stream, so no member can be written anywhere.
"""

from __future__ import annotations

import contextlib
import errno
import io
import mmap
import os
import re
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import BinaryIO, cast

from flink_triage.settings import Settings

from .compression import DecompressedStream, compression_of
from .names import on_disk, shown

SEPARATOR = "!/"
_HEAD_BYTES = 4096
_CHUNK = 4 * 1024 * 1024
_YARN_SECTION = re.compile(
    rb"^(?:Container: (?P<container>container_\w{1,128}) on (?P<host>\S{1,512})[^\n]*\n"
    rb"(?:LogAggregationType:[^\n]*\n)?(?:={3,}[^\n]*\n)?)?LogType: ?(?P<name>[^\s/]{1,255})",
    re.MULTILINE,
)
# "node7.example.com_45454" or with the upload's time behind it.
_YARN_PORT = re.compile(r"(?:[_:]\d{1,20}){1,2}$")


@dataclass(frozen=True, slots=True)
class Member:
    """A file inside an archive; ``refusal`` is why it is not read, or ``None``.

    ``is_seekable`` is false where to read a part means to decompress all before it.
    """

    name: str
    size_bytes: int
    modified_at: datetime | None = None
    host: str | None = None
    refusal: str | None = None
    is_seekable: bool = True


@dataclass(frozen=True, slots=True)
class _Place:
    """A member and how it is opened; bytes [start, start + size) of a flat archive.

    ``stored_name`` is the name that a zip knows it by.
    """

    member: Member
    start: int = 0
    stored_name: str = ""


@dataclass(slots=True)
class _Index:
    """``flat`` holds the archive's plain bytes; ``None`` for zip."""

    places: dict[str, _Place]
    refused: tuple[Member, ...]
    problem: str | None
    flat: BinaryIO | None


def split_member(path: str) -> tuple[str, str] | None:
    """Archive and member of a path such as ``bundle.tgz!/logs/jm.log``; ``None`` for a file."""
    position = path.find(SEPARATOR)
    while position >= 0:
        archive = on_disk(path[:position])
        if os.path.isfile(archive):
            return archive, path[position + len(SEPARATOR) :]
        position = path.find(SEPARATOR, position + 1)
    return None


def list_members(path: str, settings: Settings) -> tuple[tuple[Member, ...], str | None] | None:
    """The members of an archive in its order, and what of it could not be read.

    ``None`` when the file is no archive.  Raises ``OSError`` when it cannot be read at all.
    """
    with open(path, "rb", buffering=0) as raw:
        kind, _ = _kind_of(raw)
    # Of many files few are archives.
    index = _index_of(path, settings) if kind is not None else None
    if index is None:
        return None
    members = (*(place.member for place in index.places.values()), *index.refused)
    return members, index.problem


def open_member(path: str, name: str, settings: Settings) -> BinaryIO:
    """The bytes of a member, from its start; raises ``OSError`` like ``open``."""
    index = _index_of(path, settings)
    place = index.places.get(name) if index is not None else None
    if index is None or place is None:
        raise FileNotFoundError(errno.ENOENT, "vanished from its archive", f"{path}!/{name}")
    if index.flat is None:
        return cast(BinaryIO, _ZipMember(path, place.stored_name))
    return cast(BinaryIO, _Slice(index.flat, place.start, place.member.size_bytes))


# --- what an archive holds ---------------------------------------------------------------------

# A compressed archive is unpacked once per process, not once per member.
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
            return _zip_index(path, settings)
        read = _tar_places if kind == "tar" else _yarn_places
        if not is_compressed:
            plain = cast(BinaryIO, os.fdopen(os.dup(raw.fileno()), "rb", buffering=0))
            return _flat_index(plain, read, settings, None)
        raw.seek(0)
        spool, problem = _spool(raw, settings)
        return _flat_index(spool, read, settings, problem)


def _kind_of(raw: BinaryIO) -> tuple[str | None, bool]:
    """``zip``, ``tar``, ``yarn`` or, for what is no archive, ``None``; and whether to decompress.

    ``raw`` stands at its start.
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
    is_yarn = b"Container: container_" in head and _YARN_SECTION.search(head) is not None
    return "yarn" if is_yarn else None, is_compressed


def _spool(raw: BinaryIO, settings: Settings) -> tuple[BinaryIO, str | None]:
    """The decompressed bytes in a file without a name, which ends with the process."""
    free = shutil.disk_usage(tempfile.gettempdir()).free
    stream = DecompressedStream(raw, min(settings.max_file_bytes, free // 2))
    spool = tempfile.TemporaryFile(prefix="flink-triage-")  # noqa: SIM115
    while block := stream.read(_CHUNK):
        spool.write(block)
    spool.flush()
    return cast(BinaryIO, spool), stream.problem


def _flat_index(
    flat: BinaryIO,
    read: Callable[[BinaryIO], Iterator[_Place]],
    settings: Settings,
    problem: str | None,
) -> _Index:
    size = os.fstat(flat.fileno()).st_size
    found: list[_Place] = []
    try:
        for place in read(flat):
            found.append(place)
            if len(found) > settings.max_archive_members:
                break
    except (tarfile.TarError, OSError, ValueError, OverflowError) as error:
        problem = problem or f"damaged: {error}"
    places: dict[str, _Place] = {}
    refused: list[Member] = []
    taken = 0
    for place in found:
        member = place.member
        reason = member.refusal or _refusal(member, places, taken, settings)
        if reason is None and place.start + member.size_bytes > size:
            # The archive breaks off in this member: what is there of it is read.
            problem = problem or "truncated"
            member = Member(member.name, max(size - place.start, 0), member.modified_at)
        if reason is not None:
            refused.append(Member(member.name, member.size_bytes, refusal=reason))
        else:
            places[member.name] = _Place(member, place.start)
            taken += member.size_bytes
    return _Index(places, tuple(refused), problem, flat)


def _refusal(
    member: Member, places: dict[str, _Place], taken: int, settings: Settings
) -> str | None:
    """Why a member is not read, by its name, its size and the bytes taken before it."""
    parts = member.name.replace("\\", "/").split("/")
    if member.name.startswith(("/", "\\")) or re.match(r"[A-Za-z]:", member.name):
        return "an absolute path inside an archive"
    if ".." in parts:
        return "a path that leads out of its archive"
    if member.name in places:
        return "a second member of the same name"
    if len(places) >= settings.max_archive_members:
        return f"beyond {settings.max_archive_members} members of one archive"
    if taken + member.size_bytes > settings.max_file_bytes:
        return f"beyond {settings.max_file_bytes} bytes of one archive"
    return None


def _tar_places(flat: BinaryIO) -> Iterator[_Place]:
    flat.seek(0)
    with tarfile.open(fileobj=flat, mode="r:") as archive:
        for info in archive:
            if info.isdir():
                continue
            refusal = None
            if info.issym() or info.islnk():
                refusal = "a link inside an archive"
            elif not info.isreg() or info.issparse():
                refusal = "not a regular file"
            member = Member(shown(info.name), info.size, _moment(info.mtime), refusal=refusal)
            yield _Place(member, info.offset_data)


def _yarn_places(flat: BinaryIO) -> Iterator[_Place]:
    """Sections tile the file: each owns the lines that announce it."""
    size = os.fstat(flat.fileno()).st_size
    sections: list[tuple[int, str, str | None]] = []
    container, host = "unknown", None
    names: dict[str, int] = {}
    with mmap.mmap(flat.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for match in _YARN_SECTION.finditer(data):
            if match["container"] is not None:
                container = match["container"].decode("ascii", "replace")
                host = _YARN_PORT.sub("", match["host"].decode("utf-8", "replace")) or None
            name = f"{container}/{match['name'].decode('utf-8', 'replace')}"
            names[name] = number = names.get(name, 0) + 1
            sections.append((match.start(), name if number == 1 else f"{name}.{number}", host))
    for index, (start, name, host) in enumerate(sections):
        begin = 0 if index == 0 else start
        end = sections[index + 1][0] if index + 1 < len(sections) else size
        yield _Place(Member(name, end - begin, host=host), begin)


def _zip_index(path: str, settings: Settings) -> _Index | None:
    places: dict[str, _Place] = {}
    refused: list[Member] = []
    taken = 0
    try:
        with zipfile.ZipFile(path) as archive:
            infos = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        return None
    for info in infos:
        if info.is_dir():
            continue
        reason = None
        if info.flag_bits & 1:
            reason = "encrypted"
        elif stat.S_ISLNK(info.external_attr >> 16):
            reason = "a link inside an archive"
        member = Member(
            shown(info.filename), info.file_size, _zip_moment(info.date_time), is_seekable=False
        )
        reason = reason or _refusal(member, places, taken, settings)
        if reason is not None:
            refused.append(Member(member.name, member.size_bytes, refusal=reason))
        else:
            places[member.name] = _Place(member, stored_name=info.filename)
            taken += member.size_bytes
    return _Index(places, tuple(refused), None, None)


def _moment(seconds: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(seconds, tz=timezone.utc)
    except (ValueError, OverflowError, OSError):
        return None


def _zip_moment(parts: tuple[int, int, int, int, int, int]) -> datetime | None:
    try:
        return datetime(*parts, tzinfo=timezone.utc)
    except ValueError:
        return None


# --- streams -----------------------------------------------------------------------------------


class _Slice(io.RawIOBase):
    """Bytes [start, start + size) of a file that others read too, some in forked processes."""

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
        # Of one open file all positions are one, also across a fork.
        data = os.pread(self._flat.fileno(), wanted, self._start + self._position)
        self._position += len(data)
        return data


class _ZipMember(io.RawIOBase):
    """One member of a zip archive; damage is an ``OSError`` like that of any file."""

    def __init__(self, path: str, name: str) -> None:
        # From Python 3.13 on what was not opened is closed, too.
        self._opened = contextlib.ExitStack()
        try:
            archive = self._opened.enter_context(zipfile.ZipFile(path))
            self._member = self._opened.enter_context(archive.open(name))
        except (
            zipfile.BadZipFile,
            NotImplementedError,
            RuntimeError,
            KeyError,
            ValueError,
        ) as error:
            raise OSError(errno.EIO, f"zip: {error}", path) from None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        return self._member.seek(offset, whence)

    def tell(self) -> int:
        return self._member.tell()

    def read(self, size: int = -1, /) -> bytes:
        try:
            return self._member.read(size)
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError) as error:
            raise OSError(errno.EIO, f"zip: {error}") from None

    def close(self) -> None:
        self._opened.close()
        super().close()
