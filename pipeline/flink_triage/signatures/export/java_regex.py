"""Translates a regex of the ``regex`` module to ``java.util.regex``.

Requires ``Pattern.UNIX_LINES | Pattern.UNICODE_CHARACTER_CLASS`` (``JAVA_FLAGS`` as a prefix), so
that ``.``, ``$``, ``\\w``, ``\\s``, and ``\\d`` have the same meaning as in Python. Only syntax
with a known equivalent is translated; any other syntax is rejected with an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

JAVA_FLAGS = "(?dU)"

_SPECIAL = re.compile(r"[\\^$.|?*+()\[\]{}#]")
# Characters without a special meaning in a regex. In a configuration file, the first one starts a
# comment, and the others start a quoted string.
_HEX = {"#": "\\x23", "'": "\\x27", '"': "\\x22"}
_TOKEN = re.compile(
    r"""
    (?P<code>\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}))
  | \\(?P<escape>.)
  | \(\?P?<(?P<group>[A-Za-z_]\w*)>
  | \(\?P=(?P<back>\w+)\)
  | (?P<open>\((?:\?(?::|=|!|>|<=|<!|[ims]+\)|[ims]+:))?)(?!\?)
  | \[(?P<negated>\^?)(?P<members>\]?(?:\\.|[^\]\\])*)\]
  | (?P<repeat>\{\d+(?:,\d*)?\})
  | \{,(?P<most>\d+)\}
  | (?P<other>[^\\(\[])
    """,
    re.VERBOSE | re.DOTALL,
)
_SAME_ESCAPES = frozenset("AbBdDsSwWntrf")
_SAME_IN_CLASS = frozenset("dDsSwWntrf")


class Untranslatable(ValueError):
    """The regex contains syntax that Java lacks or interprets differently, shown in the message."""


def to_java(pattern: str, prefix: str = "g") -> str:
    """``pattern`` in Java syntax, with named groups converted to non-capturing groups.

    Unnamed groups are kept. Groups with backreferences remain named groups; the name consists of
    ``prefix`` and a number, because Java does not allow ``_``. Raises ``Untranslatable``.
    """
    return _printable("".join(_translate(pattern, prefix)))


def escape_java(text: str) -> str:
    """A Java regex that matches only ``text``; ``#`` and quotes are written as hex codes."""
    escaped = _SPECIAL.sub(lambda match: "\\" + match.group(), text)
    return _printable(
        escaped.replace("\\#", _HEX["#"]).replace("'", _HEX["'"]).replace('"', _HEX['"'])
    )


def _printable(pattern: str) -> str:
    """The pattern on one line and in ASCII, so that it is independent of the file encoding."""
    return "".join(char if " " <= char <= "~" else _code(ord(char)) for char in pattern)


def _code(point: int) -> str:
    return f"\\u{point:04x}" if point <= 0xFFFF else f"\\x{{{point:x}}}"


def _translate(pattern: str, prefix: str) -> Iterator[str]:
    groups: dict[str, list[int]] = {}
    referred = set(re.findall(r"\(\?P=(\w+)\)", pattern))
    position = count = 0
    while position < len(pattern):
        token = _TOKEN.match(pattern, position)
        if token is None:
            raise Untranslatable(
                f"position {position}: {pattern[position : position + 4]!r} is not translated"
            )
        position = token.end()
        if token["group"]:
            count += 1
            groups.setdefault(token["group"], []).append(count)
            yield f"(?<{prefix}{count}>" if token["group"] in referred else "(?:"
        elif token["back"]:
            numbers = groups.get(token["back"], [])
            if len(numbers) != 1:
                raise Untranslatable(f"(?P={token['back']}) does not refer to exactly one group")
            yield f"\\k<{prefix}{numbers[0]}>"
        elif token["members"] is not None:
            yield f"[{token['negated']}{_members(token['members'])}]"
        elif token["escape"]:
            yield _escape(token["escape"], _SAME_ESCAPES)
        elif token["most"]:
            yield f"{{0,{token['most']}}}"
        elif token["other"]:
            yield _other(token["other"])
        else:
            yield token.group()


def _other(char: str) -> str:
    # In Python, an unmatched brace or bracket is a literal. In Java, an unmatched "{" is an error.
    return "\\" + char if char in "{}]" else _HEX.get(char, char)


def _escape(char: str, same: frozenset[str]) -> str:
    if char == "Z":
        return "\\z"
    if char in _HEX:
        return _HEX[char]
    if char in same or not (char.isalnum() or char == "_"):
        return "\\" + char
    raise Untranslatable(f"\\{char} has no Java equivalent")


def _members(text: str) -> str:
    """The content of ``[...]``, in which Java interprets ``[`` and ``&&`` as set operations."""
    if "[:" in text:
        raise Untranslatable("a POSIX class such as [:alpha:] has no Java equivalent")
    parts: list[str] = []
    position = 0
    while position < len(text):
        char = text[position]
        if char == "\\":
            code = re.match(r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4})", text[position:])
            if code is not None:
                parts.append(code.group())
                position += code.end()
                continue
            position += 1
            parts.append(_escape(text[position], _SAME_IN_CLASS))
        else:
            parts.append("\\" + char if char in "[]&" else _HEX.get(char, char))
        position += 1
    return "".join(parts)
