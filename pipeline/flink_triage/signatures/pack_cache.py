"""Caches valid packs for later startups, under a digest of everything that they depend on."""

from __future__ import annotations

import hashlib
import pickle
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

from flink_triage.disk_cache import read_cached, write_cached
from flink_triage.yaml_documents import MAX_FILE_BYTES

_KIND = "signatures"
# The code that reads signatures; if it changes, packs may change.
_CODE = Path(__file__).parent
_MORE_CODE = ("user_regex.py", "yaml_documents.py", "plain_yaml.py")


def kept_pack(key: str) -> object | None:
    """The pack stored under the key, or ``None``."""
    data = read_cached(_KIND, key)
    if data is None:
        return None
    try:
        # Unpickling is safe, because only this user can write to the cache.
        kept: object = pickle.loads(data)
    except Exception:  # a truncated pickle may raise any exception
        return None
    return kept


def keep_pack(key: str, pack: object) -> None:
    write_cached(_KIND, key, pickle.dumps(pack, protocol=5))


def key_of(directories: Sequence[Path]) -> str:
    """A digest of the signature files, the code that reads them, and the Python version."""
    digest = hashlib.sha256(sys.version.encode())
    for code in _code():
        status = code.stat()
        digest.update(f"{code}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    for directory in directories:
        files = (*directory.rglob("*.y*ml"), *directory.glob("*.json"))
        digest.update(f"{directory}\0{directory.is_dir()}\0".encode())
        for path in sorted(files):
            content = _content(path)
            digest.update(f"{path}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _code() -> list[Path]:
    """The modules that read signatures, or the archive from which the package is imported."""
    if not _CODE.is_dir():
        return [next(parent for parent in _CODE.parents if parent.is_file())]
    home = _CODE.parent
    others = (home / name for name in _MORE_CODE)
    return [*_CODE.glob("*.py"), *(home / "model").glob("*.py"), *others]


def _content(path: Path) -> bytes:
    """The bytes of a signature file up to the size limit, or the reason why it is unreadable."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return b"is not a regular file"
        with path.open("rb") as file:
            return file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        return str(error).encode()
