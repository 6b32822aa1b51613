"""Parses header lines of many layouts into their parts."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from flink_triage.logs.layouts import LAYOUTS, parse_header
from flink_triage.logs.layouts.headers import header_kind_of
from flink_triage.logs.layouts.json_lines import parse_json_line

_AT = datetime(2026, 11, 21, 6, 47, 23, 468000, tzinfo=UTC)
_SECOND = _AT.replace(microsecond=0)
_JOB = "caf54c11130659b87c41175d9fcdc6f0"


@pytest.mark.parametrize(
    ("line", "at", "level", "logger", "thread", "message"),
    [
        pytest.param(
            "2026-11-21 06:47:23,468 INFO  org.apache.flink.Foo   [] - hello - there",
            _AT, "INFO", "org.apache.flink.Foo", None, "hello - there",
            id="default Flink layout since 1.11",
        ),
        pytest.param(
            "2026-11-21 06:47:23,468 WARN  org.apache.flink.Foo    - hello",
            _AT, "WARN", "org.apache.flink.Foo", None, "hello",
            id="Log4j 1 without brackets for an empty context",
        ),
        pytest.param(
            "2026-11-21 06:47:23,468 INFO  [] [main] org.apache.flink.Foo - hello",
            _AT, "INFO", "org.apache.flink.Foo", "main", "hello",
            id="empty context and thread before the logger",
        ),
        pytest.param(
            "[2026-11-21T06:47:23.468Z] [Map -> Sink[1] (1/2)#0] ERROR a.b.Foo - hello",
            _AT, "ERROR", "a.b.Foo", "Map -> Sink[1] (1/2)#0", "hello",
            id="ISO time in brackets and a thread name with brackets",
        ),
        pytest.param(
            "26/11/21 06:47:23 INFO taskexecutor.TaskManagerRunner: hello: you",
            _SECOND, "INFO", "taskexecutor.TaskManagerRunner", None, "hello: you",
            id="Log4j 1 layout of Hadoop with a two-digit year",
        ),
        pytest.param(
            "06:47:23.468 [main] DEBUG o.a.f.Foo - hello",
            None, "DEBUG", "o.a.f.Foo", "main", "hello",
            id="Logback default without a date",
        ),
        pytest.param(
            "2026-11-21T08:47:23,468+0200 [main] INFO  a.b.Foo - hello",
            _AT, "INFO", "a.b.Foo", "main", "hello",
            id="an offset without a colon",
        ),
        pytest.param(
            "2026-11-21 06:47:23.468 | ERROR | Map -> Sink: t (1/2)#0 | RateClient | hello | 2",
            _AT, "ERROR", "RateClient", "Map -> Sink: t (1/2)#0", "hello | 2",
            id="columns between bars and a thread with spaces",
        ),
        pytest.param(
            "2026-11-21 06:47:23.468 | INFO  | TaskExecutor | GET | 200",
            _AT, "INFO", "TaskExecutor", None, "GET | 200",
            id="columns between bars without a thread",
        ),
        pytest.param(
            "2026-11-21 06:47:23.468|Map (1/2)#0|WARN|o.a.f.Foo:77|hello",
            _AT, "WARN", "o.a.f.Foo", "Map (1/2)#0", "hello",
            id="columns between bars, the thread first",
        ),
        pytest.param(
            "2026-11-21 06:47:23,468 Source: a b -> Map (2/2)#0 ERROR An exception occurred "
            "processing Appender MainAppender a.b.LoggingException: java.io.IOException: full",
            _AT, "ERROR", None, "Source: a b -> Map (2/2)#0",
            "An exception occurred processing Appender MainAppender a.b.LoggingException: "
            "java.io.IOException: full",
            id="Log4j status messages with a task name as the thread",
        ),
        pytest.param(
            "ERROR akka.remote.EndpointWriter   [] - dropping message",
            None, "ERROR", "akka.remote.EndpointWriter", None, "dropping message",
            id="level first without a time",
        ),
        pytest.param(
            "2026-11-21 06:47:23,468 [myid:1] - WARN  [main:QuorumPeer@774] - hello",
            _AT, "WARN", "QuorumPeer", "main", "hello",
            id="ZooKeeper layout",
        ),
        pytest.param(
            "2026-11-21 06:47:23.468 | WARN | main | com.acme.Foo | hello",
            _AT, "WARN", "com.acme.Foo", "main", "hello",
            id="a custom layout with bars",
        ),
        pytest.param(
            "[INFO] [2026-11-21 06:47:23][org.apache.flink.Foo]hello",
            _SECOND, "INFO", "org.apache.flink.Foo", None, "hello",
            id="a custom layout with brackets only",
        ),
        pytest.param(
            "[main] 2026-11-21 06:47:23,468 WARN  ExecutionGraph - Map (1/2) - hello",
            _AT, "WARN", "ExecutionGraph", "main", "Map (1/2) - hello",
            id="a thread and the last part of a logger name",
        ),
        pytest.param(
            "[FlinkExecute] 2026-11-21T06:47:23.468 ERROR: java.lang.NoSuchFieldError: NAME",
            _AT, "ERROR", None, "FlinkExecute", "java.lang.NoSuchFieldError: NAME",
            id="a throwable after the level",
        ),
    ],
)  # fmt: skip
def test_header_parts(
    line: str,
    at: datetime | None,
    level: str,
    logger: str | None,
    thread: str | None,
    message: str,
) -> None:
    header = parse_header(line)
    assert header is not None
    found = (header.logged_at, header.level, header.logger, header.thread, header.message)
    assert found == (at, level, logger, thread, message)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("\tat org.apache.flink.Foo.bar(Foo.java:12)", id="a frame"),
        pytest.param("Caused by: java.io.IOException: ERROR", id="a cause"),
        pytest.param("org.rocksdb.RocksDBException: while link file", id="a throwable"),
        pytest.param("2026 was a good year, INFO or not", id="prose that begins with a year"),
        pytest.param("1. first set the option to 3", id="a numbered list"),
        pytest.param("Errors happen: do not worry", id="a word that begins like a level"),
        pytest.param("", id="an empty line"),
    ],
)
def test_other_lines_are_no_headers(line: str) -> None:
    assert parse_header(line) is None


def test_job_id_is_read_from_the_context() -> None:
    line = f"2026-11-21 06:47:23,468 INFO  [{{flink-job-id={_JOB}}}] [main] a.b.Foo - hello"
    header = parse_header(line)
    assert header is not None
    assert (header.job_id, header.thread) == (_JOB, "main")


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("2026-11-21 06:47:23,468 INFO " + "[" * 100_000, id="open brackets"),
        pytest.param("2026-11-21 06:47:23,468 INFO " + "[a] " * 50_000, id="many brackets"),
        pytest.param(
            "2026-11-21 06:47:23,468 INFO " + "a." * 100_000, id="a very long logger name"
        ),
        pytest.param("2026-11-21 06:47:23,468 INFO " + " " * 200_000, id="spaces"),
    ],
)
@pytest.mark.timing
def test_hostile_lines_are_parsed_quickly(line: str) -> None:
    begin = time.process_time()
    parse_header(line)
    assert time.process_time() - begin < 0.5


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(
            '{"@timestamp":"2026-11-21T06:47:23.468Z","log.level":"WARN","message":"m",'
            '"log.logger":"a.B","process.thread.name":"t",'
            '"error.stack_trace":"x.YException\\n\\tat z"}',
            id="ECS with dotted names",
        ),
        pytest.param(
            '{"timestamp":1795243643468,"level":"WARN","loggerName":"a.B","thread":"t",'
            '"message":"m","thrown":{"name":"x.YException","extendedStackTrace":"\\tat z"}}',
            id="Log4j 2 JSONLayout with a nested throwable",
        ),
        pytest.param(
            '{"messageType":"WARN","logger":"a.B","threadName":"t","message":"m",'
            '"timestamp":"2026-11-21T06:47:23.468Z",'
            '"throwableInformation":["x.YException","\\tat z"]}',
            id="Amazon Managed Service with the stack trace as a list",
        ),
        pytest.param(
            '{"time":"2026-11-21T06:47:23.468Z","level":"WARN","logger":"a.B","thread":"t",'
            '"msg":"m","err":{"message":"n","stack":"x.YException\\n\\tat z"}}',
            id="pino and bunyan",
        ),
    ],
)
def test_json_dialects_give_the_same_header(line: str) -> None:
    header = parse_json_line(line)
    assert header is not None
    assert (header.logged_at, header.level, header.logger, header.thread, header.message) == (
        _AT, "WARN", "a.B", "t", "m",
    )  # fmt: skip
    assert header.stack == "x.YException\n\tat z"


@pytest.mark.parametrize(
    "number",
    [
        pytest.param("1e400", id="infinite"),
        pytest.param("9" * 400, id="larger than any float"),
        pytest.param("NaN", id="not a number"),
        pytest.param("-1", id="before 1970"),
    ],
)
def test_invalid_json_time_leaves_the_event_without_a_time(number: str) -> None:
    for field in (f'"timestamp": {number}', f'"instant": {{"epochSecond": {number}}}'):
        header = parse_json_line(f'{{{field}, "message": "x", "level": "ERROR"}}')
        assert header is not None
        assert (header.logged_at, header.level) == (None, "ERROR")


@pytest.mark.parametrize("year", ["0000", "0001", "1969", "2200", "9999"])
def test_implausible_year_is_not_a_time(year: str) -> None:
    header = parse_header(f"{year}-01-01 00:00:00,000 ERROR a.b.C [] - x")
    assert header is not None
    assert (header.logged_at, header.message) == (None, "x")


def test_the_kind_of_a_header_is_that_of_its_parts() -> None:
    rendered = Path(__file__).parents[2] / "logs" / "layouts"
    lines = [layout.example for layout in LAYOUTS]
    for path in sorted(rendered.rglob("*.log")):
        lines += path.read_text(encoding="utf-8", errors="replace").split("\n")[:200]
    assert len({kind.layout for line in lines if (kind := header_kind_of(line))}) > len(LAYOUTS)
    for line in lines:
        header, kind = parse_header(line), header_kind_of(line)
        parts = (header.layout, header.logger) if header is not None else None
        assert kind == parts, line
