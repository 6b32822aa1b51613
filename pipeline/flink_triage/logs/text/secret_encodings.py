"""Decodes escape sequences and special characters that disguise secrets, and finds base64.

``undisguise`` returns plain text for the regexes in ``secret_forms``. ``ENCODED`` matches base64,
and ``HOLDS_ENCODED`` matches a part of base64 text that may encode the name of a secret.
"""

from __future__ import annotations

import base64
import re

_ENTITIES = r"&\#(?:\d{2,4}|[xX][0-9a-fA-F]{2,4});"
_ESCAPED = r"\\{1,4}u00[2-7][0-9a-fA-F]|\\{1,2}x[2-7][0-9a-fA-F]|%25[2-7][0-9a-fA-F]"
_INVISIBLE = "\u00ad\u200b-\u200f\u2060\ufeff"
_BLANK = "\u00a0\u2000-\u200a\u202f\u205f\u3000"
DISGUISE = re.compile(rf"[{_INVISIBLE}{_BLANK}\uff01-\uff5e]|{_ENTITIES}|{_ESCAPED}")
_INVISIBLES = re.compile(f"[{_INVISIBLE}]")
_BLANKS = re.compile(f"[{_BLANK}]")


def undisguise(text: str) -> str:
    """``text`` in plain characters; line ends are kept.

    Escape sequences are decoded once, full-width characters and special spaces are converted to
    ASCII, and invisible characters are removed.
    """
    return DISGUISE.sub(_plain, text)


def _plain(match: re.Match[str]) -> str:
    found = match[0]
    if len(found) == 1:
        if _INVISIBLES.match(found):
            return ""
        return " " if _BLANKS.match(found) else chr(ord(found) - 0xFEE0)
    if found.startswith("%"):
        return f"%{found[3:]}"
    digits = found.strip("&#;").lstrip("\\")
    is_hex = found[0] == "\\" or digits[0] in "xX"
    code = int(digits.lstrip("uxX"), 16) if is_hex else int(digits)
    return chr(code) if 0x20 <= code < 0xD800 else found


# --- base64 ------------------------------------------------------------------------------------

ENCODED = re.compile(
    r"(?<![A-Za-z0-9+/_-])(?:[A-Za-z0-9+/]{60,100}\r?\n[ \t]{0,16}){0,1024}"
    r"[A-Za-z0-9+/_-]{16,65536}={0,2}"
)


def _encoded(word: str) -> set[str]:
    """The base64 text for ``word`` at each of the three offsets in a group of three bytes."""
    found = set()
    for shift in range(3):
        text = base64.b64encode(b"\0" * shift + word.encode()).decode().rstrip("=")
        # Characters that also encode bits of the adjacent text are omitted.
        start = (0, 2, 3)[shift]
        end = len(text) - (1 if (shift + len(word)) % 3 else 0)
        found.add(text[start:end])
    return found


_ENCODED_WORDS = (
    "password",
    "secret",
    "token",
    "api_key",
    "apiKey",
    "api-key",
    "credential",
    "PRIVATE KEY",
)
ENCODED_LITERALS = sorted(
    literal
    for word in _ENCODED_WORDS
    for case in {word, word.upper(), word.capitalize()}
    for literal in _encoded(case)
)
HOLDS_ENCODED = re.compile("|".join(ENCODED_LITERALS))
