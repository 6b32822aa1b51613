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

# Key words that name a secret wherever they end a key.  Flink's own list is in
# GlobalConfiguration.SENSITIVE_KEYS; the rest are those of connectors and clouds.
_WORDS = (
    r"pass(?:word|wd|phrase|code)|(?<![A-Za-z])pwd|secret|credentials?(?=[\"'\\]{0,4}[ \t]?=)"
    r"|secret[-_.]?(?:access[-_.]?)?key|api[-_.]?(?:key|token|secret)"
    r"|(?:shared[-_.]?)?access[-_.]?key(?:[-_.]?id)?"
    r"|account[-_.]?key[\w.-]{0,128}|private[-_.]?key|service[-_.]?key|shared[-_.]?key"
    r"|auth[-_.]?params|basic[-_.]?auth|http[-_.]headers|session[-_.]?cookie"
    r"|(?:access|auth|refresh|session|security|client|bearer|sas|oauth|id)[-_.]?token"
)
# Words that also stand in ordinary text count only before "=" or inside quotes.
_SHY_WORDS = r"(?<![A-Za-z])(?<!fencing\ )token|(?<![A-Za-z])sas|(?<![A-Za-z])sig|signature"
_QUOTE = r"(?:\\{0,3}[\"']|%22|&quot;)"
_SEPARATOR = r"(?:[ \t]{0,8}(?:=|:|%3D|%3A)[ \t]{0,8}(?:(?<==)\\?\r?\n[ \t]{0,64}(?!at[ ]))?)"
# Unquoted values end at blanks, and at delimiters when these are followed by what looks like the
# next pair or the end: passwords hold delimiters, too.
_BARE = (
    r"(?:[^\s,;&\"')}\]<]"
    r"|[,;&](?!\s|\Z|[\w.%-]{1,64}[=:])"
    r"|[)}\]](?![\s,;)}\]]|\Z)){1,4096}"
)
_HIDDEN = (
    r"(?!\*{2,}|\$\{|\[REDACTED:|\[?<?(?:hidden|redacted|masked)|x{4,}\b"
    r"|(?:null|none|true|false)\b)"
)

