"""Validates a node tree against a JSON Schema; returns plain values, their lines, and all problems.

``patterns/signature.schema.json`` defines the fields of a signature. Editors use it for completion
and validation, and the loader uses it through this module. The module supports only the JSON Schema
keywords that the file contains. It converts scalars to numbers only if the schema requires numbers.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from flink_triage.yaml_documents import MappingNode, Node, Problem, Scalar, SequenceNode

Schema = Mapping[str, Any]

_KIND_WORDS = {"object": "a mapping", "array": "a list", "string": "text"}


@lru_cache(maxsize=8)
def load_schema(path: Path) -> Schema:
    schema: Schema = json.loads(path.read_text(encoding="utf-8"))
    return schema


@dataclass(slots=True)
class Checked:
    """The values of one document; ``lines`` maps a path (``match.any[0].regex``) to its line."""

    label: str
    value: Any = None
    lines: dict[str, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def add(self, line: int, path: str, reason: str) -> None:
        self.problems.append(Problem(self.label, line, path or "file", reason))


def check(node: Node, root: Schema, label: str) -> Checked:
    """Validate a document and collect all problems; if there are any, ``value`` may be partial."""
    checked = Checked(label)
    checked.value = _check(node, root, root, "", checked)
    return checked


def _check(node: Node, schema: Schema, root: Schema, path: str, out: Checked) -> Any:
    out.lines.setdefault(path, node.line)
    schema = _resolve(schema, root)
    if "anyOf" in schema:
        schema = _pick(node, [_resolve(branch, root) for branch in schema["anyOf"]])
    kind = schema.get("type")
    if kind == "object":
        return _check_object(node, schema, root, path, out)
    if kind == "array":
        return _check_array(node, schema, root, path, out)
    if not isinstance(node, Scalar):
        out.add(node.line, path, f"must be {_word(schema)}, got {_kind(node)}")
        return None
    return _check_scalar(node, schema, path, out)


def _resolve(schema: Schema, root: Schema) -> Schema:
    while "$ref" in schema:
        target: Any = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        schema = target
    return schema


def _pick(node: Node, branches: list[Schema]) -> Schema:
    wanted = {MappingNode: "object", SequenceNode: "array"}.get(type(node), "string")
    return next((branch for branch in branches if branch.get("type") == wanted), branches[0])


def _check_object(node: Node, schema: Schema, root: Schema, path: str, out: Checked) -> Any:
    if not isinstance(node, MappingNode):
        out.add(node.line, path, f"must be a mapping, got {_kind(node)}")
        return {}
    properties: Schema = schema.get("properties", {})
    others = schema.get("additionalProperties", False)
    value: dict[str, Any] = {}
    for entry in node.entries:
        inner = f"{path}.{entry.key}" if path else entry.key
        known = properties.get(entry.key, others if isinstance(others, Mapping) else None)
        if known is None:
            out.add(entry.line, inner, f"is not a known field{hint(entry.key, properties)}")
            continue
        out.lines[inner] = entry.line
        value[entry.key] = _check(entry.value, known, root, inner, out)
    for name in schema.get("required", ()):
        if node.get(name) is None:
            out.add(node.line, f"{path}.{name}" if path else name, "is missing")
    if len(node.entries) < schema.get("minProperties", 0):
        out.add(node.line, path, "is empty")
    return value


def _check_array(node: Node, schema: Schema, root: Schema, path: str, out: Checked) -> Any:
    if not isinstance(node, SequenceNode):
        out.add(node.line, path, f"must be a list, got {_kind(node)}")
        return []
    if len(node.items) < schema.get("minItems", 0):
        out.add(node.line, path, "is empty")
    return [
        _check(item, schema["items"], root, f"{path}[{index}]", out)
        for index, item in enumerate(node.items)
    ]


def _check_scalar(node: Scalar, schema: Schema, path: str, out: Checked) -> Any:
    text = node.text
    if not text.strip():
        out.add(node.line, path, "is empty")
        return text
    if schema.get("type") in ("integer", "number"):
        return _check_number(node, schema, path, out)
    allowed = schema.get("enum")
    if allowed is not None and text not in allowed:
        reason = f'"{text}" is not one of {", ".join(allowed)}{hint(text, allowed)}'
        out.add(node.line, path, reason)
    if len(text) > schema.get("maxLength", len(text)):
        out.add(node.line, path, f"is {len(text)} characters, at most {schema['maxLength']}")
    if len(text) < schema.get("minLength", 0):
        out.add(node.line, path, f'"{text}" is shorter than {schema["minLength"]} characters')
    pattern = schema.get("pattern")
    if pattern is not None and not re.search(pattern, text):
        allowed_form = schema.get("description", f"text like {pattern}")
        out.add(node.line, path, f'"{text}" is not valid; allowed: {allowed_form}')
    return text


def _check_number(node: Scalar, schema: Schema, path: str, out: Checked) -> Any:
    is_integer = schema["type"] == "integer"
    form = r"-?\d{1,9}" if is_integer else r"-?\d{1,9}(\.\d{1,9})?"
    if not node.is_plain or not re.fullmatch(form, node.text, re.ASCII):
        word = "a whole number" if is_integer else "a number"
        out.add(node.line, path, f'"{node.text}" is not {word} without quotes, up to nine digits')
        return 1
    value = int(node.text) if is_integer else float(node.text)
    if value < schema.get("minimum", value):
        out.add(node.line, path, f"{node.text} is below {schema['minimum']}")
    return value


def hint(word: str, known: Iterable[str]) -> str:
    """``; did you mean x?`` if a known word is similar, otherwise an empty string."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""


def _word(schema: Schema) -> str:
    return _KIND_WORDS.get(str(schema.get("type")), f"a {schema.get('type', 'value')}")


def _kind(node: Node) -> str:
    if isinstance(node, MappingNode):
        return "a mapping"
    if isinstance(node, SequenceNode):
        return "a list"
    return "text" if node.text else "nothing"
