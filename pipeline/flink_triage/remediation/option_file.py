"""Reads the rows of ``options.tsv`` by key, and the renames that they contain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from flink_triage.remediation.versions import LINES

# The first and last index into LINES, followed by status, type, default, other names, and scope.
Row = tuple[int, int, tuple[str, ...]]


def read_rows(path: Path) -> tuple[Mapping[str, tuple[Row, ...]], tuple[tuple[str, str], ...]]:
    """The rows by key, and (old name, new name) pairs in Flink's lookup order."""
    rows: dict[str, list[Row]] = {}
    renames: dict[tuple[str, str], None] = {}
    for text in path.read_text(encoding="utf-8").split("\n")[1:]:
        if not text:
            continue
        key, lines, *fields = text.split("\t")
        first, _, last = lines.partition("-")
        row = (LINES.index(first), LINES.index(last or first), tuple(fields))
        rows.setdefault(key, []).append(row)
        renames.update(dict.fromkeys(_renames(key, fields[0], fields[3])))
    return {key: tuple(found) for key, found in rows.items()}, tuple(renames)


def _renames(key: str, status: str, others: str) -> Iterator[tuple[str, str]]:
    """The (old, new) pairs of a row: its aliases and deprecated keys, and some fallback keys.

    A fallback key is a rename only if the names differ only in punctuation. For example,
    ``web.refresh-interval`` is the fallback key of another option in newer lines, but was never
    the name of that option.
    """
    kind, _, names = status.partition(":")
    for new in names.split("|") if names else ():
        if kind == "alias" or _spelling(key) == _spelling(new):
            yield key, new
    for old in others.split(";"):
        if old and (not old.startswith("~") or _spelling(old[1:]) == _spelling(key)):
            yield old.lstrip("~"), key


def _spelling(key: str) -> str:
    return key.replace("-", "").replace(".", "").replace("_", "")
