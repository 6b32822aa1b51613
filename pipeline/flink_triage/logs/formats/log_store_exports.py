"""Reads a file exported from a log store, and returns its records as JSON lines.

The consoles and APIs of CloudWatch, Elastic, Loki, and similar stores return a JSON array (often
pretty-printed), a JSON object that wraps an array, CSV with newlines in quoted fields, or lines
with labels (logcli). Many of them return the newest record first. In this case, the order of the
records is reversed, because the lines of a stack trace may be separate records. JSON lines are read
here only if the newest record is first.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from itertools import chain, pairwise
from typing import Any

from flink_triage.logs.layouts.json_lines import time_of
from flink_triage.logs.text.decode import decode
from flink_triage.logs.text.physical_lines import PhysicalLine

JSON_EXPORT = "json-export"
CSV_EXPORT = "csv-export"
LOGCLI_EXPORT = "logcli-export"
# An export is read into memory as a whole. Log stores return a few thousand records per request.
MAX_EXPORT_BYTES = 256 * 1024 * 1024

EXPORTS = frozenset((JSON_EXPORT, CSV_EXPORT, LOGCLI_EXPORT))
# Names that log stores use for the record array. For any other name, the first element must look
# like a record.
_WRAPPERS = frozenset(
    {
        "events",
        "logEvents",
        "hits",
        "data",
        "result",
        "results",
        "value",
        "values",
        "records",
        "entries",
        "logs",
        "items",
    }
)
_NAMED = re.compile(r'"(?P<name>[^"\\\n]{1,64})"\s*:\s*(?=[\[{])')
_OPENS_RECORDS = re.compile(r"\[\s*(?=\{)")
_MAX_DEPTH = 4
_SKIPPED = re.compile(r"[\s,\]}\ufeff]*")
_OPENS_ARRAY = re.compile(r'\ufeff?\s*\[\s*(?:\{\s*"|\[\s*["{])')
_OPENS_OBJECT = re.compile(r'\ufeff?\s*\{\s*"')
_INSIGHTS_ROW = re.compile(r'\[\s*\{\s*"field"\s*:')
_CSV_MESSAGES = frozenset(
    ("@message", "message", "line", "log", "_raw", "msg", "body", "content", "event.original",
     "textpayload", "jsonpayload.message", "_source.message")
)  # fmt: skip
_CSV_TIMES = frozenset(
    ("@timestamp", "timestamp", "time", "date", "_time", "ts", "tsns", "datetime",
     "_source.@timestamp", "@ingestiontime")
)  # fmt: skip
# Output of Loki's logcli: time, labels, and line; newest first by default.
_LOGCLI = re.compile(
    r'(?m)^(\d{4}-\d\d-\d\dT\S{8,30}) (\{(?:[\w.]{1,200}="[^"\n]{0,2000}"(?:, )?){0,100}\}) +(.*)'
)
_DELIMITERS = ",;\t"
# The number of JSON lines from whose times the order is determined.
_ORDERED_LINES = 100
_MAX_HEAD_CHARS = 16 * 1024
# A field may contain a whole stack trace. The csv module's default limit, which applies to the
# whole process, is 128 KiB.
csv.field_size_limit(MAX_EXPORT_BYTES)


@dataclass(frozen=True, slots=True)
class _Record:
    """One record: its characters [start, end) in the document, and its content."""

    start: int
    end: int
    fields: Mapping[str, Any]


def export_kind(text: str) -> str | None:
    """The export kind, determined from the head of a file; ``None`` for any other text."""
    first, _, rest = text.lstrip("\ufeff \t\r\n").partition("\n")
    if _LOGCLI.match(first):
        return LOGCLI_EXPORT
    if _OPENS_ARRAY.match(text):
        return JSON_EXPORT
    if _OPENS_OBJECT.match(text):
        is_document = _is_json_document(first, rest) or _is_reversed(text)
        return JSON_EXPORT if is_document else None
    return CSV_EXPORT if _csv_columns(first) is not None else None


def _is_json_document(first: str, rest: str) -> bool:
    """Whether the text is one JSON document rather than JSON lines.

    The first line of a JSON document is not a complete object, or it is an object that wraps
    records.
    """
    try:
        fields = json.loads(first)
    except (ValueError, RecursionError):
        # In JSON lines, a corrupt first line is followed by complete objects.
        following = rest.partition("\n")[0].lstrip()
        is_open = first.rstrip().endswith(("{", "[", ",")) and not following.startswith("{")
        names = (match["name"] for match in _NAMED.finditer(first, 0, 2000))
        return is_open or (not rest and not _WRAPPERS.isdisjoint(names))
    return isinstance(fields, dict) and _wraps(fields)


def _is_reversed(text: str) -> bool:
    """Whether the text consists of JSON lines with the newest record first."""
    records: list[_Record] = []
    for line in text.split("\n")[:_ORDERED_LINES]:
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError):
            break
        if not isinstance(fields, dict):
            return False
        records.append(_Record(0, 0, fields))
    return _is_newest_first(records, margin=3)


def read_export(data: bytes, kind: str, encoding: str) -> list[PhysicalLine]:
    """One JSON line per record; the lines together cover every byte.

    If the newest record is first, the order is reversed. A truncated document is read as far as
    possible. Without records, the result is one line with the start of the text.
    """
    text, errors = _decoded(data, encoding)
    records = list(_READERS[kind](text))
    lines = list(_tiles(text, records, len(data), encoding))
    if lines:
        lines[0] = replace(lines[0], decode_errors=errors)
    return lines[::-1] if _is_newest_first(records) else lines


def _decoded(data: bytes, encoding: str) -> tuple[str, int]:
    if encoding == "utf-8":
        _, errors = decode(data)
        # Each invalid byte becomes one character that can be encoded again, so that offsets match
        # the file.
        return data.decode("utf-8", "surrogateescape"), errors
    text = data.decode(encoding, "replace")
    return text, text.count("\ufffd")


def _tiles(
    text: str, records: Sequence[_Record], size: int, encoding: str
) -> Iterator[PhysicalLine]:
    """One line per record.

    A line includes the text between the previous record and its own; the last line also includes
    the rest of the file.
    """
    offset, newlines = 0, 0
    done = 0
    for index, record in enumerate(records):
        is_last = index == len(records) - 1
        tile = text[done:] if is_last else text[done : record.end]
        length = size - offset if is_last else min(_width(tile, encoding), size - offset)
        number = newlines + text.count("\n", done, record.start) + 1
        content = json.dumps(record.fields, ensure_ascii=False, default=str)
        yield PhysicalLine(offset, length, tile.count("\n"), content, number=number)
        offset += length
        newlines += tile.count("\n")
        done = record.end
    if not records and size:
        yield PhysicalLine(0, size, text.count("\n"), text[:4096], is_cut=len(text) > 4096)


def _width(text: str, encoding: str) -> int:
    if text.isascii() and encoding == "utf-8":
        return len(text)
    return len(text.encode(encoding, "surrogateescape" if encoding == "utf-8" else "replace"))


def _is_newest_first(records: Sequence[_Record], margin: int = 1) -> bool:
    times = [time_of(record.fields, UTC) for record in records]
    known = [moment for moment in times if moment is not None]
    falls = sum(1 for before, after in pairwise(known) if after < before)
    rises = sum(1 for before, after in pairwise(known) if after > before)
    return falls > rises * margin


# --- JSON --------------------------------------------------------------------------------------


def _json_records(text: str) -> Iterator[_Record]:
    decoder = json.JSONDecoder(strict=False)
    position = 0
    labels: Mapping[str, Any] = {}
    while position < len(text):
        skipped = _SKIPPED.match(text, position)
        position = skipped.end() if skipped is not None else position
        inside = _inside_of_array(text, position)
        if inside is not None:
            position = inside
            continue
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            value, end = None, position
        if isinstance(value, dict) and isinstance(value.get("stream"), dict):
            labels = value["stream"]
        fields = _fields_of(value, labels)
        if fields is not None:
            yield _Record(position, end, fields)
            position = end
            continue
        wrapped = _next_array(text, position, decoder)
        if wrapped is None:
            return
        position = wrapped


def _next_array(text: str, position: int, decoder: json.JSONDecoder) -> int | None:
    """The position of the next record array, identified by its name or its first element."""
    for match in _NAMED.finditer(text, position):
        if match["name"] in _WRAPPERS:
            return match.end()
        opened = _OPENS_RECORDS.match(text, match.end())
        if opened is None:
            continue
        try:
            first, _ = decoder.raw_decode(text, opened.end())
        except (ValueError, RecursionError):
            continue
        if _has_message(first):
            return match.end()
    return None


def _inside_of_array(text: str, position: int) -> int | None:
    """The position after the opening bracket of a record array, or ``None`` for other text."""
    if text[position : position + 1] != "[" or _INSIGHTS_ROW.match(text, position):
        return None
    following = _SKIPPED.match(text, position + 1)
    inside = following.end() if following is not None else position + 1
    return position + 1 if text[inside : inside + 1] in ("{", "[", "") else None


def _fields_of(value: Any, labels: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The record in a value; ``None`` if the value is not a record or contains several records."""
    if isinstance(value, dict):
        if _wraps(value):
            return None
        source = value.get("_source")
        return source if isinstance(source, dict) else value
    if not isinstance(value, list) or not value:
        return None
    if all(isinstance(cell, dict) and "field" in cell for cell in value):
        return {str(cell["field"]): cell.get("value") for cell in value}
    if len(value) >= 2 and isinstance(value[0], str) and isinstance(value[1], str):
        return {"timestamp": value[0], "line": value[1], "labels": dict(labels)}
    return None


