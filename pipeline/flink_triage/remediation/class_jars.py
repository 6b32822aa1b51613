"""Names the JAR that contains a missing class, from ``patterns/class-jars/jars.tsv``."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from flink_triage.package_data import builtin_pack_directory
from flink_triage.remediation.placeholders import fill


def jar_step(class_name: str) -> str | None:
    """A step that names the JAR of a class, and how to add it; ``None`` if the JAR is unknown.

    ``class_name`` is a name as in an exception, such as ``a.b.C``, ``a/b/C``, or ``a.b.C$D``. The
    row with the longest matching prefix applies.
    """
    name = class_name.replace("/", ".")
    rows = _load(builtin_pack_directory() / "class-jars" / "jars.tsv")
    prefix = name.partition("$")[0]
    while prefix and prefix not in rows:
        prefix = prefix.rpartition(".")[0]
    if not prefix:
        return None
    row = rows[prefix]
    return fill(f"{{name}} is in {row['jar']}. {row['advice']}", {"name": name})


@cache
def _load(path: Path) -> Mapping[str, Mapping[str, str]]:
    """The rows by prefix, which is a package or a class."""
    lines = path.read_text(encoding="utf-8").split("\n")
    rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    return {row["prefix"]: row for row in rows}
