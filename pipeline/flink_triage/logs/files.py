"""Input arguments in, a sorted listing of the files to read out; nothing is skipped silently."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import BinaryIO

from flink_triage.errors import UsageError
from flink_triage.model import Quarantined
from flink_triage.settings import DEFAULT_SETTINGS, Settings

from .archives import SEPARATOR, list_members, open_member, split_member

# Found in a folder, files of these names are not logs; named on the command line, they are read.
_NOT_LOGS = frozenset(
    {
        ".class", ".css", ".csv", ".html", ".ipynb", ".jar", ".java", ".js", ".md", ".parquet",
        ".pdf", ".png", ".properties", ".py", ".scala", ".sh", ".sql", ".svg", ".toml", ".tsv",
        ".xml", ".yaml", ".yml",
    }
)  # fmt: skip


_LOG_FOLDERS = frozenset({"log", "logs"})
_CONTAINER_FOLDER = re.compile(r"container_(?:e\d{1,9}_)?\d{1,20}_\d{1,9}_\d{1,9}_\d{1,9}|unknown")
_ARCHIVE_NAME = re.compile(
    r"(?:\.(?:tar|tgz|tbz2?|txz|tzst|zip|log|txt|out))?(?:\.(?:gz|bz2|xz|zst|lz4))?!$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class InputFile:
    """One file to read; ``root`` is the input argument through which it was found.

    ``host`` is where it was written, if what holds it says so; ``is_seekable`` is false where
    to read a part means to read all before it.
    """

    path: str
    size_bytes: int
    modified_at: datetime
    root: str
    host: str | None = None
    is_seekable: bool = True


@dataclass(frozen=True, slots=True)
class Listing:
    files: tuple[InputFile, ...]
    quarantined: tuple[Quarantined, ...]


def list_inputs(inputs: Sequence[str], settings: Settings = DEFAULT_SETTINGS) -> Listing:
    """All regular files below the inputs, each once, sorted by path.

    Of an archive its members are listed, as ``archive!/member``.  Links inside a directory are
    not followed out of it.  Raises ``UsageError`` for an input that does not exist.
    """
    files: dict[str, InputFile] = {}
    quarantined: list[Quarantined] = []
    for root in inputs:
        if not os.path.lexists(root):
            raise UsageError(f"input: {root!r} does not exist; expected a file or a directory")
        paths = _walk(root, quarantined) if os.path.isdir(root) else [root]
        for path in paths:
            _add(path, root, files, quarantined, settings)
    return Listing(tuple(files[key] for key in sorted(files)), tuple(quarantined))


def open_binary(path: str) -> BinaryIO:
    """A file, or a member of an archive, as a stream of its bytes."""
    member = split_member(path) if SEPARATOR in path else None
    if member is not None:
        return open_member(*member, DEFAULT_SETTINGS)
    return open(path, "rb", buffering=0)


def deployment_of(file: InputFile, group_by: str = "directory") -> str:
    """The deployment that a file belongs to.

    ``directory`` names its folder below the input (the input's own name for files right in it),
    ``file`` the file; anything else is a regex whose first group, or whole match, on the path is
    the name.  Raises ``UsageError`` for a regex that does not compile.
    """
    if group_by == "file":
        return _relative(file)
    if group_by == "directory":
        return _directory(file)
    try:
        match = re.search(group_by, file.path)
    except re.error as error:
        raise UsageError(
            f"--group-by: {group_by!r} is not directory, file or a regex ({error})"
        ) from None
    if match is None:
        return _directory(file)
    return (match[1] if match.re.groups else match[0]) or _directory(file)


def _relative(file: InputFile) -> str:
    if os.path.isdir(file.root):
        return os.path.relpath(file.path, file.root)
    return os.path.basename(file.path)


def _directory(file: InputFile) -> str:
    """The folder; a folder that is only called ``logs`` is named for the one that holds it.

    So are the folders of YARN's containers.  An archive is a folder of its own name.
    """
    root = os.path.abspath(file.root)
    folder = os.path.dirname(os.path.abspath(file.path))
    base = root if os.path.isdir(root) else folder
    if SEPARATOR in f"{folder}{os.sep}" and not os.path.isdir(root):
        base = os.path.dirname(root)
    relative = os.path.relpath(folder, base)
    name = os.path.basename(base) if relative == os.curdir else relative
    parts = [_ARCHIVE_NAME.sub("", part) for part in name.split(os.sep) if part]
    while parts and (parts[-1] in _LOG_FOLDERS or _CONTAINER_FOLDER.fullmatch(parts[-1])):
        parts.pop()
    if not parts and relative != os.curdir:
        parts = [os.path.basename(base)]
    if not parts or parts[-1] in _LOG_FOLDERS:
        parts = [os.path.basename(os.path.dirname(base))]
    return "/".join(parts) or "default"


def _walk(root: str, quarantined: list[Quarantined]) -> list[str]:
    found: list[str] = []
    inside = os.path.realpath(root)

    def refuse(error: OSError) -> None:
        quarantined.append(Quarantined(str(error.filename), _reason(error)))

    for folder, folders, names in os.walk(root, onerror=refuse):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            if os.path.islink(path):
                target = os.path.realpath(path)
                if os.path.commonpath((inside, target)) == inside:
                    continue  # The target is listed under its own name.
                quarantined.append(Quarantined(path, "a link that leads out of the input"))
                continue
            if os.path.splitext(name)[1].lower() in _NOT_LOGS:
                quarantined.append(Quarantined(path, "not a log by its name; name it to read it"))
                continue
            found.append(path)
    return found


def _add(
    path: str,
    root: str,
    files: dict[str, InputFile],
    quarantined: list[Quarantined],
    settings: Settings,
) -> None:
    key = os.path.realpath(path)
    if key in files:
        return
    try:
        info = os.stat(path)
        if not stat.S_ISREG(info.st_mode):
            quarantined.append(Quarantined(path, "not a regular file"))
            return
        if not os.access(path, os.R_OK):
            quarantined.append(Quarantined(path, "permission denied"))
            return
    except OSError as error:
        quarantined.append(Quarantined(path, _reason(error)))
        return
    modified_at = datetime.fromtimestamp(info.st_mtime, tz=timezone.utc)
    file = InputFile(path, info.st_size, modified_at, root)
    if not _add_members(file, key, files, quarantined, settings):
        files[key] = file


def _add_members(
    archive: InputFile,
    key: str,
    files: dict[str, InputFile],
    quarantined: list[Quarantined],
    settings: Settings,
) -> bool:
    """Whether the file is an archive; then its members are listed instead of it."""
    try:
        listed = list_members(archive.path, settings)
    except OSError:
        return False  # Whoever reads it will say why it cannot be read.
    if listed is None:
        return False
    members, problem = listed
    if problem is not None:
        quarantined.append(Quarantined(archive.path, f"partial: {problem}"))
    for member in members:
        path = f"{archive.path}{SEPARATOR}{member.name}"
        if member.refusal is not None:
            quarantined.append(Quarantined(path, member.refusal))
        elif os.path.splitext(member.name)[1].lower() in _NOT_LOGS:
            quarantined.append(Quarantined(path, "not a log by its name"))
        else:
            # No member was written to after its archive was.
            at = min(member.modified_at or archive.modified_at, archive.modified_at)
            files[f"{key}{SEPARATOR}{member.name}"] = InputFile(
                path, member.size_bytes, at, archive.root, member.host, member.is_seekable
            )
    return True


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
