from __future__ import annotations

import csv
from pathlib import Path

import pytest

from flink_triage.remediation import LINES, NEWEST, OptionTable, Setting
from flink_triage.remediation.option_table import _load, options_directory

TABLE = OptionTable.load()

LOCAL_NEW = "execution.state-recovery.from-local"
LOCAL_OLD = "state.backend.local-recovery"
RETAINED_NEW = "execution.checkpointing.num-retained"
RETAINED_OLD = "state.checkpoints.num-retained"


def _suggested() -> list[dict[str, str]]:
    path = Path(__file__).with_name("suggested_options.tsv")
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))


SUGGESTED = _suggested()
IDS = [f"{row['key']} in {row['first']}-{row['last']}" for row in SUGGESTED]


def _lines(row: dict[str, str]) -> tuple[str, ...]:
    return LINES[LINES.index(row["first"]) : LINES.index(row["last"]) + 1]


@pytest.mark.parametrize("row", SUGGESTED, ids=IDS)
def test_a_suggested_option_has_the_name_that_each_line_knows(row: dict[str, str]) -> None:
    names = {(name, line) for name in (row["name"], row["key"]) for line in _lines(row)}
    assert {TABLE.key_for(name, line) for name, line in names} == {row["key"]}


@pytest.mark.parametrize("row", SUGGESTED, ids=IDS)
def test_a_suggested_option_has_the_default_of_each_line(row: dict[str, str]) -> None:
    defaults = {TABLE.default(row["name"], line) for line in _lines(row)}
    assert defaults == {None if row["default"] == "(none)" else row["default"]}


@pytest.mark.parametrize(
    "row",
    [row for row in SUGGESTED if row["values"]],
    ids=[i for i, row in zip(IDS, SUGGESTED, strict=True) if row["values"]],
)
def test_a_suggested_value_is_accepted_by_each_line(row: dict[str, str]) -> None:
    problems = [
        problem
        for value in row["values"].split("|")
        for line in _lines(row)
        if (problem := TABLE.problem(row["name"], line, TABLE.adapt(row["name"], line, value)))
    ]
    assert problems == []


