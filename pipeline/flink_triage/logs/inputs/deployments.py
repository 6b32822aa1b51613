"""Derives deployment names from the paths and URIs of log files, and makes them unique."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from flink_triage.logs.inputs.archives import SEPARATOR
from flink_triage.logs.inputs.storage import is_uri, split_uri

if TYPE_CHECKING:
    from flink_triage.logs.inputs.files import InputFile

# A deployment is not named after these folders or YARN container folders, but after their parent
# folder.
_LOG_FOLDERS = frozenset({"log", "logs"})
_CONTAINER_FOLDER = re.compile(r"container_(?:e\d{1,9}_)?\d{1,20}_\d{1,9}_\d{1,9}_\d{1,9}|unknown")
# The suffixes of an archive's name are omitted from the name of its folder.
_ARCHIVE_NAME = re.compile(
    r"(?:\.(?:tar|tgz|tbz2?|txz|tzst|zip|log|txt|out))?(?:\.(?:gz|bz2|xz|zst|lz4))?!$",
    re.IGNORECASE,
)
Parts = tuple[str, ...]


def parts_of(path: str) -> Parts:
    """The components of the absolute path; for a URI, the bucket or host is the first component."""
    if is_uri(path):
        _, authority, rest = split_uri(path)
        return tuple(part for part in (authority, *rest.split("/")) if part)
    return tuple(part for part in os.path.abspath(path).split(os.sep) if part)


def name_of_folder(path: str, root: str) -> str:
    """The path of the folder below the input; for files directly in the input, the input's name.

    Log and container folders at the end of a path are omitted. If the input is the file itself, the
    name is that of its folder.
    """
    return "/".join(_folder(path, root)[1]) or "default"


def name_of_file(path: str, root: str) -> str:
    """The path below the input; if the input is the file or its archive, the file name."""
    return "/".join(_file(path, root)[1])


def name_apart(files: Sequence[InputFile]) -> tuple[InputFile, ...]:
    """The same files, with longer deployment names where different folders or files share a name.

    A longer name includes as many parent folders as required to make the names unique.
    """
    folders = _longer_names(files, _folder)
    # Paths below a single folder are unique.
    is_one_folder = len({file.root for file in files}) == 1 and not any(
        _is_alone(file.path, file.root) for file in files
    )
    paths = {} if is_one_folder else _longer_names(files, _file)
    if not (folders or paths):
        return tuple(files)
    return tuple(
        replace(
            file,
            folder_name=folders.get(_folder(file.path, file.root)[0]),
            file_name=paths.get(_file(file.path, file.root)[0]),
        )
        for file in files
    )


def _folder(path: str, root: str) -> tuple[Parts, Parts]:
    """The full path of the folder after which a deployment is named, and the name."""
    is_member = path.startswith(f"{root}{SEPARATOR}")
    folder = _from_here(os.path.dirname(path))
    return _folder_below(folder, None if path == root else _from_here(root), is_member)


def _from_here(path: str) -> str:
    return path if os.path.isabs(path) or is_uri(path) else os.path.join(os.getcwd(), path)


# Cached, because the function is called several times per file, and many files share a folder.
@lru_cache(maxsize=4096)
def _folder_below(path: str, root: str | None, is_member: bool) -> tuple[Parts, Parts]:
    """Like ``_folder``, for a folder; ``root`` is ``None`` if the input is the file itself."""
    folder = parts_of(path)
    base = len(folder) if root is None else len(parts_of(root)) - is_member
    folder = tuple(_ARCHIVE_NAME.sub("", part) for part in folder)
    end = len(folder)
    while end > base and _is_passed_over(folder[end - 1]):
        end -= 1
    if end > base:
        return folder[:end], folder[base:end]
    if end > 1 and _is_passed_over(folder[end - 1]):
        end -= 1
    return folder[:end], folder[max(end - 1, 0) : end]


def _is_passed_over(folder: str) -> bool:
    return folder in _LOG_FOLDERS or _CONTAINER_FOLDER.fullmatch(folder) is not None


def _file(path: str, root: str) -> tuple[Parts, Parts]:
    parts = parts_of(path)
    return parts, parts[-1:] if _is_alone(path, root) else parts[len(parts_of(root)) :]


def _is_alone(path: str, root: str) -> bool:
    """Whether the input is the file itself, or the archive that contains it."""
    return path == root or path.startswith(f"{root}{SEPARATOR}")


def _longer_names(
    files: Sequence[InputFile], named: Callable[[str, str], tuple[Parts, Parts]]
) -> Mapping[Parts, str]:
    """A unique longer name for each full path that shares its name with others."""
    sharing: dict[Parts, set[Parts]] = defaultdict(set)
    for file in files:
        whole, name = named(file.path, file.root)
        sharing[name].add(whole)
    longer: dict[Parts, str] = {}
    for name, wholes in sharing.items():
        if len(wholes) < 2:
            continue
        size = len(name) + 1
        while len({whole[-size:] for whole in wholes}) < len(wholes):
            size += 1
        longer |= {whole: "/".join(whole[-size:]) for whole in wholes}
    return longer
