"""Expands a structured error into alternatives for the forms in which it is printed.

Examples of structured errors are a service error with an HTTP status and an error code, a Kafka
error, and an SQLSTATE. Libraries print the same error in different forms. A signature specifies
only the error; ``patterns/error-forms/forms.yaml`` defines its forms.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

from flink_triage.package_data import builtin_pack_directory
from flink_triage.yaml_documents import MappingNode, Node, Scalar, read_document

FORMS_DIRECTORY = "error-forms"
FAMILY = "of"

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_OPTIONAL = re.compile(r"\[\[(.*?)\]\]")
# For each field, a regex for valid values in a signature, and a regex that matches any value in a
# log.
_FIELD_REGEXES = {
    "status": (re.compile(r"[1-5](?:\d\d|xx)"), r"(?P<status>\d{3})"),
    "code": (re.compile(r"[A-Za-z0-9][\w.-]{1,80}"), r"(?P<code>[^;:,()\n<>]{1,80})"),
    "state": (re.compile(r"[0-9A-Z]{2}(?:[0-9A-Z]{3}|xxx)"), r"(?P<state>[0-9A-Z]{5})"),
    "service": (re.compile(r"[a-z][\w-]{1,40}"), r"[^;:,()\n]{1,60}"),
}
_WILDCARDS = {"status": ("x", r"\d"), "state": ("x", "[0-9A-Z]")}


@dataclass(frozen=True, slots=True)
class Form:
    """One form in which a library prints an error.

    ``states`` maps a field to the only values that the form represents. ``without`` is a column of
    the family's table; the form does not apply to error codes that have a value in it.
    """

    literals: tuple[str, ...]
    example: str
    regex: str | None = None
    throwables: tuple[str, ...] = ()
    states: Mapping[str, Sequence[str]] = field(default_factory=dict)
    without: str | None = None

    @property
    def printed(self) -> set[str]:
        """The fields and table columns whose values the form prints."""
        texts = (*self.literals, self.regex or "", *self.throwables)
        return {name for text in texts for name in _PLACEHOLDER.findall(text)}

    def says(self, asked: Mapping[str, Sequence[str]], columns: set[str]) -> bool:
        """Whether the form prints each of the given fields, or implies one of its values."""
        stated = self.printed | ({"code"} if self.printed & columns else set())
        return all(
            _agree(name, values, self.states[name]) if name in self.states else name in stated
            for name, values in asked.items()
        )


@dataclass(frozen=True, slots=True)
class Family:
    """A family of errors that several libraries share: fields, known values, and forms.

    ``names`` maps a field and a value to the names that are printed for the value. ``table`` maps a
    field and a value to further texts by column, such as the exception class of an error code.
    """

    fields: tuple[str, ...]
    forms: tuple[Form, ...]
    names: Mapping[str, Mapping[str, Sequence[str]]]
    table: Mapping[str, Mapping[str, Mapping[str, str | Sequence[str]]]]

    @property
    def columns(self) -> set[str]:
        return {key for of in self.table.values() for row in of.values() for key in row}

    def known(self, name: str) -> frozenset[str]:
        """The allowed values in a signature; empty if any well-formed value is allowed."""
        return frozenset(self.table.get(name, ())) | frozenset(self.names.get(name, ()))


def families() -> Mapping[str, Family]:
    """All families, by name; the file is read again only if it has changed.

    Raises ``OSError`` if the file is missing, and ``ValueError`` if it is not valid YAML.
    """
    path = builtin_pack_directory() / FORMS_DIRECTORY / "forms.yaml"
    return _families(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=1)
def _families(path: Path, modified_at: int) -> Mapping[str, Family]:
    del modified_at  # only part of the cache key
    return {name: _family(content) for name, content in _read(path).items()}


def problems_of_error(asked: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The problems in the ``error`` of an alternative, as (field, reason) pairs."""
    family = families().get(asked[FAMILY])
    if family is None:
        yield FAMILY, f'"{asked[FAMILY]}" is not one of {", ".join(families())}'
        return
    values = _values(asked)
    if not values:
        yield "", f"has no field; expected one of {', '.join(family.fields)}"
    for name, wanted in values.items():
        if name not in family.fields:
            allowed = ", ".join(family.fields)
            yield name, f"is not a field of {asked[FAMILY]}; allowed: {allowed}"
            continue
        known = family.known(name)
        for value in wanted:
            if not _FIELD_REGEXES[name][0].fullmatch(value):
                yield name, f'"{value}" is not a {name}; allowed: {_FIELD_REGEXES[name][0].pattern}'
            elif known and value not in known:
                yield name, f'"{value}" is not known in {FORMS_DIRECTORY}/forms.yaml'