_KEYED = re.compile(
    rf"""
    (?P<word>{_WORDS}|(?P<shy>{_SHY_WORDS}))
    (?P<between>(?P<close>{_QUOTE})?{_SEPARATOR})
    (?:
        (?P<open>{_QUOTE}){_HIDDEN}
        # The closing quote first; then each backslash takes what it escapes, so nothing overlaps.
        (?P<quoted>(?:(?!(?P=open))(?:[^\\\n]|\\[^\n]|\\(?=\n|\Z))){{1,4096}})
        (?P<end>(?P=open)|(?=\n|\Z)|)
      | (?!{_QUOTE}|\\?\r?\n|\\\Z){_HIDDEN}(?P<bare>{_BARE})
    )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_ANY_WORD = rf"(?:{_WORDS}|token|sas)"
# `Loading configuration property: s3.secret-key, X` is how Flink prints its configuration.
_PROPERTY = re.compile(
    rf"(?P<head>propert(?:y|ies):[ ][\w.-]{{0,128}}?(?P<word>{_ANY_WORD})[\w-]{{0,64}},[ ])"
    rf"{_HIDDEN}(?P<value>\S[^\n]{{0,4096}})",
    re.IGNORECASE,
)
_ARGUMENT = re.compile(
    rf"(?P<head>(?<![\w-])--?[\w.-]{{0,64}}?(?P<word>{_ANY_WORD})[ \t]{{1,8}})"
    rf"{_HIDDEN}(?P<value>(?!-)\S{{1,4096}})",
    re.IGNORECASE,
)
_XML = re.compile(
    rf"(?P<head>(?P<word>{_ANY_WORD})[\w.-]{{0,64}}(?:</name>\s{{0,64}}<value>|>))"
    rf"{_HIDDEN}(?P<value>[^<\s][^<]{{0,4096}})(?=</)",
    re.IGNORECASE,
)
_AUTHORIZATION = re.compile(
    rf"(?P<head>authorization(?:{_QUOTE})?[ \t]{{0,4}}[:=][ \t]{{0,4}}(?:{_QUOTE})?)"
    rf"{_HIDDEN}(?P<value>(?:[A-Za-z][\w-]{{1,32}}[ ])?(?!\[REDACTED:)[^\s\"',;<]{{4,8192}})",
    re.IGNORECASE,
)
_SCHEME = re.compile(
    r"(?P<head>\b(?:Bearer|Basic)[ ])(?P<value>(?=[A-Za-z_.~+/-]{0,256}[0-9=])"
    r"[A-Za-z0-9._~+/-]{8,8192}={0,2})",
    re.IGNORECASE,
)
# The password of a URL reaches to the last "@" of the word: passwords hold "@" and "/".  A port is
# no password.
_URL = re.compile(
    r"(?P<head>://[^\s/:@\"'<>]{0,256}:)(?!\d{1,5}[/?\#,;])"
    rf"{_HIDDEN}(?P<value>[^\s\"'<>]{{1,1024}})(?=@[\w\[.-])"
)
_PEM = re.compile(
    r"(?P<head>-----BEGIN[A-Z ]{0,32}PRIVATE[ ]KEY-----)(?!\[REDACTED:)"
    r"(?P<value>[^-]{1,65536}(?:-{1,4}[^-]+){0,256})(?=-----END|\Z)"
)
_SHAPES = re.compile(
    r"""
    (?P<jwt>(?<![\w-])eyJ[\w-]{8,8192}\.[\w-]{8,8192}\.[\w-]{0,8192})
  | (?P<awskey>(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9]))
  | (?P<github>(?<![A-Za-z0-9])(?:gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_\w{20,255}))
  | (?P<databricks>(?<![A-Za-z0-9])dapi[0-9a-f]{32}(?:-\d)?(?![A-Za-z0-9]))
  | (?P<slack>(?<![A-Za-z0-9])xox[abeoprs]-[\w-]{10,255}
        |(?<=hooks\.slack\.com/)(?:services|workflows)/[\w/-]{8,255})
  | (?P<google>(?<![\w-])AIza[\w-]{35}(?![\w-]))
  | (?P<hadooptoken>(?<=Ident:\ )(?:[0-9a-f]{2}\ ){8,2048}[0-9a-f]{0,2})
    """,
    re.VERBOSE,
)
# The prefilter says "maybe" for whole texts; nearly all clean text ends here.
_MAYBE = (
    rb"pass(word|wd|phrase|code)",
    rb"secret",
    rb"credentials?[\x22'\\]{0,4}\s?=",
    rb"(api|access|account|private|service|shared)[-_.]?key",
    rb"auth[-_.]?params|basic[-_.]?auth|http[-_.]headers|session[-_.]?cookie",
    rb"api[-_.]?token",
    rb"(token|sas|sig|signature|pwd)[\w-]{0,8}(\\{0,3}[\x22']|%22|&quot;)?\s{0,8}([=:,<>]|%3d|%3a)",
    rb"--?[\w.-]{0,64}(token|sas|pwd)\s",
    rb"authorization(\\{0,3}[\x22']|%22|&quot;)?\s{0,4}([:=]|%3d|%3a)",
    rb"(bearer|basic) [a-z0-9._~+/-]{8}",
    rb"://[^\s/@:]*:[^\s]*@",
    rb"PRIVATE KEY-----",
    rb"eyJ[\w-]{8}",
    rb"A[KS]IA[A-Z0-9]{16}",
    rb"gh[pousr]_[a-z0-9]{30}|github_pat_",
    rb"dapi[0-9a-f]{32}",
    rb"xox[abeoprs]-|hooks\.slack\.com/",
    rb"AIza[\w-]{35}",
    rb"Ident: [0-9a-f]{2} ",
)


class _Prefilter(threading.local):
    """One Hyperscan database per thread: its scratch space must not be shared."""

    def __init__(self) -> None:
        flags = hyperscan.HS_FLAG_CASELESS | hyperscan.HS_FLAG_SINGLEMATCH
        self._database = hyperscan.Database()
        self._database.compile(
            expressions=list(_MAYBE),
            ids=list(range(len(_MAYBE))),
            flags=[flags] * len(_MAYBE),
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


def _redact_secrets(text: str) -> tuple[str, int]:
    """A secret stands on one line, except for PEM blocks and ``key=`` before a wrapped value."""
    counter = _Counter()
    text = _PEM.sub(counter.pem, text)
    lines = text.split("\n")
    result: list[str] = []
    index = 0
    while index < len(lines):
        unit = lines[index]
        index += 1
        if _prefilter.may_hold_secret(unit):
            while index < len(lines) and unit.rstrip(" \t\r\\").endswith("="):
                unit = f"{unit}\n{lines[index]}"
                index += 1
            unit = _redact_line(unit, counter)
        result.append(unit)
    return "\n".join(result), counter.count


def _redact_line(text: str, counter: _Counter) -> str:
    text = _URL.sub(lambda m: counter.tail(m, "url-password"), text)
    text = _AUTHORIZATION.sub(lambda m: counter.tail(m, "authorization"), text)
    text = _SCHEME.sub(lambda m: counter.tail(m, "authorization"), text)
    text, shapes = _SHAPES.subn(_whole, text)
    counter.count += shapes
    for pattern in (_PROPERTY, _XML):
        text = pattern.sub(lambda m: counter.tail(m, _kind(m["word"])), text)
    text = _KEYED.sub(counter.keyed, text)
    return _ARGUMENT.sub(lambda m: counter.tail(m, _kind(m["word"])), text)


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
    return "=" in between or "%3D" in between.upper() or match["close"] is not None


def _kind(word: str) -> str:
    name = re.sub(r"[^a-z]", "", word.lower())
    for kind in ("password", "token", "secret", "key"):
        if kind in name:
            return kind
    return "password" if name.startswith(("pass", "pwd")) else name[:20]


def _whole(match: re.Match[str]) -> str:
    return f"[REDACTED:{match.lastgroup}]"
