"""Caches packs, and data derived from them, on disk for later startups.

The key of an object is a digest of everything that the object depends on.
"""

from __future__ import annotations

import hashlib
import pickle
import stat
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal

from flink_triage.disk_cache import read_cached, write_cached
from flink_triage.yaml_documents import MAX_FILE_BYTES

Kind = Literal["signatures", "terms"]


def kept(kind: Kind, key: str) -> object | None:
    """The object stored under the key, or ``None``."""
    data = read_cached(kind, key)
    if data is None:
        return None
    try:
        # Unpickling is safe, because only this user can write to the cache.
        stored: object = pickle.loads(data)
    except Exception:  # a truncated pickle may raise any exception
        return None
    return stored


def keep(kind: Kind, key: str, stored: object) -> None:
    write_cached(kind, key, pickle.dumps(stored, protocol=5))


def key_of_files(directories: Sequence[Path]) -> str:
    """A digest of the signature files and of the code."""
    digest = hashlib.sha256(code_digest().encode())
    for directory in directories:
        files = (*directory.rglob("*.y*ml"), *directory.glob("*.json"))
        digest.update(f"{directory}\0{directory.is_dir()}\0".encode())
        for path in sorted(files):
            content = _content(path)
            digest.update(f"{path}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


@lru_cache(maxsize=1)
def code_digest() -> str:
    """A digest of the Python version, and of the sizes and times of all modules of the package."""
    digest = hashlib.sha256(sys.version.encode())
    home = Path(__file__).parents[1]
    if home.is_dir():
        modules = sorted(home.rglob("*.py"))
    else:  # the package is imported from an archive
        modules = [next(parent for parent in home.parents if parent.is_file())]
    for module in modules:
        status = module.stat()
        digest.update(f"{module}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return digest.hexdigest()


def _content(path: Path) -> bytes:
    """The bytes of a signature file up to the size limit, or the reason why it is unreadable."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return b"is not a regular file"
        with path.open("rb") as file:
            return file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        return str(error).encode()
