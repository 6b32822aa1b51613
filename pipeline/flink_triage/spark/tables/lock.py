"""Locks a local warehouse, so that it has only one writer.

Delta's commit on a local disk is an existence check and a rename, and according to the Delta
documentation, concurrent writers may lose a commit. A local warehouse is therefore locked with
``flock`` during a run. The kernel releases the lock when the process ends in any way, so there are
no stale locks. The content of the lock file is used only in the error message for a second writer.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO

from flink_triage.errors import EnvironmentProblem, OutputHeldError

LOCK_NAME = ".flink-triage.lock"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@contextmanager
def held(directory: Path, now: datetime) -> Iterator[None]:
    """Lock ``directory`` (created if it is missing) during the block.

    Raises ``OutputHeldError`` if another run holds the lock, and ``EnvironmentProblem`` if the
    folder is not writable or cannot be locked, or if the lock file is not a regular file.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        handle = _opened(directory / LOCK_NAME)
    except OSError as error:
        raise EnvironmentProblem(f"{directory}: cannot be written: {error.strerror}") from None
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OutputHeldError(f"{directory}: {describe_holder(handle)}") from None
        except OSError as error:
            raise EnvironmentProblem(
                f"{directory}: this file system does not support locks ({error.strerror}); use a "
                "local disk, or --catalog and --schema"
            ) from None
        _sign(handle, now)
        try:
            yield
        finally:
            handle.truncate(0)


def _opened(path: Path) -> IO[str]:
    """The open lock file; a link is rejected, because writing would change its target."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        handle = os.open(path, flags, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise EnvironmentProblem(f"{path}: is a link, expected a regular file") from None
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise EnvironmentProblem(f"{path}: is not a regular file")
    return os.fdopen(handle, "r+", encoding="utf-8")


def _sign(handle: IO[str], now: datetime) -> None:
    handle.seek(0)
    handle.truncate()
    json.dump(
        {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "boot_id": _boot_id(),
            "started": now.isoformat(timespec="seconds"),
        },
        handle,
    )
    handle.flush()


def describe_holder(handle: IO[str]) -> str:
    """A sentence about the holder of the lock, with its process if the file identifies it."""
    handle.seek(0)
    try:
        holder = json.loads(handle.read())
        return (
            f"another run holds it: process {holder['pid']} on {holder['host']}, "
            f"since {holder['started']}; wait for it, or write to another warehouse"
        )
    except (ValueError, KeyError, TypeError):
        return "another run holds it; wait for it, or write to another warehouse"


def _boot_id() -> str | None:
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return None
