"""Drafts a signature for an unknown failure; the user must complete the draft."""

from __future__ import annotations

import json
import re

from flink_triage.model import Frame, StackTrace, Throwable
from flink_triage.traces import mask

# The length limits of a literal: long enough to be rare, and short enough not to depend on the rest
# of the message.
_MIN_LITERAL_CHARS = 4
_MAX_LITERAL_CHARS = 80
_MAX_LITERALS = 2
_MAX_TITLE_CHARS = 80
_PLACEHOLDER = re.compile(r"<[a-z][a-z0-9_-]*>")
_MAX_EXAMPLE_CHARS = 32 * 1024
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]"
)


def draft(trace: StackTrace, exemplar: str, signature_id: str) -> str:
    """The YAML of a signature that loads and matches ``exemplar``.

    Its literals are the constant parts of the root cause message, or else the class. If the message
    has variable parts, the signature also has a regex for them, provided that the regex matches.
    Fields that the user must complete are marked ``TODO``. The linter also requires a near miss.
    """
    root = trace.root_cause
    message = root.message.split("\n", 1)[0].strip()
    literals = constant_parts(message) or [root.type]
    lines = [
        f"# {signature_id}: drafted from one failure; complete every TODO.",
        f"title: {_quoted(_title(root))}",
        "severity: major   # TODO critical | major | minor | info, by its consequence",
        "role: trigger     # TODO its usual role",
        "match:",
        "  any:",
        f"    - throwable: {_quoted(root.type)}",
        f"      literal: [{', '.join(_quoted(literal) for literal in literals)}]",
    ]
    pattern = masked_regex(message)
    if pattern:
        lines.append(f"      regex: {_quoted(pattern)}")
    frame = _first_own_frame(root)
    if frame is not None:
        lines.append(f"      # frame: {_quoted(f'{frame.class_name}.{frame.method}')}")
    lines += [
        "cause: |",
        "  TODO what happened and why, in two to six plain sentences.",
        "remediation:",
        "  summary: TODO how to fix it, in one sentence",
        "  steps: []",
        "  risk: restart",
        "limits: TODO where this signature can be wrong",
        "references: []",
        "examples:",
        "  match:",
        *_block(exemplar),
        "  no_match: []   # TODO a similar message of a different failure",
        "",
    ]
    return "\n".join(lines)


def constant_parts(message: str) -> list[str]:
    """Up to two parts of a message that masking does not change: the longest ones, in text order.

    Parts of fewer than 4 characters are omitted. Parts of more than 80 characters are truncated.
    """
    parts = []
    for part in _PLACEHOLDER.split(mask(message)):
        literal = _whole_words(part.strip(" \t'\"[](){},;:=/"))
        # Masking may normalize text, but a literal must occur in the original message.
        if len(literal) >= _MIN_LITERAL_CHARS and literal in message:
            parts.append(literal)
    longest = sorted(parts, key=len, reverse=True)[:_MAX_LITERALS]
    return [part for part in parts if part in longest]


def masked_regex(message: str) -> str | None:
    """The message as a regex whose first two variable parts are named groups.

    ``None`` if the message has no variable parts, or if the regex does not match the message.
    """
    masked = mask(message)
    if not _PLACEHOLDER.search(masked):
        return None
    pieces: list[str] = []
    position = 0
    for group, match in enumerate(_PLACEHOLDER.finditer(masked), 1):
        pieces.append(_escape(masked[position : match.start()]))
        pieces.append(rf"(?P<value{group}>\S+?)" if group <= _MAX_LITERALS else r"\S+?")
        position = match.end()
    pieces.append(_escape(masked[position:]) or r"(?=\s|$)")
    pattern = "".join(pieces)
    return pattern if re.search(pattern, message) else None


def _escape(text: str) -> str:
    return re.escape(text).replace(r"\ ", " ")


def _whole_words(text: str) -> str:
    if len(text) <= _MAX_LITERAL_CHARS:
        return text
    return text[:_MAX_LITERAL_CHARS].rpartition(" ")[0] or text[:_MAX_LITERAL_CHARS]


def _title(root: Throwable) -> str:
    name = root.type.rpartition(".")[2]
    message = _PLACEHOLDER.sub("...", mask(root.message.split("\n", 1)[0])).strip().rstrip(".")
    text = f"{name}: {message}" if message else f"{name} is thrown"
    return text if len(text) <= _MAX_TITLE_CHARS else text[: _MAX_TITLE_CHARS - 3].rstrip() + "..."


def _first_own_frame(root: Throwable) -> Frame | None:
    own = (frame for frame in root.frames if frame.origin not in ("jdk", "native", "library"))
    return next(own, None)


def _block(text: str) -> list[str]:
    """The lines of a block scalar in a list; characters that YAML does not allow are replaced."""
    cut = text[:_MAX_EXAMPLE_CHARS].strip("\n").replace("\r", "")
    return ["    - |2", *(f"      {line}" for line in _printable(cut).split("\n"))]


def _printable(text: str) -> str:
    """The text without control characters, lone surrogates, and YAML line separators."""
    return _UNPRINTABLE.sub("\ufffd", text)


def _quoted(text: str) -> str:
    # A JSON string is a YAML double-quoted scalar.
    return json.dumps(_printable(text), ensure_ascii=False)
