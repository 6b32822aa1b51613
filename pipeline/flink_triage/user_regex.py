"""A regex that a user wrote in, why it cannot be used out; compiling it takes little memory."""

from __future__ import annotations

import re

import regex

MAX_CHARS = 4096
# A fixed repetition is written out when it is compiled, with some 270 bytes a character.
_MAX_WRITTEN_OUT = 100_000
_TOKEN = re.compile(
    r"\\. | \[\^?\]?(?:\\.|[^\]\\])*\] | \{(?P<count>[0-9]{1,30})(?:,[0-9]*)?\} | .",
    re.DOTALL | re.VERBOSE,
)


def problem_of_regex(pattern: str) -> str | None:
    """``None`` for one that compiles."""
    if len(pattern) > MAX_CHARS:
        return f"has {len(pattern)} characters, allowed: {MAX_CHARS}"
    if _written_out(pattern) > _MAX_WRITTEN_OUT:
        return f"is longer than {_MAX_WRITTEN_OUT} characters with its repetitions written out"
    try:
        regex.compile(pattern)
    except regex.error as error:
        return f"is not a regex: {error}"
    except (RecursionError, OverflowError):
        return "is not a regex: nests or repeats too much"
    return None


def _written_out(pattern: str) -> int:
    """About how many characters there are when every part is repeated as often as it must be."""
    # Of each open group the sum, and the size of its last part, which a count repeats.
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
