"""Checks that a user's regex is valid, and that its compilation does not require much memory."""

from __future__ import annotations

import re

import regex

MAX_CHARS = 4096
# Compilation expands fixed repetitions, which requires about 270 bytes per character.
_MAX_WRITTEN_OUT = 100_000
_TOKEN = re.compile(
    r"\\. | \[\^?\]?(?:\\.|[^\]\\])*\] | \{(?P<count>[0-9]{1,30})(?:,[0-9]*)?\} | .",
    re.DOTALL | re.VERBOSE,
)


def problem_of_regex(pattern: str) -> str | None:
    """The reason why a regex is rejected, or ``None``."""
    if len(pattern) > MAX_CHARS:
        return f"has {len(pattern)} characters, allowed: {MAX_CHARS}"
    if _written_out(pattern) > _MAX_WRITTEN_OUT:
        return f"is longer than {_MAX_WRITTEN_OUT} characters after its repetitions are expanded"
    try:
        regex.compile(pattern)
    except regex.error as error:
        return f"is not a regex: {error}"
    except (RecursionError, OverflowError):
        return "is not a regex: nested too deeply or repeated too often"
    return None


def _written_out(pattern: str) -> int:
    """The approximate length of the pattern after each ``{n}`` or ``{n,m}`` is expanded n times."""
    # The size of each open group, and the size of the last part, to which a repetition applies.
    sums, last = [0], 0
    for token in _TOKEN.finditer(pattern):
        if token["count"] is not None:
            again = last * max(int(token["count"]) - 1, 0)
            sums[-1] += again
            last += again
        elif token[0] == "(":
            sums.append(0)
        elif token[0] == ")" and len(sums) > 1:
            last = sums.pop()
            sums[-1] += last
        else:
            last = 1
            sums[-1] += last
    return sum(sums)
