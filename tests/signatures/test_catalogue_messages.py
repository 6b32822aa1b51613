"""The messages in ``catalogue_messages.tsv`` match their signatures in several layouts.

Each row contains a message of Flink or its libraries: the signature, the Flink lines that print the
message, the class of the throwable (or the logger and level of a log line), the text, and, if it is
known, the frame that throws the exception.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from flink_triage.signatures import Matcher, builtin_pack_directory, load_pack
from flink_triage.signatures.samples import explained_by, match_text

TABLE = Path(__file__).with_name("catalogue_messages.tsv")
PACK = load_pack([builtin_pack_directory()])
MATCHER = Matcher(PACK)

TASK = "Customer Totals -> Sink: Audit Sink (1/2)"
EXECUTION = "9ab62c331ebd8ec83fa17d61e78d20e8_cbc357ccb763df2852fee8c4fc7d55f2_0_0"
STACK = (
    "org.apache.flink.streaming.runtime.tasks.StreamTask.invoke(StreamTask.java:780)",
    "org.apache.flink.runtime.taskmanager.Task.doRun(Task.java:728)",
    "org.apache.flink.runtime.taskmanager.Task.run(Task.java:550)",
    "java.base/java.lang.Thread.run(Thread.java:840)",
)
FAILED = (
    f"2026-05-02 10:00:00,000 INFO  {'org.apache.flink.runtime.executiongraph.ExecutionGraph':<58} "
    f"[] - {TASK} ({EXECUTION}) switched from RUNNING to FAILED on localhost:41243-a3f512 @ "
    "localhost (dataPort=33019)."
)


@dataclass(frozen=True, slots=True)
class Row:
    signature: str
    type: str
    logger: str
    level: str
    text: str
    frame: str

    @property
    def header(self) -> str:
        return f"{self.type}: {self.text}"

    @property
    def stack(self) -> str:
        frames = (self.frame, *STACK) if self.frame else STACK
        return "".join(f"\n\tat {frame}" for frame in frames)


def _unescape(text: str) -> str:
    return text.replace("\\n", "\n").replace("\\t", "\t")


@cache
def _rows() -> list[Row]:
    with TABLE.open(encoding="utf-8", newline="") as lines:
        return [
            Row(*(_unescape(row[name]) for name in Row.__slots__))
            for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        ]


def _task_manager(row: Row) -> str:
    return (
        f"2026-05-02 10:00:00,000 WARN  {'org.apache.flink.runtime.taskmanager.Task':<58} [] - "
        f"{TASK}#0 ({EXECUTION}) switched from RUNNING to FAILED with failure cause: "
        f"{row.header}{row.stack}"
    )


def _job_manager(row: Row) -> str:
    return f"{FAILED}\norg.apache.flink.util.SerializedThrowable: {row.header}{row.stack}"


def _without_class(row: Row) -> str:
    """Before Flink 1.11, the JobManager printed the message without its class."""
    return f"{FAILED}\norg.apache.flink.util.SerializedThrowable: {row.text}{row.stack}"


def _wrapped(row: Row) -> str:
    frames = "".join(f"\n\tat {frame}" for frame in STACK)
    outer = f"java.lang.Exception: java.util.concurrent.ExecutionException{frames}"
    return f"{FAILED}\n{outer}\nCaused by: {row.header}{row.stack}\n\t... 4 more"


def _bare_cause(row: Row) -> str:
    return f"Caused by: {row.header}"


def _one_line(text: str) -> str:
    return " ".join(part.strip() for part in text.split("\n") if part.strip())


def _flattened(row: Row) -> str:
    return _one_line(_task_manager(row))


def _log4j1(row: Row) -> str:
    return (
        f"26/05/02 10:00:00 WARN taskmanager.Task: {TASK}#0 ({EXECUTION}) switched from RUNNING to "
        f"FAILED with failure cause: {row.header}{row.stack}"
    )


def _stock_line(row: Row) -> str:
    return f"2026-05-02 10:00:00,000 {row.level:<5} {row.logger:<58} [] - {row.text}"


def _threaded_line(row: Row) -> str:
    return f"2026-05-02T10:00:00.000Z [main] {row.level:<5} {row.logger} - {row.text}"


def _log4j1_line(row: Row) -> str:
    short = ".".join(row.logger.split(".")[-2:])
    return f"26/05/02 10:00:00 {row.level} {short}: {row.text}"


def _flattened_line(row: Row) -> str:
    return _one_line(_stock_line(row))


def _bare_line(row: Row) -> str:
    return row.text


THROWN: Mapping[str, Callable[[Row], str]] = {
    "TaskManager": _task_manager,
    "JobManager, serialized": _job_manager,
    "JobManager, wrapped": _wrapped,
    "Caused by alone": _bare_cause,
    "on one line": _flattened,
    "log4j 1": _log4j1,
}
LOGGED: Mapping[str, Callable[[Row], str]] = {
    "stock": _stock_line,
    "with thread": _threaded_line,
    "log4j 1": _log4j1_line,
    "on one line": _flattened_line,
    "text alone": _bare_line,
}

# Any HDFS client prints these messages. Without a frame of Flink, they match no signature.
ANYONES = (
    "All datanodes ",
    "Unable to close file because ",
    "Failed to replace a bad datanode on the existing pipeline ",
)


SIGNATURES = sorted({row.signature for row in _rows()})


@cache
def _reach(signature: str) -> frozenset[str]:
    return explained_by(PACK, signature)


def _is_related(one: str, other: str) -> bool:
    return other in _reach(one) or one in _reach(other)


def _problem(row: Row, render: Callable[[Row], str]) -> str | None:
    """What is wrong with the matches of a message in a layout; ``None`` if nothing is."""
    found = {match.signature for match in match_text(MATCHER, render(row))}
    is_anyones = render is _bare_cause and row.text.startswith(ANYONES)
    if (row.signature in found) == is_anyones:
        return "matches" if is_anyones else "does not match"
    claims = {s for s in found if PACK.signatures[s].role in ("trigger", "contributing")}
    others = {s for s in claims if s != row.signature and not _is_related(row.signature, s)}
    return f"also matches {', '.join(sorted(others))}" if others else None


@pytest.mark.parametrize("signature", SIGNATURES)
def test_catalogue_messages_match_their_signature_only(signature: str) -> None:
    problems = [
        f"{row.text!r}, {layout}: {problem}"
        for row in _rows()
        if row.signature == signature
        for layout, render in (THROWN if row.type else LOGGED).items()
        if (problem := _problem(row, render))
    ]
    assert problems == []


def test_messages_without_a_class_match_by_text_or_not_at_all() -> None:
    thrown = [row for row in _rows() if row.type]
    recognised = 0
    for row in thrown:
        found = {match.signature for match in match_text(MATCHER, _without_class(row))}
        claims = {s for s in found if PACK.signatures[s].role in ("trigger", "contributing")}
        assert {s for s in claims if not _is_related(row.signature, s)} <= {row.signature}
        recognised += row.signature in found
    assert recognised > 0.75 * len(thrown)


def test_table_names_only_existing_signatures() -> None:
    assert {row.signature for row in _rows()} - set(PACK.signatures) == set()


SOURCES = Path(
    os.environ.get("FLINK_TRIAGE_SHARED", Path(__file__).resolve().parents[2].parent / "shared")
).joinpath("messages-by-version.tsv")
# Placeholders for values in messages: Java expressions, format specifiers, and line ends.
SLOT = re.compile(r"<[^<>]*(?:<[^<>]*>)?[^<>]*>|\$\{[^}]*\}|\$\w+|\{\}|%[sdS]|⏎|\.\*")
QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
NO_FAILURE = (
    # Logged below INFO at every startup without Hadoop.
    "Hadoop is not in the classpath/dependencies. The extended set",
    # Logged by the scheduler for materialized tables, and not about a record.
    "Failed to deserialize JSON string to",
    # "... with leader id {} lost leadership": TaskManagers also log this when a job has finished.
    "JobManager for job",
)


def _longest_fixed_part(text: str, source: str) -> str:
    if source != "flink":
        text = max(QUOTED.findall(text), key=len, default=text)
    parts = SLOT.split(text.replace('\\"', '"'))
    # Long messages end with links to the documentation, which differ between Flink lines.
    return max((part.split("https://")[0] for part in parts), key=len).strip(" .\"'\\n")[:90]


@pytest.mark.skipif(not SOURCES.exists(), reason="needs the messages collected from the sources")
def test_every_message_collected_from_the_sources_of_all_lines_is_in_the_table() -> None:
    with SOURCES.open(encoding="utf-8", newline="") as lines:
        collected = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    known = [row.text for row in _rows()]
    parts = {_longest_fixed_part(row["text"], row["source"]) for row in collected}
    missing = {p for p in parts if not any(p in text for text in known)}
    assert len(collected) > 200
    assert {part for part in missing if not part.startswith(NO_FAILURE)} == set()
