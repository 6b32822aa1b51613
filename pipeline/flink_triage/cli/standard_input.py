"""Input arguments in, paths that can be listed and sought out: pipes are kept in a private file."""

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

from ..errors import EnvironmentProblem


@contextmanager
def piped_inputs(paths: Sequence[str]) -> Iterator[list[str]]:
    """The paths, with ``-`` and each pipe replaced by a file that holds what came through it.

    Only the user can read the file, and it is removed at the end.  Raises ``EnvironmentProblem``
    when it cannot be written.
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
                    shutil.copyfileobj(source, file)
            except OSError as error:
                raise EnvironmentProblem(f"{path}: cannot be kept in {kept}: {error}") from None
            found.append(str(kept))
        yield found


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
