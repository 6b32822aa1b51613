"""Regenerates ``patterns/flink-options`` from tables of options collected from released JARs.

``python -m flink_triage.remediation.build_options SOURCE [TARGET]``; ``docs/flink-options.md``
describes SOURCE. The output is sorted and contains no dates, so it is deterministic for a given
input.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from flink_triage.errors import UsageError
from flink_triage.remediation.units import unit_of
from flink_triage.remediation.versions import LINES, NEWEST

Row = Mapping[str, str]
Facts = tuple[str, str, str, str, str]  # status, type, default, other names, scope

OPTIONS_HEADER = ("key", "lines", "status", "type", "default", "other_names", "scope")
KAFKA_HEADER = ("key", "type", "clients", "first_version", "last_version", "default")

_SCOPE_OF_MODULE = (
    ("flink-table", "table"),
    ("flink-sql", "table"),
    ("flink-python", "python"),
    ("flink-kubernetes", "kubernetes"),
    ("flink-yarn", "yarn"),
    ("flink-metrics", "metric-reporter"),
    ("flink-s3", "filesystem"),
    ("flink-gs", "filesystem"),
    ("flink-oss", "filesystem"),
    ("flink-azure", "filesystem"),
)
# If a Flink line declares a key several times, declarations that are not deprecated are preferred,
# and then those of these modules, in this order.
_MODULE_ORDER = ("flink-core", "flink-runtime", "flink-streaming-java", "flink-table-api-java")


def build_options(source: Path) -> str:
    """The text of the generated ``options.tsv``.

    After the header, there is one row per key and range of Flink lines with equal properties.
    Raises ``UsageError`` if ``source`` does not contain its own ``options.tsv`` and
    ``key_status.tsv``.
    """
    declared = _declarations(_read(source / "options.tsv"))
    newest = _newest_types(declared)
    rows: list[str] = ["\t".join(OPTIONS_HEADER)]
    for row in sorted(_read(source / "key_status.tsv"), key=lambda row: row["key"]):
        key = row["key"]
        facts = {
            line: _facts(row[line], declared.get((key, line)), newest.get(key)) for line in LINES
        }
        for lines, (status, type_, default, others, scope) in _runs(facts):
            rows.append("\t".join((key, lines, status, type_, default, others, scope)))
    return "\n".join(rows) + "\n"


def build_kafka(source: Path) -> str:
    """The text of ``kafka-client.tsv``: one row per option and type, for all clients.

    Raises ``UsageError`` if ``kafka_client_options.tsv`` is missing from ``source``.
    """
    options: dict[tuple[str, str], list[Row]] = {}
    for row in _read(source / "kafka_client_options.tsv"):
        options.setdefault((row["key"], row["type"]), []).append(row)
    lines = ["\t".join(KAFKA_HEADER)]
    for (key, type_), rows in sorted(options.items()):
        versions = sorted({row["kafka_clients"] for row in rows}, key=_version_key)
        clients = ",".join(sorted({row["client"] for row in rows}))
        default = " ".join(rows[-1]["default"].split())
        lines.append("\t".join((key, type_, clients, versions[0], versions[-1], default)))
    return "\n".join(lines) + "\n"


def _version_key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _read(path: Path) -> Iterator[dict[str, str]]:
    if not path.is_file():
        raise UsageError(f"{path} is missing; SOURCE must contain {path.name}")
    with path.open(encoding="utf-8", newline="") as stream:
        # Descriptions contain unpaired quotes, so CSV quoting must be disabled.
        for row in csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE, restval=""):
            yield {str(name): value for name, value in row.items()}


def _declarations(rows: Iterable[Row]) -> dict[tuple[str, str], Row]:
    best: dict[tuple[str, str], Row] = {}
    for row in rows:
        if row["scope"] != "config":
            continue
        place = (row["key"], row["version"])
        if place not in best or _preference(row) < _preference(best[place]):
            best[place] = row
    return best


def _preference(row: Row) -> tuple[int, int, str]:
    order = row["module"]
    rank = _MODULE_ORDER.index(order) if order in _MODULE_ORDER else len(_MODULE_ORDER)
    return (1 if row["field_deprecated"] else 0, rank, row["declared_in"])


def _newest_types(declared: Mapping[tuple[str, str], Row]) -> dict[str, Row]:
    """The declaration of each name, including deprecated names, in the newest line."""
    newest = {key: row for (key, line), row in declared.items() if line == NEWEST}
    for row in tuple(newest.values()):
        for old in _split(row["deprecated_keys"]):
            newest.setdefault(old, row)
    return newest


def _facts(status: str, row: Row | None, newest: Row | None) -> Facts | None:
    if not status:
        return None
    if row is None or status not in {"current", "deprecated"}:
        return (status, "", "", "", "")
    # Fallback keys come first, because Configuration looks them up before deprecated keys
    # (ConfigOption.withFallbackKeys and withDeprecatedKeys keep this order).
    others = [f"~{name}" for name in _split(row["fallback_keys"])]
    others += _split(row["deprecated_keys"])
    type_ = row["type"] + _unit_suffix(row, newest)
    return (status, type_, _default(row), ";".join(others), _scope(row))


def _default(row: Row) -> str:
    """The default in configuration file format; the source has maps in Java format, ``{A=70}``."""
    default = row["default"]
    if row["type"] == "Map" and default.startswith("{"):
        return default.strip("{}").replace("=", ":").replace(", ", ",")
    return default


def _unit_suffix(row: Row, newest: Row | None) -> str:
    """The unit, such as ``(ms)``, of a number that later became a Duration.

    Empty for other options. The unit is the one in which the number and the later Duration have the
    same default, or ``ms`` if there is none.
    """
    if newest is None or newest["type"] != "Duration" or row["type"] not in {"Long", "Integer"}:
        return ""
    return f"({unit_of(row['default'], newest['default']) or 'ms'})"


def _split(names: str) -> list[str]:
    return [name for name in names.split(";") if name]


def _scope(row: Row) -> str:
    if row["key"].startswith(("$internal.", "__")):
        return "internal"
    return next(
        (scope for prefix, scope in _SCOPE_OF_MODULE if row["module"].startswith(prefix)), "config"
    )


def _runs(facts: Mapping[str, Facts | None]) -> Iterator[tuple[str, Facts]]:
    start, previous = LINES[0], facts[LINES[0]]
    last = start
    for line in (*LINES[1:], ""):
        current = facts.get(line)
        if line and current == previous:
            last = line
            continue
        if previous is not None:
            yield (start if start == last else f"{start}-{last}"), previous
        start, last, previous = line, line, current


def main(arguments: Sequence[str]) -> int:
    if len(arguments) not in {1, 2}:
        raise UsageError("build_options: expected SOURCE [TARGET], got " + repr(list(arguments)))
    source = Path(arguments[0])
    default_target = Path(__file__).parents[3] / "patterns" / "flink-options"
    target = Path(arguments[1]) if len(arguments) > 1 else default_target
    target.mkdir(parents=True, exist_ok=True)
    for name, text in (
        ("options.tsv", build_options(source)),
        ("kafka-client.tsv", build_kafka(source)),
    ):
        (target / name).write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
