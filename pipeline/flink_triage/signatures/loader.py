"""Loads one signature file into a ``Signature``, or returns all problems in the file.

The schema defines the fields. This module checks requirements that a schema cannot express. For
example, a regex must compile, the parts of ``match`` must be consistent, and an alternative must
have a literal unless it has ``error`` or ``frame-origin``, or belongs to ``none``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from flink_triage.model import TriedFix
from flink_triage.signatures.error_forms import expand, problems_of_error, words_of
from flink_triage.signatures.schema_check import Checked, Schema, check
from flink_triage.signatures.signature import (
    Alternative,
    ComputedValue,
    ConfigSpec,
    Examples,
    MatchMode,
    RemediationSpec,
    Signature,
    TextScope,
    Versions,
    When,
)
from flink_triage.user_regex import problem_of_regex
from flink_triage.yaml_documents import MappingNode, Node, Problem, parse_document, read_document

_MODES: tuple[MatchMode, ...] = ("any", "all", "sequence")
_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def load_signature(
    path: Path, signature_id: str, label: str, schema: Schema
) -> tuple[Signature | None, tuple[Problem, ...]]:
    """Load a file; the signature is ``None`` if there are problems.

    ``label`` is the name of the file in the problems.
    """
    node, problems = read_document(path, label)
    if node is None:
        return None, problems
    if not _is_signature(node, schema):
        # The content is not quoted, because the file may be a link to any other file.
        fields = ", ".join(schema["required"])
        reason = f"is not a signature; expected a mapping with {fields}"
        return None, (Problem(label, 1, "file", reason),)
    checked = check(node, schema, label)
    checked.problems.extend(problems)
    return _finish(checked, signature_id)


def _is_signature(node: Node, schema: Schema) -> bool:
    """Whether the document has at least one field of a signature."""
    return isinstance(node, MappingNode) and any(
        entry.key in schema["properties"] for entry in node.entries
    )


def parse_signature(
    text: str, signature_id: str, schema: Schema, label: str = "<text>"
) -> tuple[Signature | None, tuple[Problem, ...]]:
    """Like ``load_signature``, for YAML that is not in a file (a draft, a test)."""
    node, problems = parse_document(text, label)
    if node is None:
        return None, problems
    checked = check(node, schema, label)
    checked.problems.extend(problems)
    return _finish(checked, signature_id)


def _finish(checked: Checked, signature_id: str) -> tuple[Signature | None, tuple[Problem, ...]]:
    if not checked.problems:
        _check_match(checked)
        _check_config(checked)
    if checked.problems:
        return None, tuple(sorted(checked.problems, key=lambda problem: problem.line))
    return _build(checked, signature_id), ()


# --- checks that a schema cannot express -------------------------------------------------------


def _check_match(checked: Checked) -> None:
    match = checked.value["match"]
    modes = [mode for mode in _MODES if mode in match]
    line = checked.lines["match"]
    if len(modes) != 1:
        got = " and ".join(modes) or "none of them"
        checked.add(line, "match", f"must have exactly one of any, all, sequence; got {got}")
    if "sequence" in match and "count" in match:
        checked.add(checked.lines["match.count"], "match.count", "has no meaning with sequence")
    if "within" in match and not ("sequence" in match or "count" in match):
        checked.add(checked.lines["match.within"], "match.within", "requires count or sequence")
    for group in (*modes, "none"):
        for index, alternative in enumerate(match.get(group, ())):
            path = f"match.{group}[{index}]"
            _check_alternative(checked, path, alternative, needs_literal=group != "none")


def _check_alternative(
    checked: Checked, path: str, alternative: Mapping[str, Any], *, needs_literal: bool
) -> None:
    line = checked.lines[path]
    if "throwable" in alternative and "root-cause" in alternative:
        checked.add(line, path, "has throwable and root-cause; choose one")
    if "error" in alternative:
        _check_error(checked, path, alternative)
        return
    is_waived = "frame-origin" in alternative
    if needs_literal and not is_waived and "literal" not in alternative:
        reason = "has no literal; one is required without error or frame-origin"
        checked.add(line, path, reason)
    scope = alternative.get("scope")
    if scope == "throwable" and "throwable" not in alternative:
        checked.add(checked.lines[f"{path}.scope"], f"{path}.scope", "requires throwable")
    if "regex" in alternative:
        _check_regex(checked, f"{path}.regex", alternative["regex"])


_TEXT_KEYS = ("literal", "regex", "throwable", "root-cause", "scope")


def _check_error(checked: Checked, path: str, alternative: Mapping[str, Any]) -> None:
    for key in _TEXT_KEYS:
        if key in alternative:
            reason = "cannot be combined with error, whose forms define it"
            checked.add(checked.lines[f"{path}.{key}"], f"{path}.{key}", reason)
    for name, reason in problems_of_error(alternative["error"]):
        place = f"{path}.error.{name}" if name else f"{path}.error"
        checked.add(checked.lines.get(place, checked.lines[path]), place, reason)


def _check_config(checked: Checked) -> None:
    for index, change in enumerate(checked.value["remediation"].get("config", ())):
        path = f"remediation.config[{index}]"
        if "value" not in change and change.get("action") != "remove":
            checked.add(checked.lines[path], f"{path}.value", "is missing")
        for name, pattern in change.get("when", {}).get("capture", {}).items():
            _check_regex(checked, f"{path}.when.capture.{name}", pattern)


def _check_regex(checked: Checked, path: str, pattern: str) -> None:
    problem = problem_of_regex(pattern)
    if problem is not None:
        checked.add(checked.lines[path], path, problem)


# --- building ----------------------------------------------------------------------------------


def parse_seconds(text: str) -> float:
    """The number of seconds in a duration such as ``10 min``; the schema checks the format."""
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz").strip()
    return float(number) * _UNIT_SECONDS[text[len(number) :].strip()]


def _build(checked: Checked, signature_id: str) -> Signature:
    value = checked.value
    match = value["match"]
    mode = next(mode for mode in _MODES if mode in match)
    examples = value.get("examples", {})
    alternatives, lines = _alternatives(checked, mode)
    return Signature(
        id=signature_id,
        title=value["title"].strip(),
        severity=value["severity"],
        role=value["role"],
        mode=mode,
        alternatives=alternatives,
        vetoes=tuple(one for item in match.get("none", ()) for one in _forms_of(item)),
        count=match.get("count", 1),
        within_seconds=parse_seconds(match["within"]) if "within" in match else None,
        reach=value.get("reach", "job"),
        meaning=value.get("meaning"),
        precedence=value.get("precedence", "normal"),
        cause=value["cause"].strip(),
        remediation=_remediation(value),
        explains=tuple(value.get("explains", ())),
        versions=Versions(**value.get("versions", {})),
        limits=value["limits"].strip() if "limits" in value else None,
        examples=Examples(
            match=tuple(text.rstrip("\n") for text in examples.get("match", ())),
            no_match=tuple(text.rstrip("\n") for text in examples.get("no_match", ())),
        ),
        path=checked.label,
        lines=lines,
    )


def _alternatives(
    checked: Checked, mode: MatchMode
) -> tuple[tuple[Alternative, ...], Mapping[str, int]]:
    """The alternatives, one for each form of an error, and the line number of each field."""
    items = checked.value["match"][mode]
    if not any("error" in item for item in items):
        return tuple(map(_alternative, items)), checked.lines
    found: list[Alternative] = []
    prefix = f"match.{mode}["
    lines = {key: line for key, line in checked.lines.items() if not key.startswith(prefix)}
    for number, item in enumerate(items):
        own = f"{prefix}{number}]"
        of_item = {k[len(own) :]: n for k, n in checked.lines.items() if k.startswith(own)}
        for alternative in _forms_of(item):
            lines |= {f"{prefix}{len(found)}]{key}": line for key, line in of_item.items()}
            found.append(alternative)
    return tuple(found), lines


def _forms_of(item: Mapping[str, Any]) -> list[Alternative]:
    if "error" not in item:
        return [_alternative(item)]
    others = {key: value for key, value in item.items() if key != "error"}
    return [
        replace(_alternative({**others, **form}), error=words_of(item["error"]))
        for form in expand(item["error"])
    ]


def _alternative(value: Mapping[str, Any]) -> Alternative:
    return Alternative(
        scope=value.get("scope") or _default_scope(value),
        throwables=_items(value, "throwable"),
        root_causes=_items(value, "root-cause"),
        literals=_items(value, "literal"),
        regex=value.get("regex"),
        frames=_items(value, "frame"),
        loggers=_items(value, "logger"),
        levels=_items(value, "level"),
        process=value.get("process"),
        frame_origin=value.get("frame-origin"),
    )


def _default_scope(value: Mapping[str, Any]) -> TextScope:
    if "throwable" in value:
        return "throwable"
    return "root-cause" if "root-cause" in value else "event"


def _items(value: Mapping[str, Any], key: str) -> tuple[str, ...]:
    item = value.get(key, ())
    return (item,) if isinstance(item, str) else tuple(item)


def _remediation(value: Mapping[str, Any]) -> RemediationSpec:
    remediation = value["remediation"]
    trace_step, verify = remediation.get("trace_step"), remediation.get("verify")
    return RemediationSpec(
        summary=remediation["summary"].strip(),
        trace_step=trace_step.strip() if trace_step else None,
        missing_class=remediation.get("missing_class"),
        steps=tuple(step.strip() for step in remediation.get("steps", ())),
        config=tuple(_config(change) for change in remediation.get("config", ())),
        risk=remediation["risk"],
        verify=verify.strip() if verify else None,
        commonly_tried=tuple(
            TriedFix(tried["advice"].strip(), tried["assessment"].strip())
            for tried in value.get("commonly_tried", ())
        ),
        references=tuple(value.get("references", ())),
    )


def _config(change: Mapping[str, Any]) -> ConfigSpec:
    value = change.get("value", "")
    when = change.get("when")
    return ConfigSpec(
        key=change["key"],
        value=_computed(value) if isinstance(value, dict) else value,
        action=change.get("action", "set"),
        reason=change["reason"].strip(),
        scope=change.get("scope", "cluster"),
        purpose=change.get("purpose", "cure"),
        when=When(when.get("flink"), when.get("option", {}), when.get("capture", {}))
        if when
        else None,
    )


def _computed(value: Mapping[str, Any]) -> ComputedValue:
    return ComputedValue(
        value["factor"], value.get("at-least"), value.get("at-most"), _items(value, "stated")
    )
