"""Text pasted from a page: where events end if no header follows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path

import pytest

from flink_triage.logs.readers.scan import Scanner
from flink_triage.model import ByteRange, Event, FileProfile
from flink_triage.settings import DEFAULT_SETTINGS

_FRAME = "    at org.apache.flink.Foo.bar(Foo.java:12)"
_FIRST = "org.apache.kafka.common.errors.TimeoutException: no answer"
_SECOND = (
    "org.apache.flink.util.FlinkRuntimeException: Exceeded checkpoint tolerable failure threshold"
)
_HEADER = "2023-04-10 13:51:48,829 WARN  org.apache.flink.Foo [] - Failed to commit"


@pytest.mark.parametrize(
    ("lines", "starts"),
    [
        pytest.param(
            [_HEADER, _FIRST, "Reason: too many clients", "", _SECOND, _FRAME],
            [1, 5],
            id="a trace without frames ends at a blank line before another throwable",
        ),
        pytest.param(
            [f"[Bug] Caused by: {_FIRST}", _SECOND, _FRAME],
            [1],
            id="a title that quotes the cause belongs to the trace below it",
        ),
        pytest.param(
            [f"It fails, see below: {_FIRST}", _SECOND, _FRAME],
            [1, 2],
            id="other sentences above a trace do not belong to it",
        ),
        pytest.param(
            [_FIRST, "", "or", "", _SECOND, _FRAME],
            [1, 5],
            id="the same applies without a header",
        ),
        pytest.param(
            [_HEADER, _FIRST, "Table options are:", "", "'connector'='kafka'", _FRAME],
            [1],
            id="a blank line inside a message does not end the event",
        ),
        pytest.param(
            [_HEADER, 'Exception in thread "main" java.lang.Error: x', _FRAME],
            [1, 2],
            id="the JVM output for an uncaught exception belongs to no logger",
        ),
        pytest.param(
            ["[ERROR] Could not execute SQL statement. Reason:", _FIRST, "", "Flink SQL> "],
            [1],
            id="the exception below a line of the SQL client belongs to it",
        ),
        pytest.param(
            [_SECOND, _FRAME, "...", f"Caused by: {_FIRST}", _FRAME],
            [1],
            id="dots in place of omitted frames do not end a trace",
        ),
        pytest.param(
            [_SECOND, _FRAME, "[...]", "We have seen this java.io.IOException twice"],
            [1, 4],
            id="a sentence after such dots ends it",
        ),
        pytest.param(
            [_HEADER, "", _FIRST, _FRAME],
            [1],
            id="the first throwable belongs to its header, even after a blank line",
        ),
        pytest.param(
            [_HEADER, _FIRST, _SECOND, _FRAME],
            [1],
            id="two throwables without a blank line are one message",
        ),
        pytest.param(
            ["```", _FIRST, "  and more of it", "```", "or", "```", f"Caused by: {_SECOND}", "```"],
            [2, 7],
            id="quoted text ends at its fence",
        ),
        pytest.param(
            [f"    Caused by: {_FIRST}", f"Caused by: {_SECOND}", _FRAME],
            [1, 2],
            id="a single cause above a less indented trace is a quotation from it",
        ),
        pytest.param(
            [f"Caused by: {_FIRST}", f"Caused by: {_SECOND}", f"Caused by: {_FIRST}"],
            [1],
            id="causes found by grep are one chain",
        ),
        pytest.param(
            ["When I run the job:", f"`{_FIRST}`"],
            [2],
            id="a throwable in backticks is recognized",
        ),
        pytest.param(
            [
                "Traceback (most recent call last):",
                '  File "job.py", line 3, in <module>',
                "    main()",
                "TypeError: 'JavaPackage' object is not callable",
                _FIRST,
                _FRAME,
            ],
            [1],
            id="Python prints the error below the frames",
        ),
        pytest.param(
            ["Traceback (most recent call last):", '  File "job.py", line 3', "", _FIRST, _FRAME],
            [4],
            id="a blank line ends a truncated traceback",
        ),
        pytest.param(
            [_FIRST, _FRAME, _SECOND, _FRAME],
            [1, 3],
            id="a throwable after frames starts an event",
        ),
    ],
)
def test_where_events_begin(tmp_path: Path, lines: list[str], starts: list[int]) -> None:
    path = tmp_path / "paste.txt"
    path.write_text("\n".join(lines) + "\n")
    profile = FileProfile(str(path), path.stat().st_size)
    scan = Scanner((), DEFAULT_SETTINGS).scan(ByteRange(profile, "d"), default_timezone=UTC)
    assert [event.line for event in scan.events] == starts
    assert scan.event_bytes + scan.counted_bytes == path.stat().st_size


def test_the_prompt_of_the_sql_client_starts_an_event(tmp_path: Path) -> None:
    path = tmp_path / "paste.txt"
    title = "[ERROR] Could not execute SQL statement. Reason:"
    path.write_text("\n".join([title, _FIRST, "", "Flink SQL> select 1;"]) + "\n")
    profile = FileProfile(str(path), path.stat().st_size)
    (event,) = (
        Scanner((), DEFAULT_SETTINGS).scan(ByteRange(profile, "d"), default_timezone=UTC).events
    )
    assert (event.message, event.continuation) == (title, _FIRST)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"**{_FIRST.partition(':')[0]}**: no answer", _FIRST),
        (f" **Caused by: {_FIRST}**", f"Caused by: {_FIRST}"),
        (f"`{_FIRST}", _FIRST),
        (f"{_FIRST} **now**", f"{_FIRST} **now**"),
    ],
)
def test_markdown_markup_is_removed(tmp_path: Path, line: str, message: str) -> None:
    (event,) = _events(tmp_path, [line, f"{_FRAME}`"])
    assert (event.message, event.continuation) == (message, _FRAME)


_SWITCHED = "Job orders (d1dfe4260f6b4a9c8e7d6c5b4a392817) switched from state RUNNING to FAILING."
_JUL = "org.apache.flink.runtime.executiongraph.ExecutionGraph transitionState"


@pytest.mark.parametrize(
    ("header", "below", "level", "hour"),
    [
        (f"Nov 21, 2026 6:47:23 PM {_JUL}", f"WARNING: {_SWITCHED}", "WARN", 18),
        (f"Nov 21, 2026, 12:47:23\u202fAM {_JUL}", f"SEVERE: {_SWITCHED}", "ERROR", 0),
        ("2026-11-21 06:47:23,000 WARN  a.b.Graph:10", _SWITCHED, "WARN", 6),
        ("2026-11-21 06:47:23,000 WARN  a.b.Graph [] -", f"\t{_SWITCHED}", "WARN", 6),
    ],
    ids=["java.util.logging", "of a newer Java", "a layout that breaks the line", "and indents"],
)
def test_message_may_follow_on_the_line_after_its_header(
    tmp_path: Path, header: str, below: str, level: str, hour: int
) -> None:
    (event, after) = _events(tmp_path, [header, below, _FIRST, _FRAME, header, below])
    at = datetime(2026, 11, 21, hour, 47, 23, tzinfo=UTC)
    assert (event.logged_at, event.level, event.message) == (at, level, _SWITCHED)
    assert (event.line, event.continuation) == (2, f"{_FIRST}\n{_FRAME}")
    assert event.lifecycle is not None
    assert event.lifecycle.to_state == "FAILING"
    assert (after.line, after.continuation) == (6, None)


def test_trace_after_an_empty_message_is_not_the_message(tmp_path: Path) -> None:
    (event,) = _events(tmp_path, ["2026-11-21 06:47:23,000 WARN  a.b.C [] - ", _FIRST, _FRAME])
    assert (event.line, event.message, event.continuation) == (1, "", f"{_FIRST}\n{_FRAME}")


@pytest.mark.parametrize(
    ("prefix", "carrier", "second"),
    [
        ("2026-11-21T06:47:23.5Z stderr F ", "cri", 23.5),
        ("2026-11-21 08:47:23,250 [INFO] ", "stamped", 23.25),
    ],
)
def test_a_trace_without_a_header_has_the_time_of_its_transport(
    tmp_path: Path, prefix: str, carrier: str, second: float
) -> None:
    """A time without a time zone is read in the configured time zone."""
    lines = [f"{prefix}{line}" for line in (f'Exception in thread "main" {_FIRST}', _FRAME)]
    two_east = timezone(timedelta(hours=2))
    (event,) = _events(tmp_path, lines, carrier, two_east)
    at = datetime(2026, 11, 21, 6, 47, tzinfo=UTC) + timedelta(seconds=second)
    assert (event.logged_at, event.continuation) == (at, _FRAME)


def _events(
    folder: Path, lines: list[str], carrier: str = "none", zone: tzinfo = UTC
) -> tuple[Event, ...]:
    path = folder / "paste.txt"
    path.write_text("\n".join(lines) + "\n")
    profile = FileProfile(str(path), path.stat().st_size, carrier=carrier)
    scan = Scanner((), DEFAULT_SETTINGS).scan(ByteRange(profile, "d"), default_timezone=zone)
    return tuple(scan.events)


@pytest.mark.parametrize(
    ("name", "text", "kept"),
    [
        ("tm.out", "one\ntwo\nthree\n\n", [(3, "three")]),
        ("tm.err.1", "one\n\ntwo\nthree", [(4, "three")]),
        ("tm.log", "one\ntwo\nthree\n", []),
        ("tm.out", "\n\n", []),
        ("tm.out", "setup failed\none\n", [(1, "setup failed")]),
        ("tm.out", "one\nsetup failed\n", [(2, "setup failed")]),
    ],
    ids=["output", "rolled, no newline", "a log", "blank", "failure first", "failure last"],
)
def test_last_line_of_process_output_is_kept(
    tmp_path: Path, name: str, text: str, kept: list[tuple[int, str]]
):
    path = tmp_path / name
    path.write_text(text)
    profile = FileProfile(str(path), len(text))
    scan = Scanner((), DEFAULT_SETTINGS).scan(ByteRange(profile, "d"))
    assert [(event.line, event.message) for event in scan.events] == kept
