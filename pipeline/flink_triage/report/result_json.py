"""A `Result` to plain JSON values and back, without loss; the shape is ``result.schema.json``.

The JSON has exactly the fields of the dataclasses in ``model.py``, in their order.  Times are
ISO-8601 in UTC with a ``Z``; tuples are arrays; a field that is not known is ``null``.
"""

from __future__ import annotations

import json
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime, timezone
from functools import cache
from importlib.resources import files
from json.encoder import encode_basestring_ascii
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from flink_triage.errors import CorruptStateError
from flink_triage.fields import field_names
from flink_triage.model import JsonObject, Result

SCHEMA_VERSION = 2
# Version 1 had the verdicts diagnosed, undetermined and healthy only.
_READABLE = (1, SCHEMA_VERSION)


def to_json(result: Result) -> JsonObject:
    """The result as dicts, lists, strings, numbers and nulls, ready for ``json.dumps``."""
    return cast(JsonObject, encode(result))


def from_json(document: Mapping[str, Any]) -> Result:
    """The inverse of `to_json`: ``from_json(to_json(x)) == x``.

    A document of version 1 is read as one of the current version.
    Fields that this version does not know are ignored, fields with a default may be missing.
    Raises `CorruptStateError` naming the first field that cannot be read, what it holds and what
    is allowed there.
    """
    if not isinstance(document, Mapping):
        raise CorruptStateError(f"result: got {_shown(document)}, allowed: a JSON object")
    version = document.get("schema_version")
    if version not in _READABLE:
        allowed = ", ".join(map(str, _READABLE))
        raise CorruptStateError(f"result.schema_version: got {_shown(version)}, allowed: {allowed}")
    current = {**document, "schema_version": SCHEMA_VERSION}
    return cast(Result, _decode(Result, current, "result"))


def dump_json(value: Any, *, indent: int | None = None) -> str:
    """JSON text in pure ASCII: no control, bidi or line-separator character survives raw."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False, indent=indent)


def json_pieces(result: Result) -> Iterator[str]:
    """What ``dump_json(to_json(result), indent=2)`` gives, piece by piece.

    A piece is an item of a field at most, so that no more than that is held at once.
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
    """One value as text whose lines begin with ``margin``."""
    if isinstance(value, str):
        return encode_basestring_ascii(value)
    if isinstance(value, datetime):
        return f'"{_encode_time(value)}"'
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
    """``result.schema.json`` as it ships (JSON Schema draft 2020-12)."""
    return (files("flink_triage.report") / "result.schema.json").read_text(encoding="utf-8")


def encode(value: Any) -> Any:
    """One value of the model as a JSON value; a naive time is taken for UTC."""
    if isinstance(value, datetime):
        return _encode_time(value)
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [encode(item) for item in value]
    names = field_names(type(value))
    return {name: encode(getattr(value, name)) for name in names} if names else value


def _encode_time(at: datetime) -> str:
    utc = at.replace(tzinfo=timezone.utc) if at.tzinfo is None else at.astimezone(timezone.utc)
    digits = "seconds" if not utc.microsecond else "auto"
    if utc.microsecond and utc.microsecond % 1000 == 0:
        digits = "milliseconds"
    return utc.replace(tzinfo=None).isoformat(timespec=digits) + "Z"


def _decode(kind: Any, value: Any, where: str) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        (kind,) = [argument for argument in arguments if argument is not type(None)]
        return _decode(kind, value, where)
    if origin is Literal:
        return _checked(value in arguments, value, where, ", ".join(map(str, arguments)))
    if origin is tuple:
        _checked(isinstance(value, list), value, where, "an array")
        return tuple(_decode(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(value))
    if origin is not None and issubclass(origin, Mapping):
        _checked(isinstance(value, Mapping), value, where, "an object")
        return {key: _decode(arguments[1], item, f"{where}.{key}") for key, item in value.items()}
    if is_dataclass(kind):
        return _decode_object(cast(type, kind), value, where)
    return _decode_scalar(kind, value, where)


def _decode_object(kind: type, value: Any, where: str) -> Any:
    _checked(isinstance(value, Mapping), value, where, "an object")
    hints, arguments = _hints(kind), {}
    for field in fields(kind):
        at = f"{where}.{field.name}"
        if field.name in value:
            arguments[field.name] = _decode(hints[field.name], value[field.name], at)
        elif field.default is MISSING and field.default_factory is MISSING:
            raise CorruptStateError(f"{at}: missing, allowed: {hints[field.name]}")
    return kind(**arguments)


def _decode_scalar(kind: Any, value: Any, where: str) -> Any:
    if kind is datetime:
        return _decode_time(value, where)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is float:
        return float(_checked(is_number, value, where, "a number"))
    if kind is int:
        return _checked(is_number and isinstance(value, int), value, where, "an integer")
    return _checked(isinstance(value, kind), value, where, f"a {kind.__name__}")


def _decode_time(value: Any, where: str) -> datetime:
    allowed = "an ISO-8601 time in UTC such as 2026-11-21T05:52:20.772Z"
    _checked(isinstance(value, str) and value.endswith("Z"), value, where, allowed)
    try:
        return datetime.fromisoformat(_in_microseconds(value[:-1]) + "+00:00")
    except ValueError:
        raise CorruptStateError(f"{where}: got {_shown(value)}, allowed: {allowed}") from None


def _in_microseconds(moment: str) -> str:
    """Python 3.10 reads a fraction of three digits or six, and no other."""
    whole, point, fraction = moment.partition(".")
    return f"{whole}.{fraction.ljust(6, '0')}" if point else whole


def _checked(is_allowed: bool, value: Any, where: str, allowed: str) -> Any:
    if not is_allowed:
        raise CorruptStateError(f"{where}: got {_shown(value)}, allowed: {allowed}")
    return value


def _shown(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 80 else text[:77] + "..."


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)
