"""A pack without problems, kept for the next start under a digest of all that it is made of."""

from __future__ import annotations

import hashlib
import pickle
import sys
from collections.abc import Sequence
from pathlib import Path

from flink_triage.disk_cache import read_cached, write_cached

_KIND = "signatures"
# Code that reads signatures: where it changes, so may the pack.
_CODE = Path(__file__).parent
_MORE_CODE = ("model.py", "user_regex.py", "yaml_documents.py", "plain_yaml.py")


def kept_pack(directories: Sequence[Path]) -> object | None:
    """The pack of these directories as it was kept, or ``None``."""
    data = read_cached(_KIND, _key(directories))
    if data is None:
        return None
    try:
        # Only this user can write to the cache.
        kept: object = pickle.loads(data)
    except Exception:  # a cut-off pickle may raise anything
        return None
    return kept


def keep_pack(directories: Sequence[Path], pack: object) -> None:
    write_cached(_KIND, _key(directories), pickle.dumps(pack, protocol=5))


def _key(directories: Sequence[Path]) -> str:
    digest = hashlib.sha256(sys.version.encode())
    for code in (*_CODE.glob("*.py"), *(_CODE.parent / name for name in _MORE_CODE)):
        status = code.stat()
        digest.update(f"{code}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    for directory in directories:
        files = (*directory.rglob("*.y*ml"), *directory.glob("*.json"))
        digest.update(f"{directory}\0{directory.is_dir()}\0".encode())
        for path in sorted(files):
            try:
                content = path.read_bytes()
            except OSError as error:
                content = str(error).encode()
            digest.update(f"{path}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()