def _has_message(value: Any) -> bool:
    return isinstance(value, dict) and any(str(name).lower() in _CSV_MESSAGES for name in value)


def _holds_records(value: Any, depth: int = 0) -> bool:
    """Whether an object that is not itself a record contains an array of records."""
    if isinstance(value, list):
        return any(map(_has_message, value[:1]))
    if not isinstance(value, dict) or depth > _MAX_DEPTH or _has_message(value):
        return False
    return any(_holds_records(inner, depth + 1) for inner in value.values())


def _wraps(fields: Mapping[str, Any]) -> bool:
    for name, value in fields.items():
        if name not in _WRAPPERS or not isinstance(value, (list, dict)):
            continue
        inner = value if isinstance(value, list) else list(value.values())
        if any(isinstance(one, (list, dict)) for one in inner):
            return True
    return _holds_records(fields)


# --- CSV ---------------------------------------------------------------------------------------


def _csv_columns(first: str) -> tuple[str, list[str]] | None:
    """Delimiter and column names, if the line is the CSV header of a table of log events."""
    line = first.rstrip("\r")
    if len(line) > _MAX_HEAD_CHARS:
        return None
    for delimiter in _DELIMITERS:
        if delimiter not in line:
            continue
        names = _cells(line, delimiter)
        known = {name.strip().lower() for name in names}
        if len(names) < 2 or len(names) > 500 or not known & _CSV_MESSAGES:
            continue
        if known & _CSV_TIMES:
            return delimiter, [name.strip() for name in names]
    return None


