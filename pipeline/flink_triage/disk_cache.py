"""What takes long to make at each start, kept in the user's cache directory.

Nothing depends on it: what is missing, unreadable, or not the user's alone is made anew.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path

# Of each kind as many are kept: packs of several projects, and of the version before.
_MOST_OF_A_KIND = 24


def cache_directory() -> Path:
    """``$XDG_CACHE_HOME/flink-triage``, by default under ``~/.cache``."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "flink-triage"


def read_cached(kind: str, key: str) -> bytes | None:
    """What was kept under the key; ``None`` where others could have written it."""
    try:
        directory = _private_directory()
        return (directory / f"{kind}-{key}").read_bytes()
    except (OSError, RuntimeError):
        return None


def write_cached(kind: str, key: str, data: bytes) -> None:
    """Keep it if that can be done; of the same kind, the oldest are removed."""
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
        for path in kept[:-_MOST_OF_A_KIND]:
            path.unlink(missing_ok=True)


def _private_directory() -> Path:
    """A directory that only this user can write to; raises ``OSError`` where there is none."""
    directory = cache_directory() / "compiled"
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = directory.lstat()
    is_own = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
    if not stat.S_ISDIR(status.st_mode) or not is_own or status.st_mode & 0o077:
        raise PermissionError(f"{directory} is not private")
    return directory
