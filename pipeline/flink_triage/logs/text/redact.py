"""Replaces secrets in text with ``[REDACTED:kind]``, and counts them.

A secret is recognized by its key (``s3.secret-key: X``, ``-Dssl.key.password=X``, ``"token":"X"``,
``<password>X</password>``) or by its shape (JWTs, PEM private keys, access keys, passwords in
URLs). Placeholders (``******``, ``${ENV}``, ``[hidden]``) and prose about tokens and keys are kept,
because signatures are matched against the redacted text.
"""

from __future__ import annotations

import base64
import binascii
import re
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType

import hyperscan

from flink_triage.logs.text.hyperscan_databases import database_of
from flink_triage.logs.text.personal import redact_personal
from flink_triage.logs.text.secret_encodings import DISGUISE, ENCODED, HOLDS_ENCODED, undisguise
from flink_triage.logs.text.secret_forms import (
    AUTHORIZATION,
    GOES_ON,
    JOINED,
    KEYED,
    MAYBE,
    MAYBE_CASED,
    PAIRS,
    PEM,
    PEM_LINES,
    PEM_REST,
    PUTTY,
    REST,
    SCHEME,
    URL,
    URL_USER,
)
from flink_triage.logs.text.secret_lines import secret_blocks, secret_columns
from flink_triage.logs.text.secret_tokens import TOKEN, WEBHOOK

# The number of masked secrets by kind.
Redactions = Mapping[str, int]
NONE: Redactions = MappingProxyType({})

# The number of characters at the end of a line in which `GOES_ON` searches for a key.
_ENDING_CHARS = 160
# Minimum length of a line whose last value may be wrapped.
_WRAPPED_FROM_CHARS = 60
# Maximum number of continuation lines of a value.
_MAX_LINES = 64
# Key names that are used as the kind in the mark. `_kind` determines the kind of other names.
_OWN_KINDS = ("auth", "basicauth", "cookie", "credential", "http", "sas", "sig", "sessioncookie")
_MARK_AT_END = re.compile(r"\[REDACTED:(?P<kind>[a-z]{1,20})\][\"']?\\?\s{0,8}\Z")
# A generated value, as opposed to a word or an ID. It contains a digit, and also a letter that is
# not a hexadecimal digit, unless it has at least 40 characters and thus more than Flink's IDs.
_RANDOM = re.compile(r"(?=[^\d]*\d)(?=.*[g-zG-Z]|\S{40})[A-Za-z0-9+/_~!@#$%^&*]{8,4096}={0,2}\Z")


class _Prefilter(threading.local):
    """One Hyperscan database per thread, because threads must not share its scratch space."""

    def __init__(self) -> None:
        once = hyperscan.HS_FLAG_SINGLEMATCH
        flags = [once | hyperscan.HS_FLAG_CASELESS] * len(MAYBE) + [once] * len(MAYBE_CASED)
        self._database, self._scratch = database_of([*MAYBE, *MAYBE_CASED], flags, literal=False)
        self._hits: list[int] = []

    def may_hold_secret(self, text: str) -> bool:
        self._hits.clear()
        data = text.encode("utf-8", "surrogatepass")
        self._database.scan(data, match_event_handler=self._note, scratch=self._scratch)
        return bool(self._hits)

    def _note(self, identifier: int, *_: object) -> None:
        self._hits.append(identifier)


_prefilter = _Prefilter()


def may_hold_secret(text: str) -> bool:
    """Whether ``text`` must be searched for secrets; false for most text without secrets."""
    return _prefilter.may_hold_secret(text)


def redact(text: str, *, pii: bool = False) -> tuple[str, Redactions]:
    """The text with secrets replaced by ``[REDACTED:kind]``, and the number of them by kind.

    Idempotent; line ends are kept. With ``pii``, personal data is masked as well.
    """
    found: Redactions = NONE
    if _prefilter.may_hold_secret(text):
        text, found = _redact_secrets(text)
    if pii:
        text, personal = redact_personal(text)
        found = both(found, personal)
    return text, found


