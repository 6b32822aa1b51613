"""Inserts captures into sentences: ``{path} is full`` with path=/mnt becomes ``/mnt is full``."""

from __future__ import annotations

import re
from collections.abc import Mapping

_NAME = re.compile(r"\{([A-Za-z_]\w*)\}")
# The maximum length of a captured path or message in a sentence.
_MAX_CAPTURE_CHARS = 300


def fill(text: str, captures: Mapping[str, str]) -> str:
    """``text`` with each ``{name}`` of a capture replaced by its value; other names are kept.

    A value is put on one line and cut to 300 characters. Only complete names are looked up; nothing
    is formatted, indexed, or evaluated.
    """
    return _NAME.sub(lambda found: _printable(captures.get(found[1], found[0])), text)


def one_line(text: str) -> str:
    """``text`` on one line.

    A run of spaces and unprintable characters becomes one space, or is removed at the start and
    end.
    """
    if not text.isprintable():
        text = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(text.split())


def _printable(value: str) -> str:
    flat = one_line(value)
    return flat if len(flat) <= _MAX_CAPTURE_CHARS else flat[:_MAX_CAPTURE_CHARS] + "..."
