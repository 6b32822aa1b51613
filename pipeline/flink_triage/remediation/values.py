"""Parses option values as Flink does, and formats them as a user would write them.

The grammars are those of ConfigurationUtils.convertValue and StructuredOptionsSplitter. Types have
the format of the option table: ``Duration``, ``Long(ms)`` (a number that is a Duration in later
lines), ``Enum:Name(A|B)``, ``List<String>``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

import yaml

from flink_triage.plain_yaml import load_plain_yaml
from flink_triage.remediation.units import (
    LONG_MAX,
    NANOS,
    ValueProblem,
    format_duration,
    format_size,
    parse_duration,
    parse_size,
)
from flink_triage.remediation.versions import NEWEST, is_line_since

Parsed = bool | int | float | str | tuple[object, ...]

_INT_MAX = 2**31 - 1
# config.yaml (FLIP-366)
_FIRST_WITH_YAML = "1.19"

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
        return _parse_integer(text, _INT_MAX if plain == "Integer" else LONG_MAX, plain)
    if plain in {"Float", "Double"}:
        return _parse_decimal(text)
    if plain.startswith("Enum:"):
        return _parse_enum(plain, text)
    if plain.startswith("List<"):
        return _parse_list(plain[len("List<") : -1], text, line)
    if plain == "Map":
        return _parse_map(text, line)
    return text


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
    if is_line_since(line, _FIRST_WITH_YAML):
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
    if is_line_since(line, _FIRST_WITH_YAML):
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
            return int(text) * NANOS[unit["unit"]]
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
        return str(math.ceil(amount / NANOS[unit["unit"]]))
    match measure_type(type_, default):
        case "Duration":
            return format_duration(math.ceil(amount))
        case "MemorySize":
            # Akka parses its sizes itself, and supports only plain bytes among these formats.
            size = math.ceil(amount)
            return f"{size}b" if type_ == "String" else format_size(size)
        case "Float" | "Double":
            return f"{float(f'{amount:.4g}')!r}"
        case _:
            return str(math.ceil(amount))
