"""Converts values of the model to plain JSON values and back, for the result and the tables.

The JSON contains exactly the fields of the dataclasses, in the same order. Times are in ISO 8601
format, in UTC with a ``Z``; tuples and sets are arrays; an unknown value is ``null``.
"""

from __future__ import annotations

import re
import types
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from flink_triage.dataclass_fields import field_names
from flink_triage.errors import CorruptStateError

T = TypeVar("T")

_STEPS = re.compile(r"\.(\w+)|\[(\d+|\.\.\.)\]")
_MISSING = re.compile(r"missing required field `(\w+)`")
_A_TIME = "an ISO-8601 time in UTC such as 2026-11-21T05:52:20.772Z"


def encode(value: Any) -> Any:
    """Convert a value of the model to a JSON value; a time without a time zone is read as UTC."""
    if value is None or isinstance(value, (str, bytes, int, float)):
        return value
    if isinstance(value, datetime):
        return encode_time(value)
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, frozenset):
        value = sorted(value, key=repr)
    if isinstance(value, Sequence):
        return [encode(item) for item in value]
    names = field_names(type(value))
    return {name: encode(getattr(value, name)) for name in names} if names else value


def encode_time(at: datetime) -> str:
    utc = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    digits = "seconds" if not utc.microsecond else "auto"
    if utc.microsecond and utc.microsecond % 1000 == 0:
        digits = "milliseconds"
    return utc.replace(tzinfo=None).isoformat(timespec=digits) + "Z"


def decode(kind: type[T], value: Any, where: str) -> T:
    """Convert a result of `encode` back to a ``kind``.

    Fields that ``kind`` does not have are ignored, and fields with a default may be missing. Raises
    `CorruptStateError` with the path of the first invalid or missing value, and what is allowed;
    ``where`` is the prefix of the path.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise CorruptStateError(_refusal(str(error), kind, value, where)) from None


def shown(value: Any) -> str:
    """The ``repr`` of a value from an external source, as at most 80 ASCII characters."""
    text = ascii(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _refusal(message: str, kind: Any, value: Any, where: str) -> str:
    """The error message: the path of the invalid value, the value, and the allowed values.

    ``message`` is the message of msgspec, which ends with the path from ``value``.
    """
    reason, _, place = message.partition(" - at ")
    kind = _without_none(kind)
    for name, index in _STEPS.findall(place):
        if name:
            kind, value, where = get_type_hints(kind)[name], value[name], f"{where}.{name}"
        elif index == "...":
            kind = get_args(kind)[1]
            key, value = next(pair for pair in value.items() if not _is_readable(kind, pair[1]))
            where = f"{where}.{key}"
        else:
            kind, value, where = get_args(kind)[0], value[int(index)], f"{where}[{index}]"
        kind = _without_none(kind)
    if missing := _MISSING.search(reason):
        return f"{where}.{missing[1]}: missing, allowed: {get_type_hints(kind)[missing[1]]}"
    return f"{where}: got {shown(value)}, allowed: {_allowed(kind)}"


def _without_none(kind: Any) -> Any:
    """``X`` for the type ``X | None``; any other type is returned unchanged."""
    if get_origin(kind) in (Union, types.UnionType):
        (kind,) = [one for one in get_args(kind) if one is not type(None)]
    return kind


def _is_readable(kind: Any, value: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def _allowed(kind: Any) -> str:
    origin = get_origin(kind)
    if origin is Literal:
        return ", ".join(map(str, get_args(kind)))
    if origin in (tuple, frozenset):
        return "an array"
    if origin is not None or is_dataclass(kind):
        return "an object"
    words = {datetime: _A_TIME, float: "a number", int: "an integer"}
    return words.get(kind, f"a {kind.__name__}")
