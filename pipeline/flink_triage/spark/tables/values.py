"""Frozen dataclasses to JSON values and back, driven by their annotations.

Incidents are kept whole in one column, so that a report renders again what a run found.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from datetime import datetime, timezone
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from flink_triage.fields import field_names

T = TypeVar("T")


def to_plain(value: Any) -> Any:
    """``value`` as dicts, lists, strings, numbers; timestamps as ISO 8601 in UTC."""
    if value is None or isinstance(value, (str, bytes, int, float)):
        return value
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).isoformat()
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, frozenset):
        value = sorted(value, key=repr)
    if isinstance(value, Sequence):
        return [to_plain(item) for item in value]
    names = field_names(type(value))
    return {name: to_plain(getattr(value, name)) for name in names} if names else value


def from_plain(kind: type[T], value: Any) -> T:
    """The ``kind`` that ``to_plain`` made ``value`` of; fields it does not know are left out."""
    result: T = _decode(kind, value)
    return result


def _decode(kind: Any, value: Any) -> Any:
    if value is None:
        return None
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _decode(next(arg for arg in get_args(kind) if arg is not type(None)), value)
    if origin is tuple:
        item = get_args(kind)[0]
        return tuple(_decode(item, part) for part in value)
    if origin is frozenset:
        item = get_args(kind)[0]
        return frozenset(_decode(item, part) for part in value)
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        item = get_args(kind)[1]
        return {key: _decode(item, part) for key, part in value.items()}
    if kind is datetime:
        return datetime.fromisoformat(value)
    if is_dataclass(kind) and isinstance(kind, type):
        hints = _hints(kind)
        return kind(
            **{name: _decode(hints[name], part) for name, part in value.items() if name in hints}
        )
    return value


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)
