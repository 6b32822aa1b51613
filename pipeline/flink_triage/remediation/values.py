"""Parses option values as Flink does, and formats them as a user would write them.

The grammars are those of TimeUtils, MemorySize, ConfigurationUtils.convertValue, and
StructuredOptionsSplitter. Types have the format of the option table: ``Duration``, ``Long(ms)`` (a
number that is a Duration in later lines), ``Enum:Name(A|B)``, ``List<String>``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

import yaml

from flink_triage.plain_yaml import load_plain_yaml
from flink_triage.remediation.versions import LINES, NEWEST

Parsed = bool | int | float | str | tuple[object, ...]

_LONG_MAX, _INT_MAX = 2**63 - 1, 2**31 - 1

_NANOS = {"ns": 1, "µs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}
_NANOS |= {"h": 3600 * 10**9, "d": 86400 * 10**9}
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
_TIME_LABELS: dict[str, int] = {**_NANOS, "m": _NANOS["min"]} | {
    word + plural: _NANOS[unit]
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

# The first lines that accept "10 m" (TimeUtils), YAML lists and maps (config.yaml, FLIP-366), and
# "PT10M" (TimeUtils).
_SHORT_MINUTES, _YAML, _ISO_DURATIONS = "1.15", "1.19", "2.1"

_AMOUNT = re.compile(r"(?P<number>[0-9]+)(?P<label>.*)", re.DOTALL)
# java.time.Duration.parse, without signs.
_ISO_DURATION = re.compile(
    r"P(?=[0-9T])(?:(?P<d>[0-9]{1,18})D)?"
    r"(?:T(?=[0-9])(?:(?P<h>[0-9]{1,18})H)?(?:(?P<min>[0-9]{1,18})M)?"
    r"(?:(?P<s>[0-9]{1,18})(?:[.,](?P<fraction>[0-9]{0,9}))?S)?)?",
    re.IGNORECASE,
)
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(
    r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)"
)
_ENUM = re.compile(r"Enum:[^(]*\((?P<names>.*)\)", re.DOTALL)
_NUMBER_WITH_UNIT = re.compile(r"(?:Long|Integer)\((?P<unit>\w+)\)")
# Older Akka and Pekko options store times and sizes as a String; the default indicates which one.
_SIZED_TEXT = re.compile(r"\d+\s*(?:b|k|kb|m|mb|g|gb)", re.IGNORECASE)
_TIMED_TEXT = re.compile(r"\d+\s*(?:ms|s|min|h|d)", re.IGNORECASE)

_QUANTITIES = ("Integer", "Long", "Float", "Double", "Duration", "MemorySize")

_PLACEHOLDER = re.compile(r"^<|<[^<>]+>|\{[A-Za-z_]\w*\}")


class ValueProblem(ValueError):
    """A value that is invalid for the type of its option; the message states the reason."""


def is_placeholder(value: str) -> bool:
    """Whether a value is a placeholder, such as ``<unique per deployment>``.

    The user must choose the actual value, so it cannot be checked.
    """
    return _PLACEHOLDER.search(value) is not None


def parse_value(type_: str, text: str, line: str = NEWEST) -> Parsed:
    """The value as a Flink line parses it; two results are equal if the values are equal in Flink.

    Durations are converted to nanoseconds, sizes to bytes, and enum constants to upper case. Values
    of type String and of unknown types are returned unchanged. Raises ``ValueProblem`` if the value
    is invalid for the type in that line.
    """
    plain = _NUMBER_WITH_UNIT.sub(lambda found: found[0].split("(")[0], type_)
    if plain == "Duration":
        return parse_duration(text, line)
    if plain == "MemorySize":
        return parse_size(text)
    if plain == "Boolean":
        return _parse_boolean(text)
    if plain in {"Integer", "Long"}:
        return _parse_integer(text, _INT_MAX if plain == "Integer" else _LONG_MAX, plain)
    if plain in {"Float", "Double"}:
        return _parse_decimal(text)
    if plain.startswith("Enum:"):
        return _parse_enum(plain, text)
    if plain.startswith("List<"):
        return _parse_list(plain[len("List<") : -1], text, line)
    if plain == "Map":
        return _parse_map(text, line)
    return text


def parse_duration(text: str, line: str = NEWEST) -> int:
    """The nanoseconds of ``10 min``, ``30s``, ``1 d``, ``PT10M``; a bare number is in ms.

    Raises ``ValueProblem`` if the line does not accept the text as a duration (TimeUtils).
    """
    iso = _ISO_DURATION.fullmatch(text.strip())
    if iso and _accepts(line, _ISO_DURATIONS):
        whole = sum(int(iso[unit] or 0) * _NANOS[unit] for unit in ("d", "h", "min", "s"))
        return whole + int((iso["fraction"] or "").ljust(9, "0"))
    amount, label = _split_amount(text, "10 min")
    factor = _TIME_LABELS.get(label) if label else _NANOS["ms"]
    if factor is None or (label == "m" and not _accepts(line, _SHORT_MINUTES)):
        minutes = "min (m)" if _accepts(line, _SHORT_MINUTES) else "min"
        raise ValueProblem(
            f'"{text}" has the unknown time unit "{label}"; '
            f"allowed: d, h, {minutes}, s, ms, µs, ns, and their long names"
        )
    return amount * factor


def _accepts(line: str, first_line: str) -> bool:
    return LINES.index(line) >= LINES.index(first_line)


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
    if amount * factor > _LONG_MAX:
        raise ValueProblem(f'"{text}" is too large for 64 bits')
    return amount * factor


def _split_amount(text: str, example: str) -> tuple[int, str]:
    found = _AMOUNT.fullmatch(text.strip())
    if found is None:
        raise ValueProblem(f'"{text}" does not start with a digit, as "{example}" does')
    amount = int(found["number"]) if len(found["number"]) < 40 else _LONG_MAX + 1
    if amount > _LONG_MAX:
        raise ValueProblem(f'"{text}" has a number above {_LONG_MAX}')
    return amount, found["label"].strip().lower()


def _parse_boolean(text: str) -> bool:
    if text.upper() not in {"TRUE", "FALSE"}:
        raise ValueProblem(f'"{text}" is neither true nor false')
    return text.upper() == "TRUE"


def _parse_integer(text: str, limit: int, type_: str) -> int:
    if not _INTEGER.fullmatch(text) or len(text) > 40 or not -limit - 1 <= int(text) <= limit:
        raise ValueProblem(f'"{text}" is not a whole number from {-limit - 1} to {limit}')
    return int(text)


def _parse_decimal(text: str) -> float:
    stripped = text.strip()
    if not _DECIMAL.fullmatch(stripped) or len(stripped) > 400:
        raise ValueProblem(f'"{text}" is not a decimal number')
    return float(stripped.rstrip("fFdD") if not stripped.endswith("Infinity") else stripped)


def _parse_enum(type_: str, text: str) -> str:
    # ConfigurationUtils.convertToEnum ignores the case of toString(), but no other differences:
    # "exactly-once" does not match EXACTLY_ONCE.
    found = _ENUM.fullmatch(type_)
    names = found["names"].split("|") if found else []
    if text.upper() not in {name.upper() for name in names}:
        raise ValueProblem(f'"{text}" is not one of {", ".join(names)}')
    return text.upper()


def _parse_list(element: str, text: str, line: str) -> tuple[object, ...]:
    parts: Iterable[object] | None = None
    if _accepts(line, _YAML):
        loaded = _load_yaml(text)
        parts = loaded if isinstance(loaded, list) else None
    if parts is None:
        parts = split_escaped(text, ";")
    if element == "Map":
        return tuple(
            tuple(sorted((str(k), str(v)) for k, v in part.items()))
            if isinstance(part, dict)
            else _parse_map(str(part), line)
            for part in parts
        )
    return tuple(parse_value(element, _java_text(part), line) for part in parts)


def _parse_map(text: str, line: str) -> tuple[object, ...]:
    if _accepts(line, _YAML):
        loaded = _load_yaml(text)
        if isinstance(loaded, dict):
            return tuple(sorted((str(key), _java_text(value)) for key, value in loaded.items()))
    pairs = [split_escaped(part, ":") for part in split_escaped(text, ",")]
    for pair in pairs:
        if len(pair) != 2:
            raise ValueProblem(f'"{text}" is not a map such as "key1:value1,key2:value2"')
    return tuple(sorted((pair[0], pair[1]) for pair in pairs))


def _java_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _load_yaml(text: str) -> object:
    if not text.lstrip().startswith(("[", "{")) or len(text) > 20_000:
        return None
    try:
        return load_plain_yaml(text)
    except yaml.YAMLError:
        return None


def split_escaped(text: str, delimiter: str) -> list[str]:
    """The parts of ``text``, split as in Flink's StructuredOptionsSplitter.

    A part may be enclosed in single or double quotes; a quote inside it is escaped by doubling. A
    closing quote at the very end of the text is accepted, although the oldest lines reject it.
    Raises ``ValueProblem`` for a quote inside an unquoted part, and for a quoted part that is not
    closed, or not followed by the delimiter.
    """
    parts: list[str] = []
    position = 0
    while True:
        part, position = _next_part(text, position, delimiter)
        parts.append(part)
        if position >= len(text):
            return parts
        position += 1
        if position == len(text):
            return [*parts, ""]


def _next_part(text: str, start: int, delimiter: str) -> tuple[str, int]:
    quote = text[start : start + 1]
    if quote not in {"'", '"'}:
        end = text.find(delimiter, start)
        end = len(text) if end < 0 else end
        if "'" in text[start:end] or '"' in text[start:end]:
            raise ValueProblem(f'"{text}" has a quote inside an unquoted part')
        return text[start:end], end
    built, cursor = "", start + 1
    while cursor < len(text):
        if text[cursor] != quote:
            built += text[cursor]
            cursor += 1
        elif text[cursor + 1 : cursor + 2] == quote:
            built += quote
            cursor += 2
        elif text[cursor + 1 : cursor + 2] in {"", delimiter}:
            return built, cursor + 1
        else:
            break
    raise ValueProblem(f'"{text}" has a quote that is not closed before "{delimiter}"')


# --- times and sizes, independent of the type in a line ----------------------------------------


def unit_of(number: str, duration: str) -> str | None:
    """The unit in which ``number`` equals ``duration``, such as ``ms`` for 30000 and ``30 s``.

    ``None`` if there is no such unit.
    """
    try:
        amount, nanos = int(number), parse_duration(duration)
    except ValueError:
        return None
    exact = (unit for unit, size in _NANOS.items() if amount > 0 and amount * size == nanos)
    return next(exact, None)


def measure_type(type_: str, default: str | None = None) -> str:
    """The type used to compare values of this option.

    ``Long(ms)`` is compared as a Duration. A String option whose default value has the form
    ``10 s`` or ``10485760b`` is compared as a Duration or MemorySize. Other types are unchanged.
    """
    if _NUMBER_WITH_UNIT.fullmatch(type_):
        return "Duration"
    if type_ == "String" and default:
        if _SIZED_TEXT.fullmatch(default):
            return "MemorySize"
        if _TIMED_TEXT.fullmatch(default):
            return "Duration"
    return type_


def is_quantity(type_: str, default: str | None = None) -> bool:
    return measure_type(type_, default).startswith(_QUANTITIES)


def measure(type_: str, text: str, default: str | None = None) -> Parsed | None:
    """The value in a form that can be compared; ``None`` if the text is invalid for the type."""
    unit = _NUMBER_WITH_UNIT.fullmatch(type_)
    try:
        if unit and _INTEGER.fullmatch(text):
            return int(text) * _NANOS[unit["unit"]]
        return parse_value(measure_type(type_, default), text)
    except ValueError:
        return None


def amount_of(type_: str, text: str, default: str | None = None) -> int | float | None:
    """The result of ``measure`` if it is a number, nanoseconds, or bytes; otherwise ``None``."""
    value = measure(type_, text, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return None if isinstance(value, float) and math.isnan(value) else value


def adapt(type_: str, text: str, default: str | None = None) -> str:
    """The same value in the format of the given type: ``2 min`` for ``Long(ms)`` is ``120000``.

    Text that requires no change or cannot be converted is returned unchanged.
    """
    unit = _NUMBER_WITH_UNIT.fullmatch(type_)
    if unit is None or _INTEGER.fullmatch(text):
        return text
    nanos = amount_of("Duration", text)
    return text if nanos is None else format_amount(nanos, type_, default)


def explain(type_: str, text: str, default: str | None = None) -> str:
    """``text``, followed by the amount with a unit if it is a bare number of a time or size.

    For example, ``300000`` becomes ``300000 (5 min)``. The value 0 is returned unchanged.
    """
    kind = measure_type(type_, default)
    amount = amount_of(type_, text, default)
    if kind not in {"Duration", "MemorySize"} or amount is None or not text.rstrip("b").isdigit():
        return text
    formatted = format_amount(amount, kind)
    return text if formatted == text or amount == 0 else f"{text} ({formatted})"


def format_amount(amount: int | float, type_: str, default: str | None = None) -> str:
    """A computed quantity in the format of the option's type: ``20 min``, ``2 gb``, ``3``, ``0.2``.

    Whole numbers are rounded up; the smallest units are milliseconds and bytes. Sizes of 100 MiB or
    more are rounded up to whole MiB, except for String options. Decimal numbers are rounded to four
    significant digits.
    """
    unit = _NUMBER_WITH_UNIT.fullmatch(type_)
    if unit:
        return str(math.ceil(amount / _NANOS[unit["unit"]]))
    match measure_type(type_, default):
        case "Duration":
            return _format_nanos(math.ceil(amount))
        case "MemorySize":
            # Akka parses its sizes itself, and supports only plain bytes among these formats.
            return _format_bytes(math.ceil(amount), is_plain=type_ == "String")
        case "Float" | "Double":
            return f"{float(f'{amount:.4g}')!r}"
        case _:
            return str(math.ceil(amount))


def _format_nanos(nanos: int) -> str:
    millis = math.ceil(nanos / _NANOS["ms"])
    for unit in ("d", "h", "min", "s"):
        size = _NANOS[unit] // _NANOS["ms"]
        if millis and millis % size == 0:
            return f"{millis // size} {unit}"
    return f"{millis} ms"


def _format_bytes(size: int, *, is_plain: bool) -> str:
    if is_plain:
        return f"{size}b"
    if size >= 100 * 1024**2:
        size = math.ceil(size / 1024**2) * 1024**2  # fractions of a megabyte are not significant
    for power, unit in ((4, "tb"), (3, "gb"), (2, "mb"), (1, "kb")):
        if size and size % 1024**power == 0:
            return f"{size // 1024**power} {unit}"
    return f"{size} b"
