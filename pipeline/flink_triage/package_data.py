"""Locates the signatures and the demo logs in the wheel, in the source tree, or in an archive."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from functools import lru_cache
from pathlib import Path


def builtin_pack_directory() -> Path:
    """The folder of the built-in signatures."""
    return packaged_folder("_patterns", "patterns")


def packaged_folder(name: str, source: str) -> Path:
    """``flink_triage/<name>`` in the wheel, or the folder ``source`` of the source tree.

    If the wheel is imported as an archive (as with ``spark-submit --py-files``), the folder is
    unpacked next to it, once. If the folder of the archive is not writable, each process unpacks it
    into a temporary folder.
    """
    package = Path(__file__).resolve().parent
    installed = package / name
    if installed.is_dir():
        return installed
    archive = package.parent
    if archive.is_file():
        return _unpacked(archive, package.name, name)
    return package.parents[1] / source


@lru_cache(maxsize=2)
def _unpacked(archive: Path, package: str, name: str) -> Path:
    """Unpack the folder ``package/name`` of ``archive``, unless a process already has."""
    status = archive.stat()
    home = archive.with_name(f".{archive.name}-{name}-{status.st_size}-{status.st_mtime_ns}")
    if home.is_dir():
        return home / package / name
    # In a folder that other users can write to, they could create a predictable name first.
    beside = archive.parent if os.access(archive.parent, os.W_OK) else None
    scratch = Path(tempfile.mkdtemp(prefix=".flink-triage-", dir=beside))
    with zipfile.ZipFile(archive) as files:
        wanted = [path for path in files.namelist() if path.startswith(f"{package}/{name}/")]
        files.extractall(scratch, wanted)
    if beside is None:
        return scratch / package / name
    try:
        scratch.rename(home)
    except OSError:  # another process was first
        shutil.rmtree(scratch, ignore_errors=True)
    return home / package / name