NAMES = [
    ("the newest name in an old line", LOCAL_NEW, "1.16", LOCAL_OLD),
    ("the old name in the newest line", LOCAL_OLD, "2.3", LOCAL_NEW),
    ("both names exist in 1.20", LOCAL_OLD, "1.20", LOCAL_NEW),
    ("the sibling of a split option", "execution.checkpointing.local-backup.enabled", "1.15",
     LOCAL_OLD),
    ("a rename twice over", "pekko.ask.timeout", "1.13", "akka.ask.timeout"),
    ("a name that is no longer accepted", "state.backend.rocksdb.checkpointdir", "2.1",
     "state.backend.rocksdb.localdir"),
    ("an option of its own in every line", "io.tmp.dirs", "1.13", "io.tmp.dirs"),
    ("not there yet", "process.taskmanager.working-dir", "1.14", None),
    ("there from 1.15", "process.taskmanager.working-dir", "1.15",
     "process.taskmanager.working-dir"),
    ("gone", "execution.checkpointing.force", "2.0", None),
    ("never there", "execution.checkpointing.tolerable-failures", "1.16", None),
    ("a fallback is no former name", "rest.cache.checkpoint-statistics.timeout", "1.13", None),
    ("a pass-through key", "s3.connection.maximum", "1.16", "s3.connection.maximum"),
    ("a pass-through key that is an option since 2.0", "s3.endpoint", "1.20", "s3.endpoint"),
    ("a pass-through key that is an option since 2.3", "s3.path-style-access", "1.16",
     "s3.path-style-access"),
    ("an option of 2.3 that nothing read before", "s3.chunked-encoding.enabled", "1.20", None),
    ("a pass-through key that is an option of one plugin", "s3.path.style.access", "2.3",
     "s3.path.style.access"),
    ("a reporter", "metrics.reporter.prom.port", "1.18", "metrics.reporter.prom.port"),
    ("an entry of a map option", "kubernetes.jobmanager.labels.team", "1.17",
     "kubernetes.jobmanager.labels.team"),
    ("a jar missing between two lines that know the key", "gs.http.read-timeout", "2.1",
     "gs.http.read-timeout"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("key", "line", "known"), [case[1:] for case in NAMES], ids=[case[0] for case in NAMES]
)
def test_any_name_of_an_option_finds_the_one_that_the_line_reads(
    key: str, line: str, known: str | None
) -> None:
    assert TABLE.key_for(key, line) == known


def test_the_name_of_a_line_leads_back_to_the_newest_name() -> None:
    split = "execution.checkpointing.local-backup.enabled"
    newest = [key for key in TABLE.keys if TABLE.option(key, NEWEST).is_own and key != split]
    lost = [
        (key, line)
        for key in newest
        for line in LINES
        if (old := TABLE.key_for(key, line)) and TABLE.key_for(old, NEWEST) != key
    ]
    assert len(newest) > 700
    assert lost == []


def test_every_default_is_a_value_of_its_own_type() -> None:
    owned = [
        (key, line, option.default)
        for key in TABLE.keys
        for line in LINES
        if (option := TABLE.option(key, line)).is_own and option.default is not None
    ]
    assert len(owned) > 6000
    assert [case for case in owned if not TABLE.accepts(*case)] == []


STATUSES = [
    (RETAINED_OLD, "1.16", "current"),
    (RETAINED_OLD, "2.3", f"alias:{RETAINED_NEW}"),
    (RETAINED_NEW, "1.16", "unknown"),
    ("akka.watch.threshold", "1.20", "deprecated"),
    ("web.address", "2.0", "fallback:rest.bind-address"),
    ("gs.http.read-timeout", "2.2", "not-known-here"),
    ("state.backend.forst.remote-dir", "2.1", "unknown"),
    ("no.such.key", "2.3", "unknown"),
]


@pytest.mark.parametrize(("key", "line", "status"), STATUSES)
def test_the_status_of_a_name_is_that_of_the_line(key: str, line: str, status: str) -> None:
    assert TABLE.status(key, line) == status


@pytest.mark.parametrize(
    ("key", "line", "type_"),
    [
        ("heartbeat.timeout", "1.19", "Long(ms)"),
        ("heartbeat.timeout", "1.20", "Duration"),
        ("state.backend.incremental", "2.3", "Boolean"),
        ("no.such.key", "2.3", None),
        ("s3.connection.maximum", "2.3", "String"),
    ],
)
def test_the_type_is_that_of_the_option_behind_the_name(
    key: str, line: str, type_: str | None
) -> None:
    assert TABLE.type_of(key, line) == type_


@pytest.mark.parametrize(
    ("key", "line", "value", "accepted"),
    [
        ("heartbeat.timeout", "1.19", "2 min", False),
        ("heartbeat.timeout", "1.20", "2 min", True),
        ("execution.checkpointing.mode", "1.16", "at_least_once", True),
        ("execution.checkpointing.mode", "1.16", "at-least-once", False),
        ("taskmanager.memory.process.size", "1.16", "4g", True),
        ("taskmanager.memory.process.size", "1.16", "4 GiB", False),
        ("process.taskmanager.working-dir", "1.14", "/x", False),
    ],
)
def test_a_line_accepts_what_parses_as_its_type(
    key: str, line: str, value: str, accepted: bool
) -> None:
    assert TABLE.accepts(key, line, value) is accepted


FOUND = [
    ("under its own name", {LOCAL_NEW: "true"}, LOCAL_NEW, "2.0", Setting(LOCAL_NEW, "true")),
    ("under an old name", {LOCAL_OLD: "true"}, LOCAL_NEW, "2.0", Setting(LOCAL_OLD, "true")),
    ("its own name first", {LOCAL_OLD: "true", LOCAL_NEW: "false"}, LOCAL_NEW, "2.0",
     Setting(LOCAL_NEW, "false")),
    ("asked for by the newest name", {LOCAL_OLD: "true"}, LOCAL_NEW, "1.16",
     Setting(LOCAL_OLD, "true")),
    ("a name that the line ignores", {LOCAL_NEW: "true"}, LOCAL_NEW, "1.16", None),
    ("any name without a line", {RETAINED_OLD: "3"}, RETAINED_NEW, None,
     Setting(RETAINED_OLD, "3")),
    ("a fallback answers", {"akka.ask.timeout": "20 s"}, "taskmanager.slot.timeout", "1.16",
     Setting("akka.ask.timeout", "20 s")),
    ("a fallback before an old name",
     {LOCAL_OLD: "false", LOCAL_NEW: "true"}, "execution.checkpointing.local-backup.enabled",
     "2.0", Setting(LOCAL_NEW, "true")),
    ("not set", {"a": "b"}, LOCAL_NEW, "2.0", None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("effective", "key", "line", "setting"),
    [case[1:] for case in FOUND],
    ids=[case[0] for case in FOUND],
)
def test_a_configuration_answers_as_flink_would_read_it(
    effective: dict[str, str], key: str, line: str | None, setting: Setting | None
) -> None:
    assert TABLE.find(effective, key, line) == setting


def test_a_canonical_configuration_has_the_newest_names() -> None:
    effective = {
        LOCAL_OLD: "true",
        RETAINED_OLD: "2",
        RETAINED_NEW: "3",
        "akka.ask.timeout": "20 s",
        "my.own": "x",
    }
    assert TABLE.canonical(effective) == {
        LOCAL_NEW: "true",
        "execution.checkpointing.local-backup.enabled": "true",
        RETAINED_NEW: "3",
        "pekko.ask.timeout": "20 s",
        "my.own": "x",
    }


def test_the_lines_of_an_option_are_those_that_read_it_under_any_name() -> None:
    assert TABLE.lines_of(RETAINED_NEW) == LINES
    assert TABLE.lines_of("process.taskmanager.working-dir") == LINES[LINES.index("1.15") :]
    assert TABLE.lines_of("no.such.key") == ()


def test_the_names_of_an_option_start_with_the_newest() -> None:
    assert TABLE.names_of("akka.ask.timeout") == ("pekko.ask.timeout", "akka.ask.timeout")


def test_fallback_key_is_not_a_name_of_the_option() -> None:
    assert "web.address" not in TABLE.names_of("rest.bind-address")


def test_an_option_without_declared_default_has_what_the_code_does() -> None:
    key = "execution.checkpointing.tolerable-failed-checkpoints"
    assert TABLE.default(key, "1.16") is None
    assert TABLE.effective_default(key, "1.16") == "0"


def test_the_table_is_small_and_read_once() -> None:
    assert (options_directory() / "options.tsv").stat().st_size < 400_000
    assert OptionTable.load() is OptionTable.load()
    assert _load(options_directory() / "options.tsv") is TABLE
