"""Checks that the Flink options in a pack exist, and that their values are valid.

The values of Kafka client properties are checked as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Protocol

from flink_triage.remediation.config_conditions import is_pattern
from flink_triage.remediation.option_table import OptionTable, options_directory
from flink_triage.remediation.values import is_placeholder
from flink_triage.remediation.versions import lines_in
from flink_triage.signatures.signature import ComputedValue, ConfigSpec, Signature

_KAFKA_PREFIX = re.compile(r"(?:properties|kafka|producer|consumer)\.(?=[a-z])")
_INT_LIMITS = {"INT": 2**31 - 1, "LONG": 2**63 - 1, "SHORT": 2**15 - 1}
_PAST = {"raise": "raised", "lower": "lowered"}

_EntryProblem = tuple[str, str, str]  # field, reason, Flink line or "" for all


class Pack(Protocol):
    """The part of a ``SignaturePack`` that is checked here."""

    @property
    def signatures(self) -> Mapping[str, Signature]: ...


def check_pack(pack: Pack, table: OptionTable | None = None) -> tuple[str, ...]:
    """The problems, as ``path:line: field: reason``, of options, values, and conditions of a pack.

    An entry for Flink itself (scope ``cluster`` or ``job``) is checked against each line that is in
    its ``when.flink`` range and has the option. It is also a problem if there is no such line, or
    if a line in an explicit range does not have the option. A line that is only partly in the range
    (``>=1.19.2``) is included.
    """
    options = table or OptionTable.load()
    problems: list[str] = []
    for signature in pack.signatures.values():
        for index, entry in enumerate(signature.remediation.config):
            place = f"remediation.config[{index}]"
            for part, reason in _over_lines(_entry_problems(entry, options)):
                field = f"{place}.{part}"
                line = signature.lines.get(field) or signature.lines.get(place) or 1
                problems.append(f"{signature.path or signature.id}:{line}: {field}: {reason}")
    return tuple(problems)


def _over_lines(problems: Iterable[_EntryProblem]) -> Iterator[tuple[str, str]]:
    """The field and reason of each problem, combined for all Flink lines that have the problem."""
    lines: dict[tuple[str, str], list[str]] = {}
    for part, reason, line in problems:
        lines.setdefault((part, reason), []).append(line)
    for (part, reason), found in lines.items():
        known = [line for line in found if line]
        span = f"{known[0]} to {known[-1]}" if len(known) > 1 else "".join(known)
        yield part, f"{reason} in Flink {span}" if span else reason


def _entry_problems(entry: ConfigSpec, table: OptionTable) -> Iterator[_EntryProblem]:
    when = entry.when
    try:
        lines = lines_in(when.flink if when else None)
    except ValueError as problem:
        yield "when.flink", str(problem), ""
        return
    if not lines:
        yield "when.flink", f'no known Flink line matches "{when.flink if when else ""}"', ""
        return
    if when is not None:
        yield from _condition_problems(when.options, lines, table)
    if entry.scope == "connector":
        yield from _kafka_problems(entry)
    if entry.scope not in {"cluster", "job"}:
        return
    known = [line for line in lines if table.key_for(entry.key, line) is not None]
    if not known:
        yield (
            "key",
            f'no Flink line from {lines[0]} to {lines[-1]} has the option "{entry.key}"',
            "",
        )
        return
    if when is not None and when.flink and len(known) < len(lines):
        gone = ", ".join(line for line in lines if line not in known)
        yield "key", f'"{entry.key}" is offered for Flink {gone}, which does not have it', ""
    for line in known:
        yield from _value_problems(entry, line, table)


def _condition_problems(
    wanted: Mapping[str, str], lines: tuple[str, ...], table: OptionTable
) -> Iterator[_EntryProblem]:
    for key, value in wanted.items():
        known = [line for line in lines if table.key_for(key, line) is not None]
        if not known:
            yield "when.option", f'no Flink line from {lines[0]} to {lines[-1]} has "{key}"', ""
        for line in known:
            if value in {"", "(none)"} or is_pattern(value):
                continue
            if table.measure(key, line, value) is None:
                yield "when.option", f'"{value}" is not a valid value of {key}', line


def _value_problems(entry: ConfigSpec, line: str, table: OptionTable) -> Iterator[_EntryProblem]:
    if entry.action == "remove":
        return
    type_ = table.type_of(entry.key, line) or "String"
    is_quantity = _is_quantity(entry, line, table)
    if isinstance(entry.value, ComputedValue):
        if not is_quantity:
            yield "value", f"{type_} is not a quantity that a factor could change", line
        for part, text in (("at-least", entry.value.at_least), ("at-most", entry.value.at_most)):
            if text is not None:
                yield from _text_problems(entry.key, line, text, f"value.{part}", table)
        return
    if entry.action in {"raise", "lower"} and not is_quantity:
        yield "action", f"{type_} cannot be {_PAST[entry.action]}, only set", line
    if not is_placeholder(entry.value):
        yield from _text_problems(entry.key, line, entry.value, "value", table)


def _is_quantity(entry: ConfigSpec, line: str, table: OptionTable) -> bool:
    """Whether the option is a quantity, according to its type, or else to its value.

    The type is unknown for keys of open families (see ``OPEN_PREFIXES``).
    """
    if table.is_quantity(entry.key, line):
        return True
    value = entry.value
    texts = [value] if isinstance(value, str) else [value.at_least, value.at_most]
    given = [text for text in texts if text is not None]
    return bool(given) and all(table.amount(entry.key, line, text) is not None for text in given)


def _text_problems(
    key: str, line: str, text: str, part: str, table: OptionTable
) -> Iterator[_EntryProblem]:
    problem = table.problem(key, line, table.adapt(key, line, text))
    if problem is not None:
        yield part, problem, line


# --- Kafka clients -----------------------------------------------------------------------------


def _kafka_problems(entry: ConfigSpec) -> Iterator[_EntryProblem]:
    prefix = _KAFKA_PREFIX.match(entry.key)
    key = entry.key[prefix.end() :] if prefix else entry.key
    types = kafka_client_options().get(key)
    if types is None or entry.action == "remove":
        return
    if isinstance(entry.value, ComputedValue):
        texts = [text for text in (entry.value.at_least, entry.value.at_most) if text is not None]
    else:
        texts = [] if is_placeholder(entry.value) else [entry.value]
    for text in texts:
        if not any(_kafka_accepts(type_, text) for type_ in types):
            wanted = " or ".join(types)
            yield (
                "value",
                f'"{text}" is not a valid {wanted}, the type of {key} in Kafka clients',
                "",
            )


def _kafka_accepts(type_: str, text: str) -> bool:
    stripped = text.strip()
    if type_ in _INT_LIMITS:
        is_number = re.fullmatch(r"[+-]?\d{1,19}", stripped) is not None
        return is_number and abs(int(stripped)) <= _INT_LIMITS[type_]
    if type_ == "DOUBLE":
        return re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", stripped) is not None
    if type_ == "BOOLEAN":
        return stripped.lower() in {"true", "false"}
    return True


def kafka_client_options() -> Mapping[str, tuple[str, ...]]:
    """The types by option name, for producer, consumer, and admin clients 2.4 to 4.2."""
    return _load_kafka(options_directory() / "kafka-client.tsv")


@cache
def _load_kafka(path: Path) -> Mapping[str, tuple[str, ...]]:
    types: dict[str, tuple[str, ...]] = {}
    for text in path.read_text(encoding="utf-8").split("\n")[1:]:
        if text:
            key, type_, *_ = text.split("\t")
            types[key] = (*types.get(key, ()), type_)
    return types
