"""Exports labels for the Flink Kubernetes Operator: Java regexes for exception messages.

The operator's ``kubernetes.operator.exception.label.mapper`` maps Java regexes to labels. Its
``FlinkResourceExceptionUtils`` searches for each regex (``Matcher.find``) in the *messages* of an
exception chain. Alternatives with conditions on stack frames, loggers, or the message of a log line
are therefore omitted. Types, levels, and processes are not checked, so the text must be
distinctive: alternatives without a long literal are omitted as well. So are alternatives whose
regex has no Java equivalent. The result lists the omitted signatures with the reasons.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from flink_triage.signatures.export.java_regex import (
    JAVA_FLAGS,
    Untranslatable,
    escape_java,
    to_java,
)
from flink_triage.signatures.pack import SignaturePack
from flink_triage.signatures.signature import Alternative, Signature

LABEL_MAPPER_KEY = "kubernetes.operator.exception.label.mapper"
LabelMapperForm = Literal["config.yaml", "flink-conf.yaml"]

# A shorter literal is not distinctive without the type, logger, or stack frame.
_MIN_LITERAL_CHARS = 12
_QUALIFIED_NAME = re.compile(r"^(?:[a-z_$][\w$]*\.){2,}[\w$]+:?$")


@dataclass(frozen=True, slots=True)
class LabelMapper:
    """Labels by Java regex, in signature order; ``left_out`` has the reasons for omitted IDs.

    If several signatures have the same regex, only the first one is a label.
    """

    labels: Mapping[str, str]
    left_out: Mapping[str, str]


def label_mapper(pack: SignaturePack) -> LabelMapper:
    """Signature IDs as labels, for every signature that can be recognized by a message alone.

    Fallbacks are omitted, because the operator adds the label of every matching entry.
    """
    labels: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for signature in pack.signatures.values():
        if signature.is_episodic or signature.mode != "any":
            left_out[signature.id] = "requires several messages or conditions"
            continue
        if signature.precedence == "fallback":
            left_out[signature.id] = "applies only if no other signature does"
            continue
        pattern = _signature_regex(signature)
        if pattern is None:
            left_out[signature.id] = "cannot be recognized by a message alone"
        else:
            labels.setdefault(pattern, signature.id)
    return LabelMapper(labels, left_out)


def render_label_mapper(labels: Mapping[str, str], form: LabelMapperForm = "config.yaml") -> str:
    """One line for the operator's configuration file.

    Entries are quoted as in Flink's ``ConfigurationUtils.convertToString``: a regex or a label that
    contains a colon or a quote is enclosed in single quotes. Then, an entry that contains a comma
    or a quote is enclosed in single quotes again.
    """
    value = ",".join(
        _quoted(f"{_quoted(pattern, ':')}:{_quoted(label, ':')}", ",")
        for pattern, label in labels.items()
    )
    if form == "flink-conf.yaml":
        # The legacy parser uses everything after ": " unchanged, except that "#" starts a comment.
        return f"{LABEL_MAPPER_KEY}: {value}\n"
    return f"{LABEL_MAPPER_KEY}: {json.dumps(value)}\n"


def _signature_regex(signature: Signature) -> str | None:
    """One regex for all alternatives, because the operator adds a label per matching entry.

    Alternatives that a message alone does not identify are omitted; ``None`` if all are omitted.
    """
    patterns = [
        pattern
        for index, alternative in enumerate(signature.alternatives)
        if (pattern := _message_regex(signature, alternative, f"a{index}g"))
    ]
    joined = "|".join(dict.fromkeys(patterns))
    if not joined:
        return None
    return JAVA_FLAGS + joined if any(a.regex for a in signature.alternatives) else joined


def _message_regex(signature: Signature, alternative: Alternative, prefix: str) -> str | None:
    """A Java regex for messages that contain the literals and the regex, but no veto literal.

    The literals may occur in any order. Class names are not required, because a message may not
    contain them. Vetoes with more than one literal, or with other conditions, are ignored. ``None``
    if a message alone does not identify the failure, or if the regex has no Java equivalent.
    """
    if alternative.scope in ("frame", "message") or alternative.loggers or alternative.frames:
        return None
    literals = [text for text in alternative.literals if not _QUALIFIED_NAME.match(text)]
    if max((len(text) for text in literals), default=0) < _MIN_LITERAL_CHARS:
        return None
    try:
        regex = to_java(alternative.regex, prefix) if alternative.regex is not None else None
    except Untranslatable:
        return None
    vetoes = [
        text
        for veto in signature.vetoes
        for text in veto.literals[:1]
        if len(veto.literals) == 1 and veto == Alternative(veto.scope, literals=veto.literals)
    ]
    if len(literals) == 1 and not vetoes and regex is None:
        return escape_java(literals[0])
    present = [*(escape_java(text) for text in literals), *([f"(?:{regex})"] if regex else [])]
    return (
        "\\A"
        + "".join(f"(?=[\\s\\S]*{text})" for text in present)
        + "".join(f"(?![\\s\\S]*{escape_java(text)})" for text in vetoes)
    )


def _quoted(text: str, delimiter: str) -> str:
    needs_quotes = any(mark in text for mark in (delimiter, "'", '"')) or text != text.strip()
    return "'" + text.replace("'", "''") + "'" if needs_quotes else text
