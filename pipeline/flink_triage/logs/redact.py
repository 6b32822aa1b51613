"""Secrets out of text: a string in, the string with ``[REDACTED:kind]`` and how many out.

A secret is known by the name of its key (``s3.secret-key: X``, ``-Dssl.key.password=X``,
``"token":"X"``, ``<password>X</password>``), or by its shape (JWT, PEM, access keys, the password
in a URL).  Values that say they hide something (``******``, ``${ENV}``, ``[hidden]``) stay, so does
all that only talks of tokens and keys: signatures are matched on the redacted text.
"""

from __future__ import annotations

import re
import threading

import hyperscan

from .personal import redact_personal
from .secret_forms import (
    AUTHORIZATION,
    GOES_ON,
    KEYED,
    MAYBE,
    PAIRS,
    PEM,
    PEM_BEGIN,
    PEM_REST,
    SCHEME,
    SHAPES,
    URL,
)

# A key's last words: what `GOES_ON` has to see of a line.
_ENDING_CHARS = 400
# Named in the mark as they are called; what is left holds a password.
_OWN_KINDS = ("auth", "basicauth", "cookie", "credential", "http", "sas", "sig", "sessioncookie")


class _Prefilter(threading.local):
    """One Hyperscan database per thread: its scratch space must not be shared."""

    def __init__(self) -> None:
        flags = hyperscan.HS_FLAG_CASELESS | hyperscan.HS_FLAG_SINGLEMATCH
        self._database = hyperscan.Database()
        self._database.compile(
            expressions=list(MAYBE),
            ids=list(range(len(MAYBE))),
            flags=[flags] * len(MAYBE),
        )
        self._hits: list[int] = []

    def may_hold_secret(self, text: str) -> bool:
        self._hits.clear()
        self._database.scan(text.encode("utf-8", "surrogatepass"), match_event_handler=self._note)
        return bool(self._hits)

    def _note(self, identifier: int, *_: object) -> None:
        self._hits.append(identifier)


_prefilter = _Prefilter()


def may_hold_secret(text: str) -> bool:
    """Whether ``text`` is worth a closer look; clean text rarely is."""
    return _prefilter.may_hold_secret(text)


def redact(text: str, *, pii: bool = False) -> tuple[str, int]:
    """The text with each secret as ``[REDACTED:kind]``, and the number of replacements.

    Idempotent; lines stay lines.  With ``pii`` also names of people and machines.
    """
    count = 0
    if _prefilter.may_hold_secret(text):
        text, count = _redact_secrets(text)
    if pii:
        text, found = redact_personal(text)
        count += found
    return text, count


def is_open_ended(text: str) -> bool:
    """Whether a secret that the end of ``text`` names may stand on the line after it."""
    if not _prefilter.may_hold_secret(text + "\n"):
        return text.rstrip(" \t\\").endswith("=")
    return GOES_ON.search(text[-_ENDING_CHARS:]) is not None or PEM_BEGIN in text


def _redact_secrets(text: str) -> tuple[str, int]:
    """A secret stands on one line, except for PEM blocks and keys whose value is on the next."""
    counter = _Counter()
    text = PEM.sub(counter.pem, text)
    text = PEM_REST.sub(counter.pem, text)
    lines = text.split("\n")
    result: list[str] = []
    index = 0
    while index < len(lines):
        unit = lines[index : index + 1]
        index += 1
        is_open = GOES_ON.search(unit[-1][-_ENDING_CHARS:]) is not None
        if is_open or _prefilter.may_hold_secret(unit[0]):
            while is_open and index < len(lines):
                unit.append(lines[index])
                index += 1
                is_open = GOES_ON.search(unit[-1][-_ENDING_CHARS:]) is not None
            result.append(_redact_line("\n".join(unit), counter))
        else:
            result.append(unit[0])
    return "\n".join(result), counter.count


def _redact_line(text: str, counter: _Counter) -> str:
    text = URL.sub(lambda m: counter.tail(m, "url-password"), text)
    text = AUTHORIZATION.sub(lambda m: counter.tail(m, "authorization"), text)
    text = SCHEME.sub(lambda m: counter.tail(m, "authorization"), text)
    text, shapes = SHAPES.subn(_whole, text)
    counter.count += shapes
    for pattern in PAIRS:
        text = pattern.sub(lambda m: counter.tail(m, _kind(m["word"] or "")), text)
    return KEYED.sub(counter.keyed, text)


class _Counter:
    """Replaces matches and counts those that it replaced."""

    def __init__(self) -> None:
        self.count = 0

    def tail(self, match: re.Match[str], kind: str) -> str:
        self.count += 1
        return f"{match['head']}[REDACTED:{kind}]"

    def pem(self, match: re.Match[str]) -> str:
        """Line ends stay: the lines of a file must be countable afterwards."""
        self.count += 1
        return f"{match['head']}[REDACTED:pem]" + "\n" * match["value"].count("\n")

    def keyed(self, match: re.Match[str]) -> str:
        if match["shy"] is not None and not _is_assignment(match):
            return match.group()
        self.count += 1
        head = f"{match['word']}{match['between']}"
        kind = f"[REDACTED:{_kind(match['word'])}]"
        if match["open"] is None:
            return head + kind
        return f"{head}{match['open']}{kind}{match['end']}"


def _is_assignment(match: re.Match[str]) -> bool:
    """For words of ordinary text: ``token=X`` and ``"token": "X"``, not ``Unexpected token: X``."""
    between = match["between"]
    return (
        "=" in between or "->" in between or "%3D" in between.upper() or match["close"] is not None
    )


def _kind(word: str) -> str:
    name = re.sub(r"[^a-z]", "", word.lower())
    for kind in ("password", "token", "secret", "key"):
        if kind in name:
            return kind
    return name[:20] if name.startswith(_OWN_KINDS) else "password"


def _whole(match: re.Match[str]) -> str:
    return f"[REDACTED:{match.lastgroup}]"
