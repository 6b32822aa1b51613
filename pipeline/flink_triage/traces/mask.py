"""Masks the parts of a message that vary between occurrences."""

from __future__ import annotations

import re
from functools import lru_cache

# A line is masked in one pass. At each position, the first matching alternative is used, so longer
# forms come first. The repetitions are bounded, so that masking takes linear time.
_URL = r"(?P<url>(?<![A-Za-z0-9])[a-z][a-z0-9+.-]{1,24}://[^\s\"'<>()\[\]{},;|]{1,2048})"
_EARLY = r"""
    (?P<time>(?<!\d)\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?)?
        (?:Z|[+-]\d\d:?\d\d)?)
  | (?P<uuid>(?<![0-9A-Za-z])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![0-9A-Za-z]))
  | (?P<quoted>"[^"\n]{0,1024}"|`[^`\n]{0,1024}`
        |(?<![A-Za-z0-9])'[^'\n]{0,1024}'(?![A-Za-z0-9]))
  # An address includes the suffix of a TaskManager's resource id: `10.0.0.1:6122-d7afae`.
  | (?P<address>(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?(?:-[0-9a-f]{4,8}\b)?(?![\w.]\d))
"""
_HOSTPORT = r"""
    (?P<hostport>(?<![\w.-])[A-Za-z][\w-]{0,62}(?:\.[\w-]{1,63}){0,8}[/:]\d{2,5}(?![\w.])
        (?:-[0-9a-f]{4,8}\b)?)
"""
_LATE = r"""
  # A path may contain a colon (`/tmp/tm_host:6122-ab/job`), but not end with one.
    (?P<path>(?<![\w./-])(?:[A-Za-z]:\\|/)(?:[^\s"'<>()\[\]{},;:|]|:(?=[\w/])){1,2048})
  | (?P<lambda>\$\$Lambda(?:\$\d{1,9})?/(?:0x)?[0-9a-fA-F]{1,20})
  | (?P<object>@[0-9a-f]{4,16}(?![0-9A-Za-z]))
  # Without 0x, a hexadecimal number must contain a digit and a letter: digits alone are a number.
  | (?P<hex>(?<![0-9A-Za-z])(?:0x[0-9a-fA-F]{1,32}
        |(?=\d{0,63}[a-f])(?=[a-f]{0,63}\d)[0-9a-f]{5,64})(?![0-9A-Za-z]))
  | (?P<number>(?<![A-Za-z0-9])[-+]?\d(?:[\d_,.]{0,64}\d)?(?:[eE][-+]?\d{1,4}(?![0-9A-Za-z]))?)
"""
_HAS_PORT = re.compile(r"[/:]\d\d")


@lru_cache(maxsize=4)
def _variable(has_url: bool, has_port: bool) -> re.Pattern[str]:
    """The regex for variable parts, optionally with URLs and host names with ports.

    These are optional, because they are rare and slow to search for.
    """
    parts = [_URL, _EARLY, _HOSTPORT, _LATE]
    wanted = [has_url, True, has_port, True]
    chosen = (part for part, is_wanted in zip(parts, wanted, strict=True) if is_wanted)
    return re.compile("|".join(chosen), re.VERBOSE)


_BLANKS = re.compile(r"\s+")


def mask(text: str) -> str:
    """``text`` with numbers, IDs, addresses, URLs, paths, times, and quotes replaced by ``<kind>``.

    Other text is kept, so that different failures remain distinguishable. Whitespace, including
    newlines, is collapsed. Runs in linear time.
    """
    if "\n" not in text:
        return _mask_line(text)
    # Lines are masked separately, because variable parts never span lines, and many lines repeat.
    return " ".join(filter(None, map(_mask_line, text.split("\n"))))


@lru_cache(maxsize=8192)
def _mask_line(line: str) -> str:
    variable = _variable("://" in line, _HAS_PORT.search(line) is not None)
    return _BLANKS.sub(" ", variable.sub(_placeholder, line)).strip()


def _placeholder(match: re.Match[str]) -> str:
    return f"<{match.lastgroup}>"