def both(one: Redactions, other: Redactions) -> Redactions:
    """The sum of two counts."""
    return Counter(one) + Counter(other) if one and other else one or other


@lru_cache(maxsize=4096)
def redact_path(path: str) -> str:
    """A path or URI with secrets masked.

    Passwords and tokens before the host of a URI are masked first, then secrets in the individual
    path components.
    """
    path = URL.sub(r"\g<head>[REDACTED:url-password]", path)
    path = URL_USER.sub(r"\g<head>[REDACTED:url-user]", path)
    return "/".join(redact(part)[0] for part in path.split("/"))


def is_open_ended(text: str) -> bool:
    """Whether the next line may contain a secret whose key, or first part, is in ``text``."""
    return text.rstrip(" \t\\").endswith("=") or _prefilter.may_hold_secret(text + "\n")


def _redact_secrets(text: str) -> tuple[str, Redactions]:
    """Mask secrets on single lines, and secrets that span lines.

    The latter are private keys, base64 text with a secret, values on the line after their key,
    wrapped values, and values in tables and YAML blocks.
    """
    counter = _Counter()
    text = PEM.sub(counter.lines, text)
    text = PEM_REST.sub(counter.rest_of_key, text)
    for form in (PEM_LINES, PUTTY):
        text = form.sub(counter.lines, text)
    if HOLDS_ENCODED.search(text):
        text = ENCODED.sub(counter.encoded, text)
    lines = text.split("\n")
    for named_above in (secret_blocks, secret_columns):
        lines = list(named_above(lines, counter.named))
    result: list[str] = []
    index = 0
    while index < len(lines):
        unit = lines[index : index + 1]
        index += 1
        is_open = _goes_on(unit[-1])
        if not (is_open or _prefilter.may_hold_secret(unit[0])):
            result.append(unit[0])
            continue
        while is_open and index < len(lines):
            unit.append(lines[index])
            index += 1
            is_open = _goes_on(unit[-1])
        before = "\n".join(unit)
        after = _redact_line(before, counter)
        result.append(after)
        rest = list(_rest(before, after, lines, index))
        result.extend(rest)
        index += len(rest)
    return "\n".join(result), counter.found


def _goes_on(line: str) -> bool:
    """Whether the line ends with the key of a value on the next line; false for stack frames."""
    return line[-1:] not in ")]" and GOES_ON.search(line[-_ENDING_CHARS:]) is not None


def _rest(before: str, after: str, lines: list[str], index: int) -> Iterator[str]:
    """The masked rest of a value whose first part, at the end of a line, was masked."""
    mark = _MARK_AT_END.search(after)
    if mark is None or after == before:
        return
    last = before.rpartition("\n")[2]
    quote = _open_quote(last)
    for line in lines[index : index + _MAX_LINES]:
        goes_on = last.endswith("\\") or len(last) >= _WRAPPED_FROM_CHARS or quote
        rest = REST.match(line) if goes_on else None
        if rest is None:
            return
        yield f"{rest['head']}[REDACTED:{mark['kind']}]{rest['tail']}"
        if quote and quote in rest["tail"]:
            return
        last = line


def _open_quote(line: str) -> str:
    for quote in "\"'":
        if line.count(quote) % 2:
            return quote
    return ""


def _redact_line(text: str, counter: _Counter) -> str:
    """Redact one line, or several lines if each but the last ends with the key of the next value.

    If more secrets are found after ``undisguise``, the redacted form of the undisguised text is
    returned.
    """
    own = _Counter()
    result = _redact_forms(text, own)
    if DISGUISE.search(text):
        undisguised = _Counter()
        plain = _redact_forms(undisguise(text), undisguised)
        if undisguised.found.total() > own.found.total():
            result, own = plain, undisguised
    counter.found.update(own.found)
    return result


