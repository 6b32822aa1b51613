"""Exports the conditions on throwables as a text file that Java can read without a library.

Flink's FailureEnricher (FLIP-304) receives the throwable of a failure, but no part of the log (no
header line, logger, level, or earlier lines). ``EnricherRules.pack`` is the pack reduced to
conditions on throwables. Apart from the limitations in ``docs/exports.md``, the labels of the
enricher must be those of the first match of the Python ``Matcher`` with this pack.

File format: one record per line, with fields separated by tabs. In a field, backslash, tab, and
line ends are escaped as ``\\\\``, ``\\t``, ``\\n``, and ``\\r``. The alternatives and
vetoes of a signature follow its record, and the conditions of an alternative or a veto follow its
own record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from flink_triage.signatures.export.java_regex import Untranslatable, to_java
from flink_triage.signatures.pack import SignaturePack, build_pack
from flink_triage.signatures.signature import Alternative, Signature
from flink_triage.traces import frames as origins

RULES_FILE = "flink-triage-rules.tsv"
RULES_VERSION = "2"

# Failures are usually logged at one of these levels. An alternative that allows neither of them is
# omitted.
_FAILURE_LEVELS = frozenset({"WARN", "ERROR"})
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


@dataclass(frozen=True, slots=True)
class EnricherRules:
    """The rules; ``pack`` contains the supported conditions, without logger, level, or process.

    ``left_out`` contains the reason for each omitted signature, and for each alternative (``id:
    match.any[2]``) that was removed from a signature. ``digest`` is the digest of the full pack.
    """

    pack: SignaturePack
    left_out: Mapping[str, str]
    digest: str


def failure_enricher(pack: SignaturePack) -> EnricherRules:
    """The part of ``pack`` that can be checked with a throwable alone."""
    kept: list[Signature] = []
    left_out: dict[str, str] = {}
    for signature in pack.signatures.values():
        reason = _why_not(signature)
        if reason is not None:
            left_out[signature.id] = reason
            continue
        reasons = [_why_not_one(alternative) for alternative in signature.alternatives]
        lost = {f"match.{signature.mode}[{i}]": r for i, r in enumerate(reasons) if r is not None}
        if len(lost) == len(reasons) or (lost and signature.mode == "all"):
            left_out[signature.id] = "; ".join(dict.fromkeys(lost.values()))
            continue
        left_out.update({f"{signature.id}: {place}": r for place, r in lost.items()})
        kept.append(_reduced(signature, reasons))
    return EnricherRules(build_pack(kept), left_out, pack.digest)


def render_rules(rules: EnricherRules) -> str:
    """The text of ``RULES_FILE``."""
    return "".join("\t".join(f.translate(_ESCAPES) for f in r) + "\n" for r in _records(rules))


# --- conditions that can be checked ------------------------------------------------------------


def _why_not(signature: Signature) -> str | None:
    if signature.is_episodic:
        return "requires several events"
    for veto in signature.vetoes:
        reason = _why_no_regex(veto)
        if reason is not None:
            return f"its veto cannot be checked: {reason}"
    return None


def _why_not_one(alternative: Alternative) -> str | None:
    if alternative.loggers:
        return "requires a logger"
    if alternative.levels and not _FAILURE_LEVELS & set(alternative.levels):
        return "requires a level at which failures are not logged"
    if alternative.scope == "message":
        return "requires the message of a log line"
    return _why_no_regex(alternative)


def _why_no_regex(alternative: Alternative) -> str | None:
    try:
        to_java(alternative.regex or "")
    except Untranslatable as problem:
        return str(problem)
    return None


def _reduced(signature: Signature, reasons: list[str | None]) -> Signature:
    pairs = zip(signature.alternatives, reasons, strict=True)
    return replace(
        signature,
        alternatives=tuple(_throwable_conditions(one) for one, reason in pairs if reason is None),
        # A veto with scope "message" cannot match, because there is no log line.
        vetoes=tuple(
            _throwable_conditions(veto) for veto in signature.vetoes if veto.scope != "message"
        ),
    )


def _throwable_conditions(alternative: Alternative) -> Alternative:
    """Remove the conditions that do not apply to a throwable."""
    return replace(alternative, loggers=(), levels=(), process=None)


# --- the file ----------------------------------------------------------------------------------


def _records(rules: EnricherRules) -> Iterator[tuple[str, ...]]:
    yield ("flink-triage-rules", RULES_VERSION)
    yield ("signature-set", rules.digest)
    # The package prefixes that determine a frame's origin are exported, so that the enricher and
    # the matcher agree on it.
    yield ("origin", "jdk", *origins.JDK)
    yield ("origin", "connector", *origins.CONNECTOR)
    yield ("origin", "example", *origins.FLINK_EXAMPLES)
    yield ("origin", "library", *origins.LIBRARY)
    yield ("generated", to_java(origins.GENERATED.pattern))
    yield ("shaded", to_java(origins.SHADED.pattern))
    for signature in rules.pack.signatures.values():
        yield from _signature_records(signature)


def _signature_records(signature: Signature) -> Iterator[tuple[str, ...]]:
    kind = "named" if signature.precedence == "normal" else "fallback"
    if signature.is_generic:
        kind = "generic"
    yield ("signature", signature.id, signature.severity, signature.role, signature.mode, kind)
    for alternative in signature.alternatives:
        yield from _alternative_records("alternative", alternative)
    for veto in signature.vetoes:
        yield from _alternative_records("veto", veto)


def _alternative_records(record: str, alternative: Alternative) -> Iterator[tuple[str, ...]]:
    origin = alternative.frame_origin or "any"
    yield (record, alternative.scope, str(alternative.specificity), origin)
    for name, values in (
        ("throwable", alternative.throwables),
        ("root-cause", alternative.root_causes),
        ("literal", alternative.literals),
        ("frame", alternative.frames),
    ):
        if values:
            yield (name, *values)
    if alternative.regex is not None:
        yield ("regex", to_java(alternative.regex))
