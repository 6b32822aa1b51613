"""Masks values that an earlier line identifies as secrets: in tables and in YAML blocks.

A table is a header line with at least two column names, at least one of which denotes a secret,
followed by lines with the same number of fields (CSV, tab-separated values, or the ``|`` tables of
SQL clients). A YAML block is a key followed by ``|`` or ``>``, and the blank or more indented
lines below it. Both may be on one line, with ``\\n`` in place of newlines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from flink_triage.logs.text.secret_forms import BLOCK, COLUMN

_DELIMITERS = ("|", "\t", "\\t", ";", ",")
_MAX_COLUMNS = 64
_NAME = re.compile(r"\s*[\"']?[\w .-]{0,64}[\"']?\s*\Z")
# A message may precede the first column name.
_MESSAGE = re.compile(r"\A.{0,1024}[:.,;] +")
# A rule between the rows of a table: +----+----+
_RULE = re.compile(r"[ \t|+=:-]{3,}\Z")
_VALUE = re.compile(r"(?P<head>\s*[\"']?)(?P<value>[^\s\"'](?:.*[^\s\"'])?)(?P<tail>[\"']?\s*)\Z")

_ENDS_BLOCK_KEY = re.compile(r"[|>][-+\d]{0,2}\s*\Z")
_MAX_BLOCK_LINES = 64

# Maps a value, and the name of its key or column, to the replacement.
Mask = Callable[[str, str], str]


@dataclass(frozen=True, slots=True)
class _Header:
    """The separator and number of fields, and the names of the secret fields by their index."""

    delimiter: str
    width: int
    secrets: dict[int, str]


def secret_blocks(lines: Sequence[str], mask: Mask) -> Iterator[str]:
    """Yield each line; the lines of a secret block are replaced by the same mark."""
    word, mark, indent, left = "", "", 0, 0
    for line in lines:
        if "\\n" in line:
            yield "\\n".join(secret_blocks(line.split("\\n"), mask))
            continue
        value = line.lstrip(" \t")
        is_blank = not value.rstrip()
        is_indented = len(line) - len(value) > indent and not value.startswith(("at ", "..."))
        if left and (is_blank or is_indented):
            left -= 1
            if not is_blank and not value.startswith("[REDACTED:"):
                mark = mark or mask(value, word)
                line = f"{line[: len(line) - len(value)]}{mark}"
        else:
            block = BLOCK.match(line) if _ENDS_BLOCK_KEY.search(line[-8:]) else None
            left = _MAX_BLOCK_LINES if block is not None else 0
            if block is not None:
                word, mark, indent = block["word"], "", len(block["indent"])
        yield line


def secret_columns(lines: Sequence[str], mask: Mask) -> Iterator[str]:
    """Yield each line, with the values in secret columns replaced by ``mask``."""
    headers: list[_Header] = []
    for line in lines:
        if "\\n" in line:
            # The line may contain a whole table.
            yield "\\n".join(secret_columns(line.split("\\n"), mask))
            headers = []
            continue
        row = _row(line, headers, mask)
        if row is not None:
            yield row
            continue
        if not (headers and _RULE.match(line)):
            headers = _headers(line)
        yield line


def _headers(line: str) -> list[_Header]:
    """The tables that may start with ``line``, with and without the message before the names."""
    found = []
    for text in dict.fromkeys((line, _MESSAGE.sub("", line, count=1))):
        delimiter = next((mark for mark in _DELIMITERS if mark in text), None)
        if delimiter is None:
            continue
        names = text.split(delimiter)
        names[0] = names[0].rpartition(": ")[2]
        if len(names) > _MAX_COLUMNS or not all(_NAME.match(name) for name in names):
            continue
        secrets = {
            number: word for number, name in enumerate(names) if (word := _secret_name(name))
        }
        if secrets:
            found.append(_Header(delimiter, len(names), secrets))
    return found


def _secret_name(field: str) -> str | None:
    match = COLUMN.search(field.strip(" \t\r\"'"))
    return match["word"] if match is not None else None


def _row(line: str, headers: Sequence[_Header], mask: Mask) -> str | None:
    """The row with its secrets masked; ``None`` if the line is not a row of one of the tables."""
    for header in headers:
        fields = line.split(header.delimiter)
        if len(fields) != header.width or any(map(_secret_name, fields)):
            continue
        for number, name in header.secrets.items():
            fields[number] = _masked(fields[number], name, mask)
        return header.delimiter.join(fields)
    return None


def _masked(field: str, name: str, mask: Mask) -> str:
    match = _VALUE.match(field)
    if match is None or "[REDACTED:" in field or set(match["value"]) <= {"*", "-"}:
        return field
    return f"{match['head']}{mask(match['value'], name)}{match['tail']}"
