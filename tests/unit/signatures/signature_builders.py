"""Minimal signatures, events, and stack traces for the tests of the signatures stage."""

from __future__ import annotations

from pathlib import Path

from flink_triage.model import Event, Frame, StackTrace, Throwable
from flink_triage.signatures import (
    Alternative,
    RemediationSpec,
    Signature,
    SignaturePack,
    build_pack,
    builtin_pack_directory,
)
from flink_triage.signatures.loader import parse_signature
from flink_triage.signatures.schema_check import load_schema

DATA = Path(__file__).parent / "data"
SMALL_PACK = DATA / "small"
SCHEMA = load_schema(builtin_pack_directory() / "signature.schema.json")

HEAD = """\
title: Something went quite wrong
severity: major
role: trigger
cause: Eight words are needed here to say something useful.
remediation: {summary: Do this., risk: live, steps: [Do that.]}
"""


def signature(signature_id: str = "a/b", **fields: object) -> Signature:
    values: dict[str, object] = {
        "title": "Something went quite wrong",
        "severity": "major",
        "role": "trigger",
        "mode": "any",
        "alternatives": (Alternative(literals=("lost it",)),),
        "cause": "Words.",
        "remediation": RemediationSpec("Do this."),
    }
    return Signature(id=signature_id, **{**values, **fields})  # type: ignore[arg-type]


def pack_of(*alternatives: Alternative, **fields: object) -> SignaturePack:
    return build_pack([signature(alternatives=alternatives, **fields)])


def event(message: str = "", **fields: object) -> Event:
    values: dict[str, object] = {"logged_at": None, "level": None, "logger": None, "thread": None}
    return Event("f.log", 0, 1, 1, message=message, **{**values, **fields})  # type: ignore[arg-type]


def chain(*texts: str, frames: tuple[Frame, ...] = ()) -> StackTrace:
    """Builds a trace from ``type: message`` texts, outermost first. Only the last has frames."""
    throwables = []
    for index, text in enumerate(texts):
        name, _, message = text.partition(": ")
        is_last = index == len(texts) - 1
        throwables.append(Throwable(name, message, frames if is_last else ()))
    return StackTrace(tuple(throwables))


def problems_of(match: str, head: str = HEAD) -> list[str]:
    """Returns the loader errors for a signature with this ``match``, without the file name."""
    _, problems = parse_signature(head + match, "a/b", SCHEMA, "f")
    return [str(problem).removeprefix("f:") for problem in problems]