def words_of(asked: Mapping[str, Any]) -> str:
    """A description of the error, such as ``aws: service s3, status 5xx or 429``."""
    parts = (f"{name} {' or '.join(values)}" for name, values in _values(asked).items())
    return f"{asked[FAMILY]}: {', '.join(parts)}"


def expand(asked: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """The conditions of the alternatives, for all forms that print or imply all given fields."""
    family, values = families()[asked[FAMILY]], _values(asked)
    return tuple(
        alternative
        for form in family.forms
        if form.says(values, family.columns)
        for alternative in _alternatives(form, family, values)
    )


def _alternatives(
    form: Form, family: Family, values: Mapping[str, Sequence[str]]
) -> Iterator[dict[str, Any]]:
    fixed = (*form.literals, *form.throwables)
    if not any(_PLACEHOLDER.search(text) for text in fixed):
        yield _conditions(form, family, values, {})
        return
    # The value is part of a literal or class name, so each value requires its own alternative.
    for value in values.get("code", ()):
        row = family.table.get("code", {}).get(value, {})
        names = set(_PLACEHOLDER.findall(" ".join(fixed)))
        if form.without in row or not names <= {"code", *row}:
            continue
        columns = [_many(row[name]) for name in sorted(names - {"code"})]
        for words in product(*columns):
            filled = {"code": value, **dict(zip(sorted(names - {"code"}), words, strict=True))}
            yield _conditions(form, family, {**values, "code": (value,)}, filled)


def _conditions(
    form: Form, family: Family, values: Mapping[str, Sequence[str]], words: Mapping[str, str]
) -> dict[str, Any]:
    def fill(text: str) -> str:
        return _PLACEHOLDER.sub(lambda found: words[found[1]], text)

    columns = words.keys() - values.keys()
    conditions: dict[str, Any] = {"literal": [fill(literal) for literal in form.literals]}
    if form.throwables:
        conditions["throwable"] = [fill(name) for name in form.throwables]
    if form.regex is not None:
        template = _PLACEHOLDER.sub(
            lambda found: _escaped(words[found[1]]) if found[1] in columns else found[0], form.regex
        )
        conditions["regex"] = _regex(template, family, values)
    return conditions


def _regex(template: str, family: Family, values: Mapping[str, Sequence[str]]) -> str:
    def optional(found: re.Match[str]) -> str:
        is_asked = not values.keys().isdisjoint(_PLACEHOLDER.findall(found[1]))
        return found[1] if is_asked else f"(?:{found[1]})?"

    def field_of(found: re.Match[str]) -> str:
        name = found[1]
        wanted = values.get(name)
        if wanted is None:
            return _FIELD_REGEXES[name][1]
        printed = [
            text for value in wanted for text in family.names.get(name, {}).get(value, [value])
        ]
        any_of = "|".join(_pattern_of(name, text) for text in printed)
        return f"(?:{any_of})" if name == "service" else f"(?P<{name}>{any_of})"

    return _PLACEHOLDER.sub(field_of, _OPTIONAL.sub(optional, template))


def _pattern_of(name: str, value: str) -> str:
    mark, stands_for = _WILDCARDS.get(name, ("", ""))
    return value.replace(mark, stands_for) if mark else _escaped(value)


def _escaped(text: str) -> str:
    return re.escape(text).replace("\\ ", " ")


def _agree(name: str, asked: Sequence[str], stated: Sequence[str]) -> bool:
    patterns = [re.compile(_pattern_of(name, value)) for value in asked]
    return any(pattern.fullmatch(value) for pattern in patterns for value in stated)


def _values(asked: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    return {name: _many(value) for name, value in asked.items() if name != FAMILY}


def _many(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


# --- reading -----------------------------------------------------------------------------------


def _read(path: Path) -> dict[str, Any]:
    node, problems = read_document(path, str(path))
    if node is None or problems:
        raise ValueError("; ".join(map(str, problems)))
    content: dict[str, Any] = _plain(node)
    return content


def _plain(node: Node) -> Any:
    if isinstance(node, Scalar):
        return node.text
    if isinstance(node, MappingNode):
        return {entry.key: _plain(entry.value) for entry in node.entries}
    return [_plain(item) for item in node.items]


def _family(content: Mapping[str, Any]) -> Family:
    return Family(
        fields=tuple(content["fields"]),
        forms=tuple(_form(form) for form in content["forms"]),
        names=content.get("values", {}),
        table=content.get("table", {}),
    )


def _form(content: Mapping[str, Any]) -> Form:
    return Form(
        literals=_many(content["literal"]),
        example=content["example"],
        regex=content.get("regex"),
        throwables=_many(content.get("throwable", ())),
        states=content.get("states", {}),
        without=content.get("without"),
    )
