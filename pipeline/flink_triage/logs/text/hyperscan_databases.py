"""Compiles expressions to a Hyperscan database, and caches it in the user's cache directory."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Sequence
from typing import Any

import hyperscan

from flink_triage.disk_cache import read_cached, write_cached


def database_of(
    expressions: Sequence[bytes], flags: int | Sequence[int] = 0, *, literal: bool = True
) -> tuple[Any, Any]:
    """A database in block mode, and its scratch space; the ID of an expression is its index.

    ``flags`` apply to all expressions, or are a sequence with one entry per expression. Threads
    must not share scratch space.
    """
    each = [flags] * len(expressions) if isinstance(flags, int) else list(flags)
    # `__version__` is missing in the type stubs, but importing importlib.metadata would add 20 ms
    # to every startup.
    release = hyperscan.__version__  # type: ignore[attr-defined]
    about = (release, platform.machine(), platform.system(), literal, each)
    key = hashlib.sha256(repr((about, list(expressions))).encode()).hexdigest()
    database = _kept(key)
    if database is None:
        database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        database.compile(
            expressions=list(expressions),
            ids=list(range(len(expressions))),
            elements=len(expressions),
            flags=each,
            literal=literal,
        )
        write_cached("hyperscan", key, hyperscan.dumpb(database))
    return database, hyperscan.Scratch(database)


def _kept(key: str) -> Any:
    data = read_cached("hyperscan", key)
    if data is None:
        return None
    try:
        return hyperscan.loadb(data, hyperscan.HS_MODE_BLOCK)
    except (hyperscan.error, ValueError):
        # For example, the database was compiled for a different processor, or is truncated.
        return None
