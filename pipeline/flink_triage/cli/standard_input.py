"""Copies standard input and pipes into private files, so that all inputs are seekable."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from flink_triage.errors import EnvironmentProblem, UsageError
from flink_triage.settings import DEFAULT_SETTINGS, MIB

_CHUNK = MIB


@contextmanager
def piped_inputs(
    paths: Sequence[str], max_bytes: int = DEFAULT_SETTINGS.max_piped_bytes
) -> Iterator[list[str]]:
    """The paths, with ``-`` and each pipe replaced by a file that contains the piped bytes.

    Only the user can read the file, which is removed at the end. Raises ``EnvironmentProblem`` if
    a pipe cannot be copied or requires more than half of the free disk space, and ``UsageError`` if
    it contains more than ``max_bytes``.
    """
    if not any(map(_is_pipe, paths)):
        yield list(paths)
        return
    with tempfile.TemporaryDirectory(prefix="flink-triage-") as folder:
        found = []
        for number, path in enumerate(paths):
            if not _is_pipe(path):
                found.append(path)
                continue
            kept = Path(folder, f"stdin-{number}" if number else "stdin", "stdin.log")
            kept.parent.mkdir()
            try:
                with _opened(path) as source, kept.open("xb") as file:
                    _copy(path, source, file, max_bytes)
            except OSError as error:
                raise EnvironmentProblem(f"{path}: cannot be stored in {kept}: {error}") from None
            found.append(str(kept))
        yield found


def _copy(path: str, source: BinaryIO, file: BinaryIO, max_bytes: int) -> None:
    """Copy ``source``, leaving at least half of the free disk space unused."""
    free = shutil.disk_usage(os.path.dirname(file.name)).free // 2
    left = min(max_bytes, free)
    while block := source.read(_CHUNK):
        left -= len(block)
        if left < 0 and free < max_bytes:
            raise EnvironmentProblem(
                f"{path}: input is larger than {free} bytes, half of the free space in "
                f"{tempfile.gettempdir()}; write it to a file and pass its path"
            )
        if left < 0:
            raise UsageError(
                f"{path}: input is larger than the allowed {max_bytes} bytes; write it to a file "
                "and pass its path"
            )
        file.write(block)


def _is_pipe(path: str) -> bool:
    if path == "-":
        return True
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    if path == "-":
        yield sys.stdin.buffer
    else:
        with open(path, "rb") as source:
            yield cast(BinaryIO, source)
