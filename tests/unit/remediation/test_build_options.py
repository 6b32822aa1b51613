from __future__ import annotations

import os
from pathlib import Path

import pytest

from flink_triage.errors import UsageError
from flink_triage.remediation import LINES, options_directory
from flink_triage.remediation.build_options import build_kafka, build_options, main

SHARED = Path(
    os.environ.get("FLINK_TRIAGE_SHARED", Path(__file__).resolve().parents[3] / "../shared")
)

COLUMNS = (
    "version", "key", "type", "default", "deprecated_keys", "fallback_keys", "field_deprecated",
    "doc_default", "scope", "artifact_version", "module", "declared_in", "description",
)  # fmt: skip


@pytest.fixture
def source(tmp_path: Path) -> Path:
    def row(line: str, type_: str, default: str, **more: str) -> str:
        cells = {
            "version": line,
            "key": "t.timeout",
            "type": type_,
            "default": default,
            "scope": "config",
            "module": "flink-core",
            "description": 'a lone " quote',
            **more,
        }
        return "\t".join(cells.get(name, "") for name in COLUMNS)

    rows = [
        *(row(line, "Long", "30000") for line in LINES[:6]),
        *(row(line, "Duration", "30 s", deprecated_keys="t.old", fallback_keys="t.fb")
          for line in LINES[6:]),
        row("2.3", "String", "10 s", field_deprecated="deprecated"),
        row("2.3", "String", "x", scope="table-or-connector", key="path"),
        *(row(line, "Map", "{A=1, B=2}", key="w", module="flink-yarn") for line in LINES),
    ]  # fmt: skip
    (tmp_path / "options.tsv").write_text("\n".join(("\t".join(COLUMNS), *rows)) + "\n")
    status = [
        "\t".join(("key", *LINES)),
        "\t".join(("t.timeout", *["current"] * 12)),
        "\t".join(("t.old", *[""] * 6, *["alias:t.timeout"] * 4, "?", "?")),
        "\t".join(("w", *["current"] * 12)),
    ]
    (tmp_path / "key_status.tsv").write_text("\n".join(status) + "\n")
    (tmp_path / "kafka_client_options.tsv").write_text(
        "kafka_clients\tclient\tkey\ttype\tdefault\n"
        "2.8.1\tproducer\tacks\tSTRING\t1\n"
        "3.9.1\tproducer\tacks\tSTRING\tall\n"
    )
    return tmp_path


def test_lines_with_the_same_facts_are_one_row(source: Path) -> None:
    assert build_options(source).split("\n")[1:] == [
        "t.old\t1.19-2.1\talias:t.timeout\t\t\t\t",
        "t.old\t2.2-2.3\t?\t\t\t\t",
        "t.timeout\t1.13-1.18\tcurrent\tLong(ms)\t30000\t\tconfig",
        "t.timeout\t1.19-2.3\tcurrent\tDuration\t30 s\t~t.fb;t.old\tconfig",
        "w\t1.13-2.3\tcurrent\tMap\tA:1,B:2\t\tyarn",
        "",
    ]


def test_kafka_clients_are_folded_over_versions(source: Path) -> None:
    assert build_kafka(source).split("\n")[1:] == [
        "acks\tSTRING\tproducer\t2.8.1\t3.9.1\tall",
        "",
    ]


def test_the_command_writes_both_tables(source: Path) -> None:
    target = source / "new"
    assert main([str(source), str(target)]) == 0
    assert (target / "options.tsv").read_text() == build_options(source)
    assert (target / "kafka-client.tsv").read_text() == build_kafka(source)


@pytest.mark.parametrize("arguments", [[], ["a", "b", "c"], ["/no/such/folder", "/tmp/x-unused"]])
def test_wrong_arguments_raise_a_usage_error(arguments: list[str], tmp_path: Path) -> None:
    arguments = [a.replace("/tmp", str(tmp_path)) for a in arguments]
    with pytest.raises(UsageError):
        main(arguments)


@pytest.mark.skipif(
    not (SHARED / "flink-options" / "options.tsv").is_file(),
    reason="the collected options are not here: set FLINK_TRIAGE_SHARED",
)
def test_the_shipped_tables_are_those_that_the_source_gives() -> None:
    source = SHARED / "flink-options"
    shipped = options_directory()
    assert (shipped / "options.tsv").read_text(encoding="utf-8") == build_options(source)
    assert (shipped / "kafka-client.tsv").read_text(encoding="utf-8") == build_kafka(source)