def _redact_forms(text: str, counter: _Counter) -> str:
    text = WEBHOOK.sub(counter.webhook, text)
    text = URL.sub(lambda m: counter.tail(m, "url-password"), text)
    text = URL_USER.sub(lambda m: counter.tail(m, "url-user"), text)
    text = AUTHORIZATION.sub(lambda m: counter.tail(m, "authorization"), text)
    text = SCHEME.sub(lambda m: counter.tail(m, "authorization"), text)
    text = TOKEN.sub(counter.token, text)
    text = JOINED.sub(counter.joined, text)
    for pattern in PAIRS:
        text = pattern.sub(lambda m: counter.tail(m, _kind(m["word"] or "")), text)
    return KEYED.sub(counter.keyed, text)


class _Counter:
    """Replaces matches, and counts the replacements."""

    def __init__(self) -> None:
        self.found: Counter[str] = Counter()

    def mark(self, kind: str) -> str:
        self.found[kind] += 1
        return f"[REDACTED:{kind}]"

    def tail(self, match: re.Match[str], kind: str) -> str:
        return f"{match['head']}{self.mark(kind)}"

    def joined(self, match: re.Match[str]) -> str:
        start = match.start(str(match.lastgroup)) - match.start()
        return f"{match[0][:start]}{self.mark(_kind(match['word']))}"

    def token(self, match: re.Match[str]) -> str:
        return self.mark(str(match.lastgroup).rstrip("0123456789"))

    def webhook(self, match: re.Match[str]) -> str:
        return f"{match[int(match.lastindex or 0) - 1]}{self.mark('webhook')}"

    def lines(self, match: re.Match[str]) -> str:
        """Mask a multi-line key; line ends are kept, so that line numbers do not change."""
        return f"{match['head']}{self.mark('pem')}" + "\n" * match["value"].count("\n")

    def rest_of_key(self, match: re.Match[str]) -> str:
        """Mask a run of base64 lines only if the end of a private key follows."""
        return match[0] if match["end"] is None else self.lines(match)

    def encoded(self, match: re.Match[str]) -> str:
        if not _hides_secret(match[0]):
            return match[0]
        return self.mark("base64") + "\n" * match[0].count("\n")

    def named(self, value: str, name: str) -> str:
        return self.mark(_kind(name))

    def keyed(self, match: re.Match[str]) -> str:
        if match["shy"] is not None and not _is_assignment(match):
            return match.group()
        head = f"{match['word']}{match['between']}"
        kind = self.mark(_kind(match["word"]))
        if match["open"] is None:
            return head + kind
        return f"{head}{match['open']}{kind}{match['end']}"


def _is_assignment(match: re.Match[str]) -> bool:
    """Whether a word such as "token", which also occurs in ordinary text, is the key of a secret.

    It is in ``token=X`` and ``"token": "X"``, but not in ``Unexpected token: X``, unless X looks
    like a generated value.
    """
    between = match["between"]
    # The value ends at an escaped line end.
    value = (match["quoted"] or match["bare"]).partition("\\n")[0]
    if between.startswith(("s=", "s =")) and value.isdigit():
        # In "tokens=12", the value is a count and not a secret.
        return False
    if "=" in between or "->" in between or "%3D" in between.upper() or match["close"] is not None:
        return True
    return _RANDOM.match(value) is not None


def _hides_secret(encoded: str) -> bool:
    """Whether base64 text contains a secret after decoding."""
    data = "".join(encoded.split()).translate({ord("-"): "+", ord("_"): "/"}).rstrip("=")
    try:
        text = base64.b64decode(data[: len(data) - (len(data) % 4 == 1)] + "==").decode("latin-1")
    except (binascii.Error, ValueError):
        return False
    return bool(redact(text)[1])


def _kind(word: str) -> str:
    name = re.sub(r"[^a-z]", "", word.lower())
    for kind in ("password", "token", "secret", "key"):
        if kind in name:
            return kind
    return name[:20] if name.startswith(_OWN_KINDS) else "password"
