"""Converts paths to a displayable form and back, without collisions, and detects output files.

Arrow and JSON cannot store names that are not valid UTF-8, so invalid bytes are escaped as in
``\\xff``. Because ``archive!/member`` denotes a member of an archive, a ``!`` at the end of a
folder name is also escaped. If a name already contains text such as ``\\xff``, its backslash is
escaped.
"""

from __future__ import annotations

import os
import re

# Separates the path of an archive from the name of its member.
SEPARATOR = "!/"
_BYTE = re.compile(rb"\\x([0-9a-f]{2})")
_LIKE_A_BYTE = re.compile(r"\\(?=x[0-9a-f]{2})")
# On Windows, nothing is escaped: the backslash is a path separator, and names are Unicode.
_IS_WINDOWS = os.name == "nt"
# Names used by Flink's start scripts and YARN; a number or a compression suffix may follow.
_OUTPUT = re.compile(r"\.(?:out|err)(?:\.[\w.-]{1,40})?\Z")


def shown(path: str) -> str:
    """The path with invalid bytes, and an ambiguous ``!`` or backslash, escaped."""
    if not _IS_WINDOWS:
        path = _LIKE_A_BYTE.sub(r"\\x5c", path) if "\\x" in path else path
        path = path.replace(SEPARATOR, "\\x21/")
    if path.isascii():
        return path
    try:
        return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # A lone UTF-16 surrogate that does not represent a byte of a path.
        return path.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def on_disk(path: str) -> str:
    """The path on the file system for a path returned by ``shown``."""
    if _IS_WINDOWS or "\\x" not in path:
        return path
    raw = _BYTE.sub(lambda match: bytes((int(match[1], 16),)), path.encode("utf-8"))
    return os.fsdecode(raw)


def is_output(path: str) -> bool:
    """Whether the name is that of a file with the stdout or stderr of a process."""
    return _OUTPUT.search(path) is not None
