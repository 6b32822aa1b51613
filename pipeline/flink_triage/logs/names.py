"""Names that are no UTF-8: shown with their bytes as ``\\xff``, opened as they are on disk.

Neither Arrow nor JSON holds such a name, and a path stands in every table and report.
"""

from __future__ import annotations

import os
import re

_BYTE = re.compile(rb"\\x([0-9a-f]{2})")


def shown(path: str) -> str:
    """The path with each byte that is no UTF-8 written out; any other path as it is."""
    if path.isascii():
        return path
    try:
        return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # Half of a UTF-16 pair, which is a byte of no file system.
        return path.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def on_disk(path: str) -> str:
    """The path that ``shown`` wrote, as the file system has it."""
    if "\\x" not in path or os.path.lexists(path):
        return path
    raw = _BYTE.sub(lambda match: bytes((int(match[1], 16),)), path.encode("utf-8"))
    return os.fsdecode(raw)
