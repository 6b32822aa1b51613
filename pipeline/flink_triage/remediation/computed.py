"""Computes a new value from a signature, the current value, and the values in the log."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from flink_triage.remediation import values
from flink_triage.signatures.signature import ComputedValue
from flink_triage.signatures.stated_amounts import Amount, capture_names, evaluate

# The type of a capture, and its nanoseconds or bytes per unit, by the suffix of its name.
_UNITS: Mapping[str, tuple[str, int]] = {
    "_bytes": ("MemorySize", 1),
    "_ms": ("Duration", 10**6),
    "_seconds": ("Duration", 10**9),
}
_MIB, _SECOND, _MINUTE = 1024**2, 10**9, 60 * 10**9
_WHOLE_NUMBER = re.compile(r"\d{1,18}")


@dataclass(frozen=True, slots=True)
class Stated:
    """A value from the log: nanoseconds of a Duration, bytes of a MemorySize, or a number."""

    amount: Amount
    kind: str

    @property
    def words(self) -> str:
        if self.kind == "Long":
            return str(math.ceil(self.amount))
        return values.format_amount(self.amount, self.kind)


def stated(value: ComputedValue, captures: Mapping[str, str]) -> Stated | None:
    """The largest positive result of the expressions in ``value.stated``; ``None`` without one."""
    found = [
        Stated(amount * factor, kind)
        for expression in value.stated
        for kind, factor in (_unit(expression),)
        if (amount := evaluate(expression, captures)) is not None and amount > 0
    ]
    return max(found, key=lambda one: one.amount, default=None)


def new_amount(
    value: ComputedValue,
    now: Amount | None,
    log: Stated | None,
    amount: Callable[[str | None], Amount | None],
) -> Amount | None:
    """``factor`` times the larger of the current and the logged value, limited to the bounds.

    ``amount`` parses a bound as a value of the option's type. An upper bound that does not exceed
    the logged value is ignored. If both values are unknown or 0, the result is the lower bound, or
    else the upper bound, or ``None`` if there is no bound. The result is rounded if there is a
    logged value.
    """
    low, high = amount(value.at_least), amount(value.at_most)
    known = [number for number in (now, log.amount if log else None) if number]
    wanted = max(known) * value.factor if known else low if low is not None else high
    if wanted is None:
        return None
    if low is not None:
        wanted = max(wanted, low)
    if high is not None:
        # An upper bound that is not greater than the value in the log is ignored.
        wanted = min(wanted, high) if log is None or high > log.amount else wanted
    return _rounded(wanted, log) if log is not None else wanted


def outside_text(value: ComputedValue, captures: Mapping[str, str]) -> str | None:
    """The value for an option outside of Flink: milliseconds, bytes, or a number, without a unit.

    If the lower bound, or else the upper bound, has a unit, times and sizes have a unit as well.
    Without a value in the log, the result is a bound, or ``None`` if there is no bound.
    """
    log = stated(value, captures)
    bound = value.at_least or value.at_most
    if log is None:
        return bound
    is_bare = bound is None or _WHOLE_NUMBER.fullmatch(bound) is not None
    type_ = {"Duration": "Long(ms)", "MemorySize": "Long"}.get(log.kind, "Long")
    type_ = type_ if is_bare else log.kind
    wanted = new_amount(
        value, None, log, lambda text: None if text is None else values.amount_of(type_, text)
    )
    return None if wanted is None else values.format_amount(wanted, type_)


def _unit(expression: str) -> tuple[str, int]:
    for name in capture_names(expression):
        for ending, unit in _UNITS.items():
            if name.endswith(ending):
                return unit
    return "Long", 1


def _rounded(amount: Amount, log: Stated) -> Amount:
    """Round a computed size or duration.

    Sizes of 1 MiB or more are rounded up to whole MiB. Durations of 10 s or more are rounded to
    whole seconds, and those of 10 min or more to whole minutes, but not below the logged duration.
    """
    if log.kind == "MemorySize":
        return math.ceil(amount / _MIB) * _MIB if amount >= _MIB else amount
    if log.kind == "Duration" and amount >= 10 * _SECOND:
        step = _MINUTE if amount >= 10 * _MINUTE else _SECOND
        nearest = round(amount / step) * step
        return nearest if nearest >= log.amount else math.ceil(amount / step) * step
    return amount
