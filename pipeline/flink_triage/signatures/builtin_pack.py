"""Locates the built-in signatures in the wheel, in the source tree, or in an archive."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from functools import lru_cache
from pathlib import Path


def builtin_pack_directory() -> Path:
    """``flink_triage/_patterns`` in the wheel, or ``patterns`` in the source tree.

    If the wheel is imported as an archive (as with ``spark-submit --py-files``), the signatures are
    unpacked next to it, once. If that folder is not writable, each process unpacks them into a
    temporary folder.
    """
    package = Path(__file__).resolve().parents[1]
    installed = package / "_patterns"
    if installed.is_dir():
        return installed
    archive = package.parent
    if archive.is_file():
        return _unpacked(archive, f"{package.name}/_patterns/")
    return package.parents[1] / "patterns"


@lru_cache(maxsize=1)
def _unpacked(archive: Path, prefix: str) -> Path:
    """The files of ``archive`` under ``prefix``, in a folder for all processes if possible."""
    status = archive.stat()
    home = archive.with_name(f".{archive.name}-{status.st_size}-{status.st_mtime_ns}")
    if home.is_dir():
        return home / prefix
    # In any other folder, a predictable name is not safe to use.
    beside = archive.parent if os.access(archive.parent, os.W_OK) else None
    scratch = Path(tempfile.mkdtemp(prefix=".flink-triage-", dir=beside))
    with zipfile.ZipFile(archive) as files:
        files.extractall(scratch, [name for name in files.namelist() if name.startswith(prefix)])
    if beside is None:
        return scratch / prefix
    try:
        scratch.rename(home)
    except OSError:  # another process was first
        shutil.rmtree(scratch, ignore_errors=True)
    return home / prefix
