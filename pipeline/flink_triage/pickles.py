"""Pickles dataclasses that are sent in tens of thousands."""

from __future__ import annotations

from dataclasses import fields
from operator import attrgetter
from typing import Any, TypeVar

T = TypeVar("T", bound=type)


def pickled_by_position(kind: T) -> T:
    """Pickle a dataclass as a call with the values of its fields, in half the time.

    By default, the fields of a frozen dataclass with slots are looked up and set one by one.
    """
    get = attrgetter(*(field.name for field in fields(kind)))

    def reduce(self: object) -> tuple[type, Any]:
        return kind, get(self)

    kind.__reduce__ = reduce  # type: ignore[method-assign, assignment]
    return kind
