"""Lists the input files, sorted by path, and the files that are not read, with reasons."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import BinaryIO

from flink_triage.errors import UsageError
from flink_triage.logs.inputs.archives import SEPARATOR, list_members, open_member, split_member
from flink_triage.logs.inputs.deployments import name_apart, name_of_file, name_of_folder
from flink_triage.logs.inputs.path_names import on_disk, shown
from flink_triage.logs.inputs.storage import is_uri, list_stored, local_path, open_stored
from flink_triage.logs.text.redact import redact_path
from flink_triage.model import Quarantined
from flink_triage.pickles import pickled_by_position
from flink_triage.settings import DEFAULT_SETTINGS, Settings

# Files with these extensions are ignored in a folder or an archive, but read if the input is the
# file itself.
_NOT_LOGS = frozenset(
    {
        ".class", ".css", ".csv", ".html", ".ipynb", ".jar", ".java", ".js", ".md", ".parquet",
        ".pdf", ".png", ".properties", ".py", ".scala", ".sh", ".sql", ".svg", ".toml", ".tsv",
        ".xml", ".yaml", ".yml",
    }
)  # fmt: skip
_NO_LOG = "ignored: not a log by its name; pass the file itself to read it"


@pickled_by_position
@dataclass(frozen=True, slots=True)
class InputFile:
    """One file to read; ``root`` is the input argument that contains it.

    ``path`` is a path or a URI. ``host`` is the name of the machine that wrote the file; it is set
    only for files in the output of ``yarn logs``. ``is_seekable`` is false if reading from an
    offset requires reading all bytes before it. ``folder_name`` and ``file_name`` are longer
    deployment names for grouping by folder and by file; ``None`` if the default name is unique
    among the inputs.
    """

    path: str
    size_bytes: int
    modified_at: datetime
    root: str
    host: str | None = None
    is_seekable: bool = True
    folder_name: str | None = None
    file_name: str | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """The files and problems found by a listing that started at ``began_at``."""

    files: tuple[InputFile, ...]
    quarantined: tuple[Quarantined, ...]
    began_at: datetime


def list_inputs(inputs: Sequence[str], settings: Settings = DEFAULT_SETTINGS) -> Listing:
    """The regular files below the inputs (paths or URIs), without duplicates.

    The files are sorted by their real paths or URIs. Files with an extension that logs do not have,
    such as ``.jar``, are ignored, unless they are an input. A local archive is replaced by its
    members, as ``archive!/member``; an archive at a URI is treated as a single file. Links inside
    an input directory are not followed, but the input itself may be a link. Raises ``UsageError``
    for an input that does not exist, and for a URI that cannot be listed, and
    ``EnvironmentProblem`` for a URI if PyArrow is missing.
    """
    began_at = datetime.now(UTC)
    files: dict[str, InputFile] = {}
    quarantined: list[Quarantined] = []
    for given in inputs:
        if is_uri(given):
            _add_stored(given, files, quarantined)
            continue
        root = root_of(given)
        if os.path.isdir(root):
            found = _walk(root, quarantined)
        else:
            found = [(root, os.path.realpath(root))]
        for path, key in found:
            _add(path, key, root, files, quarantined, settings)
    listed = [files[key] for key in sorted(files)]
    return Listing(name_apart(listed), tuple(quarantined), began_at)


def root_of(given: str) -> str:
    """The path of a local input; raises ``UsageError`` if it does not exist."""
    root = local_path(given)
    if not os.path.lexists(root):
        raise UsageError(f"input: {root!r} does not exist; expected a file or a directory")
    return root


def nothing_to_read(inputs: Sequence[str]) -> UsageError:
    return UsageError(f"nothing to read: no files found in {', '.join(inputs)}")


def open_binary(path: str) -> BinaryIO:
    """A byte stream of a file, a URI, or a member of an archive.

    Raises ``OSError`` if it cannot be opened; for a URI, also the other errors of ``open_stored``.
    """
    if is_uri(path):
        return open_stored(path)
    member = split_member(path)
    if member is not None:
        return open_member(*member, DEFAULT_SETTINGS)
    return open(on_disk(path), "rb", buffering=0)


def deployment_of(file: InputFile, group_by: str = "directory") -> str:
    """The name of the deployment to which a file belongs.

    With ``directory``, the name is the folder below the input, or the name of the input for files
    directly in it. With ``file``, the name is the path below the input. Any other value is a regex
    that is searched for in the path. The name is then its first group, or the whole match if the
    regex has no group; if this text is missing or empty, it is the name for ``directory``. Secrets
    in the name are masked, so names that differ only in a secret become identical. Raises
    ``UsageError`` for an invalid regex.
    """
    return redact_path(_deployment_of(file, group_by))


def _deployment_of(file: InputFile, group_by: str) -> str:
    if group_by == "file":
        return file.file_name or name_of_file(file.path, file.root)
    by_folder = file.folder_name or name_of_folder(file.path, file.root)
    if group_by == "directory":
        return by_folder
    try:
        match = re.search(group_by, file.path)
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(
            f"--group-by: {group_by[:200]!r} is not directory, file or a regex ({error})"
        ) from None
    if match is None:
        return by_folder
    return (match[1] if match.re.groups else match[0]) or by_folder


def _walk(root: str, quarantined: list[Quarantined]) -> list[tuple[str, str]]:
    """The paths of the files below a folder, each with its real path."""
    found: list[tuple[str, str]] = []
    inside = os.path.realpath(root)
    folders = [(root, inside)]
    while folders:
        folder, real_folder = folders.pop()
        below: list[tuple[str, str]] = []
        for entry in _entries(folder, quarantined):
            # This path contains no links, because links are not followed.
            real_path = os.path.join(real_folder, entry.name)
            if entry.is_symlink():
                reason = _refused_link(entry.path, inside)
                if reason is not None:
                    quarantined.append(Quarantined(shown(entry.path), reason))
            elif entry.is_dir(follow_symlinks=False):
                below.append((entry.path, real_path))
            elif _is_no_log(entry.name):
                quarantined.append(Quarantined(shown(entry.path), _NO_LOG))
            else:
                found.append((entry.path, real_path))
        folders += reversed(below)
    return found


def _entries(folder: str, quarantined: list[Quarantined]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        quarantined.append(Quarantined(shown(folder), _reason(error)))
        return []


def _refused_link(path: str, inside: str) -> str | None:
    """The reason to report for a link; ``None`` if its target is inside the input directory."""
    target = os.path.realpath(path)
    if not os.path.exists(target):
        return "a broken link"
    if os.path.commonpath((inside, target)) != inside:
        return "a link that leads out of the input"
    return None


def _is_no_log(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in _NOT_LOGS


def _add_stored(root: str, files: dict[str, InputFile], quarantined: list[Quarantined]) -> None:
    """Add the files at a URI; the listing contains neither links nor permissions."""
    try:
        found = list_stored(root)
    except OSError as error:
        raise UsageError(f"input: {root!r} cannot be listed: {error}") from None
    if found is None:
        raise UsageError(f"input: {root!r} does not exist; expected a file or a directory")
    for stored in found:
        if stored.uri != root and _is_no_log(stored.uri):
            quarantined.append(Quarantined(stored.uri, _NO_LOG))
        elif stored.uri not in files:
            files[stored.uri] = InputFile(stored.uri, stored.size_bytes, stored.modified_at, root)


def _add(
    path: str,
    key: str,
    root: str,
    files: dict[str, InputFile],
    quarantined: list[Quarantined],
    settings: Settings,
) -> None:
    if key in files:
        return
    try:
        info = os.stat(path)
        if not stat.S_ISREG(info.st_mode):
            quarantined.append(Quarantined(shown(path), "not a regular file"))
            return
        if not os.access(path, os.R_OK):
            quarantined.append(Quarantined(shown(path), "permission denied"))
            return
    except OSError as error:
        quarantined.append(Quarantined(shown(path), _reason(error)))
        return
    modified_at = datetime.fromtimestamp(info.st_mtime, tz=UTC)
    file = InputFile(shown(path), info.st_size, modified_at, shown(root))
    if not _add_members(path, file, key, files, quarantined, settings):
        files[key] = file


def _add_members(
    path: str,
    archive: InputFile,
    key: str,
    files: dict[str, InputFile],
    quarantined: list[Quarantined],
    settings: Settings,
) -> bool:
    """If the file is an archive, add its members instead; return whether the file is replaced.

    An archive without members is not replaced, unless it has a problem, which is added instead.
    """
    try:
        listed = list_members(path, settings)
    except OSError:
        return False  # The error is reported when the file is read.
    if listed is None:
        return False
    members, problem = listed
    if problem is not None:
        reason = f"partial: {problem}" if members else problem
        quarantined.append(Quarantined(archive.path, reason))
    for member in members:
        path = f"{archive.path}{SEPARATOR}{member.name}"
        if member.refusal is not None:
            quarantined.append(Quarantined(path, member.refusal))
        elif _is_no_log(member.name):
            quarantined.append(Quarantined(path, "ignored: not a log by its name"))
        else:
            # A member cannot be newer than its archive.
            at = min(member.modified_at or archive.modified_at, archive.modified_at)
            # File names on disk never contain a NUL character.
            files[f"{key}\0{member.name}"] = InputFile(
                path, member.size_bytes, at, archive.root, member.host, member.is_seekable
            )
    return bool(members) or problem is not None


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
