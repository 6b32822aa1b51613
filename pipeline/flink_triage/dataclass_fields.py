"""The names of a dataclass's fields, for values that are walked in tens of thousands."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

_NAMES: dict[type, tuple[str, ...]] = {}


def field_names(kind: type) -> tuple[str, ...]:
    """Of a dataclass, in their order; empty for any other class."""
    names = _NAMES.get(kind)
    if names is None:
        names = tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()
        _NAMES[kind] = names
    return names
