"""A message in, the message without what differs from one occurrence to the next out."""

from __future__ import annotations

import re

# One pass over the text; the first alternative that fits wins, so the long shapes come first.
# Every alternative starts with a distinct kind of character or is bounded: no nested repetition.
_VARIABLE = re.compile(
    r"""
    (?P<url>(?<![A-Za-z0-9])[a-z][a-z0-9+.-]{1,24}://[^\s"'<>()\[\]{},;|]{1,2048})
  | (?P<time>(?<!\d)\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?)?
        (?:Z|[+-]\d\d:?\d\d)?)
  | (?P<uuid>(?<![0-9A-Za-z])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![0-9A-Za-z]))
  | (?P<quoted>"[^"\n]{0,1024}"|`[^`\n]{0,1024}`
        |(?<![A-Za-z0-9])'[^'\n]{0,1024}'(?![A-Za-z0-9]))
  # Addresses go with what Flink appends to them: the resource id `10.0.0.1:6122-d7afae`.
  | (?P<address>(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?(?:-[0-9a-f]{4,8}\b)?(?![\w.]\d))
  | (?P<hostport>(?<![\w.-])[A-Za-z][\w-]{0,62}(?:\.[\w-]{1,63}){0,8}[/:]\d{2,5}(?![\w.])
        (?:-[0-9a-f]{4,8}\b)?)
  # A colon belongs to a path only inside it (`/tmp/tm_host:6122-ab/job`), never at its end.
  | (?P<path>(?<![\w./-])(?:[A-Za-z]:\\|/)(?:[^\s"'<>()\[\]{},;:|]|:(?=[\w/])){1,2048})
  | (?P<lambda>\$\$Lambda(?:\$\d{1,9})?/(?:0x)?[0-9a-fA-F]{1,20})
  | (?P<object>@[0-9a-f]{4,16}(?![0-9A-Za-z]))
  # Digits alone are a number, whatever their count: a counter must not change its kind.
  | (?P<hex>(?<![0-9A-Za-z])(?:0x[0-9a-fA-F]{1,32}
        |(?=\d{0,63}[a-f])(?=[a-f]{0,63}\d)[0-9a-f]{5,64})(?![0-9A-Za-z]))
  | (?P<number>(?<![A-Za-z0-9])[-+]?\d(?:[\d_,.]{0,64}\d)?(?:[eE][-+]?\d{1,4}(?![0-9A-Za-z]))?)
    """,
    re.VERBOSE,
)
_BLANKS = re.compile(r"\s+")


def mask(text: str) -> str:
    """``text`` with numbers, ids, addresses, paths, times and quoted words as ``<kind>``.

    Words stay, so masks of different failures differ; blanks are folded.  Linear.
    """
    return _BLANKS.sub(" ", _VARIABLE.sub(_placeholder, text)).strip()


def _placeholder(match: re.Match[str]) -> str:
    return f"<{match.lastgroup}>"