def _csv_records(text: str) -> Iterator[_Record]:
    rows = _csv_rows(text)
    start, end = next(rows, (0, 0))
    columns = _csv_columns(text[start:end].strip("\ufeff\r\n"))
    if columns is None:
        return
    delimiter, names = columns
    for start, end in rows:
        cells = _cells(text[start:end].rstrip("\r\n"), delimiter)
        if not cells:
            continue
        fields: dict[str, Any] = dict(zip(names, cells, strict=False))
        for name in names:
            lower = name.lower()
            if name in fields and lower not in fields:
                fields[lower] = fields[name]
        yield _Record(start, end, {key: value for key, value in fields.items() if value})


def _cells(row: str, delimiter: str) -> list[str]:
    """The cells of a row; a row that is not valid CSV is one cell."""
    try:
        return next(csv.reader([row], delimiter=delimiter), [])
    except csv.Error:
        # For example, the row has a lone carriage return outside of quotes.
        return [row]


def _csv_rows(text: str) -> Iterator[tuple[int, int]]:
    """The rows, as character ranges; a newline inside quotes does not end a row."""
    start, quotes = 0, 0
    while start < len(text):
        end, position = start, start
        quotes = 0
        while True:
            newline = text.find("\n", position)
            end = len(text) if newline < 0 else newline + 1
            quotes += text.count('"', position, end)
            position = end
            if quotes % 2 == 0 or newline < 0:
                break
        yield start, end
        start = end


# --- logcli ------------------------------------------------------------------------------------


def _logcli_records(text: str) -> Iterator[_Record]:
    """One record per line with a time and labels, including the lines up to the next such line.

    Empty lines are dropped, and so is text before the first line with a time and labels.
    """
    for head, following in pairwise(chain(_LOGCLI.finditer(text), [None])):
        assert head is not None
        whole = text[head.start() : following.start() if following else None].rstrip("\n")
        lines = whole[head.start(3) - head.start() :].split("\n")
        content = "\n".join(line.rstrip("\r") for line in lines if line)
        fields = {"timestamp": head[1], "labels": head[2], "line": content}
        yield _Record(head.start(), head.start() + len(whole), fields)


_READERS: Mapping[str, Callable[[str], Iterator[_Record]]] = {
    JSON_EXPORT: _json_records,
    CSV_EXPORT: _csv_records,
    LOGCLI_EXPORT: _logcli_records,
}
