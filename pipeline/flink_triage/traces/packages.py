"""Maps Java package prefixes to origin, part, product, and process, based on ``packages.tsv``."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from importlib.resources import files


def _read() -> list[dict[str, str]]:
    text = (files("flink_triage.traces") / "packages.tsv").read_text(encoding="utf-8")
    lines = [line for line in text.split("\n") if line and not line.startswith("#")]
    return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE, restval=""))


def _by_value(column: str) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for row in ROWS:
        if row[column]:
            found.setdefault(row[column], []).append(row["prefix"])
    return {value: tuple(prefixes) for value, prefixes in found.items()}


ROWS = _read()
# The prefixes for each value of a column, as arguments of ``str.startswith``.
ORIGINS, PRODUCTS, PROCESSES = map(_by_value, ("origin", "product", "process"))
# Maps a prefix to the name of a part.
PARTS: Mapping[str, str] = {row["prefix"]: row["part"] for row in ROWS if row["part"]}
