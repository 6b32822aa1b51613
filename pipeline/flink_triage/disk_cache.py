"""Stores objects that are slow to build, in the user's cache directory, for later processes.

The cache is optional. Callers rebuild an object if its entry is missing or unreadable, or if the
cache directory is not private to the user.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from pathlib import Path

# The number of entries kept per kind: enough for the packs of several projects and versions.
_MAX_ENTRIES_PER_KIND = 24


def cache_directory() -> Path:
    """``$XDG_CACHE_HOME/flink-triage``; ``XDG_CACHE_HOME`` defaults to ``~/.cache``.

    Raises ``RuntimeError`` if the home directory is required but cannot be determined.
    """
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "flink-triage"


def read_cached(kind: str, key: str) -> bytes | None:
    """The stored data; ``None`` if it cannot be read, or if the cache directory is not private."""
    try:
        directory = _private_directory()
        return (directory / f"{kind}-{key}").read_bytes()
    except (OSError, RuntimeError):
        return None


def write_cached(kind: str, key: str, data: bytes) -> None:
    """Store the data if possible; of each kind, only the 24 newest entries are kept."""
    with contextlib.suppress(OSError, RuntimeError):
        directory = _private_directory()
        handle, name = tempfile.mkstemp(prefix=".new-", dir=directory)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            Path(name).replace(directory / f"{kind}-{key}")
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        kept = sorted(directory.glob(f"{kind}-*"), key=lambda path: path.stat().st_mtime_ns)
        for path in kept[:-_MAX_ENTRIES_PER_KIND]:
            path.unlink(missing_ok=True)


def _private_directory() -> Path:
    return private_directory(cache_directory() / "compiled")


def private_directory(path: Path) -> Path:
    """A directory that only this user can access; created if missing.

    Raises ``OSError`` if ``path`` cannot be created, is not a directory, belongs to a different
    user, or is accessible to other users.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = path.lstat()
    is_own = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
    if not stat.S_ISDIR(status.st_mode) or not is_own or status.st_mode & 0o077:
        raise PermissionError(errno.EACCES, "is not private to this user", str(path))
    return path
