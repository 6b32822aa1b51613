"""Corrects typos in a user's text, based on the words in signatures.

Users who retype a message from a screen make typos, such as ``FlinkRuntimExeption`` or
``treshold``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

# Shorter words are similar to too many other words.
_MIN_CHARS = 6
# The minimum length of a word in which two typos are corrected.
_TWO_SLIPS_CHARS = 12
_MAX_TEXT_CHARS = 4096
_WORD = re.compile(rf"[A-Za-z]{{{_MIN_CHARS - 1},60}}")


class Respelling:
    """Corrects a text with the words in the literals, regexes, and class names of signatures."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._known = frozenset(word for text in texts for word in _WORD.findall(text))
        self._by_start: dict[tuple[str, int], list[str]] = {}
        for word in sorted(self._known):
            if len(word) >= _MIN_CHARS:
                self._by_start.setdefault((word[0], len(word)), []).append(word)
        self._nearest = lru_cache(maxsize=4096)(self._find_nearest)

    def respell(self, text: str) -> str:
        """``text``, with unknown words replaced by the known word that is similar to them.

        Only words with the same first letter are similar. A word that is similar to several known
        words is kept, and so is text after the first 4,096 characters.
        """
        head = text[:_MAX_TEXT_CHARS]
        return _WORD.sub(lambda found: self._nearest(found[0]), head) + text[_MAX_TEXT_CHARS:]

    def _find_nearest(self, word: str) -> str:
        if word in self._known:
            return word
        slips = 2 if len(word) >= _TWO_SLIPS_CHARS else 1
        near = [
            known
            for length in range(len(word) - slips, len(word) + slips + 1)
            for known in self._by_start.get((word[0], length), ())
            if len(set(word) ^ set(known)) <= 2 * slips and _is_near(word, known, slips)
        ]
        return near[0] if len(near) == 1 else word


def _is_near(one: str, other: str, slips: int) -> bool:
    """Whether the words differ by at most ``slips`` missing, extra, changed, or swapped letters."""
    if one == other:
        return True
    if slips == 0:
        return False
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    one, other = one[start:], other[start:]
    if one[:2] == other[1::-1] and len(one) > 1 and _is_near(one[2:], other[2:], slips - 1):
        return True
    rests = ((one[1:], other), (one, other[1:]), (one[1:], other[1:]))
    return any(
        abs(len(a) - len(b)) < slips and _is_near(a, b, slips - 1)
        for a, b in rests
        if (a, b) != (one, other)
    )
