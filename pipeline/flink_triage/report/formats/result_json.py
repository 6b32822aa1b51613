"""Converts a `Result` to plain JSON values and back, without loss.

``result.schema.json`` is the schema, and ``json_values.py`` defines how values are written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib.resources import files
from json.encoder import encode_basestring_ascii
from typing import Any, cast

from flink_triage.dataclass_fields import field_names
from flink_triage.errors import CorruptStateError
from flink_triage.json_values import decode, encode, encode_time, shown
from flink_triage.model import JsonObject, Result

SCHEMA_VERSION = 2
# Version 1 had only the verdicts diagnosed, undetermined and healthy.
_READABLE = (1, SCHEMA_VERSION)


def to_json(result: Result) -> JsonObject:
    """The result as dicts, lists, strings, numbers, booleans and nulls, for ``json.dumps``."""
    return cast(JsonObject, encode(result))


def from_json(document: Mapping[str, Any]) -> Result:
    """The inverse of `to_json`: ``from_json(to_json(x)) == x``.

    A document of version 1 is read as one of the current version. Unknown fields are ignored, and
    fields with a default may be missing. Raises `CorruptStateError` with the first field that
    cannot be read, its value and the allowed values.
    """
    if not isinstance(document, Mapping):
        raise CorruptStateError(f"result: got {shown(document)}, allowed: a JSON object")
    version = document.get("schema_version")
    if version not in _READABLE:
        allowed = ", ".join(map(str, _READABLE))
        raise CorruptStateError(f"result.schema_version: got {shown(version)}, allowed: {allowed}")
    current = {**document, "schema_version": SCHEMA_VERSION}
    return decode(Result, current, "result")


def dump_json(value: Any, *, indent: int | None = None) -> str:
    """JSON text in pure ASCII: control, bidi and line-separator characters are escaped."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False, indent=indent)


def json_pieces(result: Result) -> Iterator[str]:
    """The text of ``dump_json(to_json(result), indent=2)``, in pieces.

    A field with a list is divided into its items, so that the text of only one item is in memory at
    a time.
    """
    margin = "\n    "
    for index, name in enumerate(field_names(Result)):
        yield f'{"," if index else "{"}\n  "{name}": '
        of_name = getattr(result, name)
        if not isinstance(of_name, (tuple, list)) or not of_name:
            yield _text_of(of_name, "\n  ")
            continue
        for number, item in enumerate(of_name):
            yield f"{',' if number else '['}{margin}{_text_of(item, margin)}"
        yield "\n  ]"
    yield "\n}"


def _text_of(value: Any, margin: str) -> str:
    """One value as text; each line after the first begins with ``margin``."""
    if isinstance(value, str):
        return encode_basestring_ascii(value)
    if isinstance(value, datetime):
        return f'"{encode_time(value)}"'
    inner = f"{margin}  "
    if isinstance(value, (tuple, list)):
        return _joined("[", [_text_of(item, inner) for item in value], "]", margin)
    if isinstance(value, Mapping):
        pairs = [(str(key), item) for key, item in value.items()]
    else:
        names = field_names(type(value))
        if not names:
            return dump_json(value)
        pairs = [(name, getattr(value, name)) for name in names]
    members = [f"{encode_basestring_ascii(key)}: {_text_of(item, inner)}" for key, item in pairs]
    return _joined("{", members, "}", margin)


def _joined(begin: str, parts: Sequence[str], end: str, margin: str) -> str:
    if not parts:
        return begin + end
    inner = f"{margin}  "
    return f"{begin}{inner}{f',{inner}'.join(parts)}{margin}{end}"


@cache
def schema_text() -> str:
    """The text of ``result.schema.json`` (JSON Schema draft 2020-12)."""
    return (files("flink_triage.report") / "result.schema.json").read_text(encoding="utf-8")
