"""Determines which regexes search a short text so quickly that they do not require a timeout.

A timeout adds about 2 µs to a search, several times as much as most searches of a message take.
"""

from __future__ import annotations

import re
from functools import lru_cache
from math import inf

# Up to this length, a text is short.
SHORT_CHARS = 1024
# A search with fewer steps takes less than 0.1 s.
_MAX_STEPS = 5_000_000
_TOKEN = re.compile(
    r"""
    \\. | \[\^?\]?(?:\\.|[^\]\\])*\]
    | (?P<flags>\(\?[aiLmsuw]+\))
    | (?P<opened>\((?:\?(?:P?<[A-Za-z_]\w*>|<?[=!]|[:>]|[aiLmsuw]+:)|(?!\?)))
    | (?P<closed>\))
    | (?P<repeated>[*+?] | \{(?P<least>\d{1,9})(?:(?P<range>,)(?P<most>\d{0,9}))?\})[?+]?
    | (?P<other>\(|\{)
    | (?P<alternative>\|)
    | .
    """,
    re.DOTALL | re.VERBOSE,
)


@lru_cache(maxsize=4096)
def is_quick(pattern: str) -> bool:
    """Whether a search of at most ``SHORT_CHARS`` characters is too short for any timeout."""
    return max_steps(pattern, SHORT_CHARS) < _MAX_STEPS


def max_steps(pattern: str, chars: int) -> float:
    """An upper bound of the steps that a backtracking search of ``chars`` characters takes.

    It is the product of the start positions and the choices of each repetition and alternation.
    Infinite if a repeated group contains a choice, or if the bound is unknown.
    """
    steps = float(chars)
    # For each open group: the number of alternatives, and whether it contains a repetition.
    groups = [[1, 0]]
    closed: list[int] | None = None
    for token in _TOKEN.finditer(pattern):
        last, closed = closed, None
        if token["other"]:
            return inf
        if token["opened"]:
            groups.append([1, 0])
        elif token["closed"]:
            closed = groups.pop()
            if not groups:
                return inf
            steps *= closed[0]
            groups[-1][1] |= closed[1] or closed[0] > 1
        elif token["alternative"]:
            groups[-1][0] += 1
        elif token["repeated"]:
            choices = _choices(token, chars)
            if choices > 1:
                if last is not None and (last[0] > 1 or last[1]) and token["repeated"][0] != "?":
                    return inf
                groups[-1][1] = 1
            steps *= choices
    return steps * groups[0][0] if len(groups) == 1 else inf


def _choices(token: re.Match[str], chars: int) -> int:
    """The number of different counts of a repetition in a text of ``chars`` characters."""
    kind = token["repeated"][0]
    if kind in "*+":
        return chars
    if kind == "?":
        return 2
    if not token["range"]:
        return 1
    return min(int(token["most"] or chars) - int(token["least"]) + 1, chars)
