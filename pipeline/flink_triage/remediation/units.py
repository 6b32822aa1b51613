"""Parses and formats durations and sizes as Flink does (TimeUtils and MemorySize)."""

from __future__ import annotations

import math
import re

from flink_triage.remediation.versions import NEWEST, is_line_since

LONG_MAX = 2**63 - 1

NANOS = {"ns": 1, "µs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}
NANOS |= {"h": 3600 * 10**9, "d": 86400 * 10**9}
_WORDS: dict[str, tuple[str, ...]] = {
    "ns": ("nano", "nanosecond"),
    "µs": ("micro", "microsecond"),
    "ms": ("milli", "millisecond"),
    "s": ("sec", "second"),
    "min": ("minute",),
    "h": ("hour",),
    "d": ("day",),
}
# As in TimeUtils, a long label has a plural form, but a short label does not ("min", not "mins").
_TIME_LABELS: dict[str, int] = {**NANOS, "m": NANOS["min"]} | {
    word + plural: NANOS[unit]
    for unit, words in _WORDS.items()
    for word in words
    for plural in ("", "s")
}

_SIZE_LABELS: dict[str, int] = {"b": 1, "bytes": 1} | {
    label: 1024**power
    for power, letter, word in (
        (1, "k", "kibibytes"),
        (2, "m", "mebibytes"),
        (3, "g", "gibibytes"),
        (4, "t", "tebibytes"),
    )
    for label in (letter, f"{letter}b", word)
}

# The first lines that accept "10 m" and "PT10M" (TimeUtils).
_SHORT_MINUTES, _ISO_DURATIONS = "1.15", "2.1"

_AMOUNT = re.compile(r"(?P<number>[0-9]+)(?P<label>.*)", re.DOTALL)
# java.time.Duration.parse, without signs.
_ISO_DURATION = re.compile(
    r"P(?=[0-9T])(?:(?P<d>[0-9]{1,18})D)?"
    r"(?:T(?=[0-9])(?:(?P<h>[0-9]{1,18})H)?(?:(?P<min>[0-9]{1,18})M)?"
    r"(?:(?P<s>[0-9]{1,18})(?:[.,](?P<fraction>[0-9]{0,9}))?S)?)?",
    re.IGNORECASE,
)


class ValueProblem(ValueError):
    """A value that is invalid for the type of its option; the message states the reason."""


def parse_duration(text: str, line: str = NEWEST) -> int:
    """The nanoseconds of ``10 min``, ``30s``, ``1 d``, ``PT10M``; a bare number is in ms.

    Raises ``ValueProblem`` if the line does not accept the text as a duration (TimeUtils).
    """
    iso = _ISO_DURATION.fullmatch(text.strip())
    if iso and is_line_since(line, _ISO_DURATIONS):
        whole = sum(int(iso[unit] or 0) * NANOS[unit] for unit in ("d", "h", "min", "s"))
        return whole + int((iso["fraction"] or "").ljust(9, "0"))
    amount, label = _split_amount(text, "10 min")
    factor = _TIME_LABELS.get(label) if label else NANOS["ms"]
    has_short_minutes = is_line_since(line, _SHORT_MINUTES)
    if factor is None or (label == "m" and not has_short_minutes):
        minutes = "min (m)" if has_short_minutes else "min"
        raise ValueProblem(
            f'"{text}" has the unknown time unit "{label}"; '
            f"allowed: d, h, {minutes}, s, ms, µs, ns, and their long names"
        )
    return amount * factor


def parse_size(text: str) -> int:
    """The number of bytes in a size such as ``512 mb`` or ``1g``, in the format of MemorySize.

    Units are powers of 1024, and a bare number is in bytes. Raises ``ValueProblem`` if the text is
    not a size, or if the size does not fit into a Java long.
    """
    amount, label = _split_amount(text, "512 mb")
    factor = _SIZE_LABELS.get(label) if label else 1
    if factor is None:
        raise ValueProblem(
            f'"{text}" has the unknown size unit "{label}"; allowed: b, kb, mb, gb, tb, '
            "their first letters, bytes, kibibytes, mebibytes, gibibytes, and tebibytes"
        )
    if amount * factor > LONG_MAX:
        raise ValueProblem(f'"{text}" is too large for 64 bits')
    return amount * factor


def _split_amount(text: str, example: str) -> tuple[int, str]:
    found = _AMOUNT.fullmatch(text.strip())
    if found is None:
        raise ValueProblem(f'"{text}" does not start with a digit, as "{example}" does')
    amount = int(found["number"]) if len(found["number"]) < 40 else LONG_MAX + 1
    if amount > LONG_MAX:
        raise ValueProblem(f'"{text}" has a number above {LONG_MAX}')
    return amount, found["label"].strip().lower()


def unit_of(number: str, duration: str) -> str | None:
    """The unit in which ``number`` equals ``duration``, such as ``ms`` for 30000 and ``30 s``.

    ``None`` if there is no such unit.
    """
    try:
        amount, nanos = int(number), parse_duration(duration)
    except ValueError:
        return None
    exact = (unit for unit, size in NANOS.items() if amount > 0 and amount * size == nanos)
    return next(exact, None)


def format_duration(nanos: int) -> str:
    """``90 s`` for 90 * 10**9; the smallest unit is ms, and fractions of it are rounded up."""
    millis = math.ceil(nanos / NANOS["ms"])
    for unit in ("d", "h", "min", "s"):
        size = NANOS[unit] // NANOS["ms"]
        if millis and millis % size == 0:
            return f"{millis // size} {unit}"
    return f"{millis} ms"


def format_size(size: int) -> str:
    """``2 gb`` for 2 * 1024**3; 100 MiB or more are rounded up to whole MiB."""
    if size >= 100 * 1024**2:
        size = math.ceil(size / 1024**2) * 1024**2  # fractions of a megabyte are not significant
    for power, unit in ((4, "tb"), (3, "gb"), (2, "mb"), (1, "kb")):
        if size and size % 1024**power == 0:
            return f"{size // 1024**power} {unit}"
    return f"{size} b"
