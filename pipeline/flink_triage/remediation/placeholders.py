"""Captures in sentences: ``{path} is full`` with path=/mnt → ``/mnt is full``."""

from __future__ import annotations

import re
from collections.abc import Mapping

_NAME = re.compile(r"\{([A-Za-z_]\w*)\}")
# A captured path or message is quoted in a sentence; beyond this it is no longer one.
_MAX_CAPTURE_CHARS = 300


def fill(text: str, captures: Mapping[str, str]) -> str:
    """``text`` with every captured name replaced; names without a capture stay as written.

    Only whole names are looked up: nothing is formatted, indexed or evaluated.
    """
    return _NAME.sub(lambda found: _printable(captures.get(found[1], found[0])), text)


def one_line(text: str) -> str:
    """Printable characters only, runs of anything else and of spaces as one space."""
    if not text.isprintable():
        text = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(text.split())


def _printable(value: str) -> str:
    flat = one_line(value)
    return flat if len(flat) <= _MAX_CAPTURE_CHARS else flat[:_MAX_CAPTURE_CHARS] + "..."
