"""Names as paths show them, and back: no two files are shown alike.  Also: what names tell.

Neither Arrow nor JSON holds a name that is no UTF-8, so its bytes are written out, as ``\\xff``.  A
path ``archive!/member`` is a member's, so of a folder whose name ends in ``!`` that is written out.
So is the backslash of a name that looks like either.
"""

from __future__ import annotations

import os
import re

# Between an archive and its member.
SEPARATOR = "!/"
_BYTE = re.compile(rb"\\x([0-9a-f]{2})")
_LIKE_A_BYTE = re.compile(r"\\(?=x[0-9a-f]{2})")
# On Windows, a backslash separates folders, and every name is Unicode.
_IS_WINDOWS = os.name == "nt"
# As Flink's start scripts and YARN name them; a number or a compression may follow.
_OUTPUT = re.compile(r"\.(?:out|err)(?:\.[\w.-]{1,40})?\Z")


def shown(path: str) -> str:
    """The path with every misleading byte and ``!`` written out."""
    if not _IS_WINDOWS:
        path = _LIKE_A_BYTE.sub(r"\\x5c", path) if "\\x" in path else path
        path = path.replace(SEPARATOR, "\\x21/")
    if path.isascii():
        return path
    try:
        return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # Half of a UTF-16 pair, which is a byte of no file system.
        return path.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def on_disk(path: str) -> str:
    """The path that ``shown`` wrote, as the file system has it."""
    if _IS_WINDOWS or "\\x" not in path:
        return path
    raw = _BYTE.sub(lambda match: bytes((int(match[1], 16),)), path.encode("utf-8"))
    return os.fsdecode(raw)


def is_output(path: str) -> bool:
    """Whether a file holds a process's printed output rather than its loggers' output."""
    return _OUTPUT.search(path) is not None
