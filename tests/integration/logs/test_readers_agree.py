"""Compares the block reader with simpler readers, for random lines, blocks, and ranges."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flink_triage.logs.readers.scan import Scanner
from flink_triage.logs.routine import Separator, drop_routine, role_of
from flink_triage.model import ByteRange, Event, FileProfile, RangeScan
from flink_triage.settings import DEFAULT_SETTINGS, Settings

LITERALS = ("Bad table magic number", "Completed checkpoint", "a|b")

_TIMES = st.sampled_from(
    [
        "2026-11-21 06:47:23,468 ",
        "2026-11-21 06:47:59,999 ",
        "2026-11-21 06:48:00,000 ",
        "2026-11-21 06:47:60,001 ",
        "2026-99-21 06:47:23,468 ",
    ]
)
_AFTER = st.sampled_from(
    [
        "INFO  org.apache.flink.Foo [] - ready",
        "INFO  org.apache.flink.Foo [] - Completed checkpoint 4 for job x",
        "INFO  o.a.Foo [] - Completed checkpoint 7 for job caf54c11130659b87c41175d9fcdc6f0"
        " (1 bytes)",
        "DEBUG org.apache.flink.Foo [] - a|b",
        "TRACE org.apache.flink.Foo [] - " + "y" * 90,
        "WARN  org.apache.flink.Foo [] - password: hunter2secret",
        "ERROR org.apache.flink.Foo [] - \u00fcber",
        "INFORMATION is no level",
        "FATAL",
        "",
        "INFO",
        "INFO  o.a.f.Foo [] - a lease expired, which is no literal",
        "WARN  o.a.f.Foo [] -",
        "INFO  o.a.f.Foo [] - ",
        "WARN  o.a.f.Foo [] - \x1b[31mred\x1b[0m and \x00 nothing",
        "WARN  o.a.f.Foo [] - ends as on Windows\r",
        "UTC WARN  o.a.f.Foo [] - a zone behind the time",
        "  WARNING  o.a.f.Foo [] - further to the right",
        "SEVERE o.a.f.Foo [caf54c11130659b87c41175d9fcdc6f0] - of a job",
        "ERROR [{flink-job-id=caf54c11130659b87c41175d9fcdc6f0}] [main] o.a.f.Foo - other layout",
        "ERROR o.a.f.Foo [] - token=abcdefghijklmnop",
        "ERROR o.a.f.Foo [] - Authorization failed",
        "INFO  o.a.f.Foo [] - Map (2/4)#1 (a_b_1_1) switched from RUNNING to FAILED on x",
    ]
)
_ONE_JOB = "d1dfe426caf54c11130659b87c41175d"
_COMPLETED = st.sampled_from(
    [
        f"INFO  o.a.f.Foo [] - Completed checkpoint 7 for job {_ONE_JOB} (4711 bytes,"
        " checkpointDuration=12 ms, finalizationTime=3 ms).",
        f"INFO  o.a.f.Foo [] - Completed checkpoint 8 for job {_ONE_JOB} (9 bytes in 812 ms).",
        "INFO  o.a.f.Foo [] - Completed checkpoint 9 for job 0000000000000000000000000000000a"
        " (4711 bytes, checkpointDuration=12 ms, finalizationTime=3 ms).",
        f"INFO  o.a.f.Foo [] - Job orders ({_ONE_JOB}) switched from state RUNNING to RESTARTING.",
        "INFO  o.a.f.Foo [] - nothing of note",
    ]
)
_HEADERS = st.builds("{}{}".format, _TIMES, _AFTER).map(str.encode)
_CHECKPOINTS = st.builds("{}{}".format, _TIMES, _COMPLETED).map(str.encode)
_OTHERS = st.sampled_from(
    [
        b"",
        b"   ",
        b"a lease expired",
        b"\tCompleted checkpoint 7",
        b"\r",
        b"java.io.IOException: Bad table magic number: expected 1, found 2",
        b"\tat org.apache.flink.Foo.bar(Foo.java:12)",
        b"Caused by: java.lang.NullPointerException",
        b"2026-11-21 06:47:23,46",
        b"2026-11-21 06:47:23.468 INFO  x - y",
        b"\xff\xfe broken \x00 bytes",
        b"x" * 150,
        b"\xc2\xa0",
        b"\x1c",
        b"aws.secret.key = AKIAABCDEFGHIJKLMNOP",
    ]
)
_LINES = st.one_of(
    st.lists(st.one_of(_HEADERS, _OTHERS), max_size=30),
    st.lists(st.one_of(_CHECKPOINTS, _CHECKPOINTS, _CHECKPOINTS, _HEADERS), max_size=40),
)
_SMALL = Settings(max_event_bytes=200, max_line_bytes=120)


def _profile(path: Path, layout: str = "log4j2 <9999-99-99 99:99:99,999 > @24") -> FileProfile:
    return FileProfile(
        str(path), path.stat().st_size, layout=layout, layout_confidence=1.0, is_splittable=True
    )


def _scan(
    profile: FileProfile,
    limits: Settings,
    block_bytes: int | None,
    start: int = 0,
    end: int | None = None,
    is_active: bool = False,
) -> RangeScan:
    """Scans with both modes of the block reader or, without ``block_bytes``, with a simpler reader.

    This is the reference reader, or the line reader if the profile has no header shape.
    """
    byte_range = ByteRange(profile, "d", start, end)
    if block_bytes is None:
        slow = Scanner(LITERALS, limits, line_by_line=True)
        return slow.scan(byte_range, is_active=is_active)
    by_arrays, by_lists = (
        Scanner(LITERALS, limits, block_bytes=block_bytes, few_bytes=few_bytes)
        for few_bytes in (0, sys.maxsize)
    )
    found = by_arrays.scan(byte_range, is_active=is_active)
    assert by_lists.scan(byte_range, is_active=is_active) == found
    return found


_QUICKLY = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@_QUICKLY
@given(
    lines=_LINES,
    is_closed=st.booleans(),
    block_bytes=st.integers(1, 400),
    limits=st.sampled_from([_SMALL, DEFAULT_SETTINGS]),
    is_active=st.booleans(),
)
def test_block_reader_equals_line_reader(
    tmp_path: Path,
    lines: list[bytes],
    is_closed: bool,
    block_bytes: int,
    limits: Settings,
    is_active: bool,
) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"\n".join(lines) + (b"\n" if is_closed and lines else b""))
    profile = _profile(path)
    expected = _scan(profile, limits, None, is_active=is_active)
    assert _scan(profile, limits, block_bytes, is_active=is_active) == expected
    accounted = expected.event_bytes + expected.counted_bytes + expected.held_back_bytes
    assert accounted == path.stat().st_size


_JSON = 'json <{"@timestamp":"9999-99-99T99:99:99.999Z">'
_JSON_TIMES = st.sampled_from(["2026-11-21T06:47:23.468Z", "2026-11-21T06:48:00.000Z"])
_FIELDS = st.sampled_from(
    [
        {"log.level": "INFO", "message": "ready"},
        {"log.level": "info", "message": "Completed checkpoint 4 for job x"},
        {"level": "DEBUG", "message": "a|b", "thread_name": "main"},
        {"level": "INFO", "message": 'level": WARN'},
        {"level": "INFO", "logger_name": "a|b", "message": "ready"},
        {"level": "WARN", "message": "password: hunter2secret"},
        {"level": 30, "message": "a level as a number"},
        {"level": 50, "message": "a level as a number"},
        {"severity": "ERROR", "message": "über"},
        {"level": "INFO", "log.level": "WARN", "message": "two levels"},
        {"mdc": {"level": "INFO"}, "level": "ERROR", "message": "a level of others"},
        {"log": {"level": "INFO", "logger": "o.a.f.Foo"}, "message": "nested"},
        {"level": "INFO", "message": "first\nBad table magic number: expected 1, found 2"},
        {"level": "INFO", "message": "m", "stack_trace": "a.B: c\n\tat a.B.c(B.java:12)\n"},
        {"level": "INFO", "message": "m", "error": {"stack_trace": "a.B\n\tat a.B.c(B.java:1)"}},
        {"level": "INFO", "message": "m", "stack_trace": "", "error": None},
        {"level": "INFORMATION", "message": "another word"},
        {"message": "no level"},
        {"level": "ERROR"},
        {"level": "INFO"},
    ]
)
_JSON_RECORDS = st.builds(lambda at, fields: {"@timestamp": at, **fields}, _JSON_TIMES, _FIELDS)
_JSON_LINES = _JSON_RECORDS.map(lambda record: json.dumps(record, separators=(",", ":")).encode())


@_QUICKLY
@given(
    lines=st.lists(_JSON_LINES, min_size=1, max_size=30),
    others=st.lists(_OTHERS, max_size=3),
    block_bytes=st.integers(1, 900),
    limits=st.sampled_from([_SMALL, DEFAULT_SETTINGS]),
    is_active=st.booleans(),
)
def test_json_in_blocks_equals_json_line_by_line(
    tmp_path: Path,
    lines: list[bytes],
    others: list[bytes],
    block_bytes: int,
    limits: Settings,
    is_active: bool,
) -> None:
    path = tmp_path / "a.log"
    for at, other in enumerate(others):
        lines.insert(at * 3, other)
    path.write_bytes(b"\n".join(lines) + b"\n")
    profile = _profile(path, _JSON)
    expected = _scan(profile, limits, None, is_active=is_active)
    assert _scan(profile, limits, block_bytes, is_active=is_active) == expected


@_QUICKLY
@given(
    lines=st.lists(_JSON_LINES.filter(lambda line: b'"message"' in line), min_size=1, max_size=30),
    block_bytes=st.integers(1, 900),
)
def test_json_in_blocks_equals_the_general_reader(
    tmp_path: Path, lines: list[bytes], block_bytes: int
) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"\n".join(lines) + b"\n")
    general = _scan(_profile(path, "json"), DEFAULT_SETTINGS, None)
    found = _scan(_profile(path, _JSON), DEFAULT_SETTINGS, block_bytes)
    by_offset = {event.offset: event for event in found.events}
    for event in general.events:
        assert by_offset.pop(event.offset) == event
    # Only the block reader keeps an event because its logger contains a literal.
    assert all(event.logger == "a|b" for event in by_offset.values())
    assert _summed_volumes([found]) == _summed_volumes([general])


@pytest.mark.parametrize("is_active", [False, True])
def test_events_after_an_oversized_one_in_the_last_block_are_separated(
    tmp_path: Path, is_active: bool
) -> None:
    """The end of the oversized event is searched in separate blocks, up to the end of the file."""
    path = tmp_path / "a.log"
    header = b"2026-01-02 03:04:05,678 FATAL o.a.f.Foo [] - "
    for count in range(1, 6):
        behind = b"".join(header + b"%d\n" % number for number in range(count))
        path.write_bytes(header + b"x" * 400 + b"\n" + behind)
        profile = _profile(path)
        expected = _scan(profile, _SMALL, None, is_active=is_active)
        assert len(expected.events) == count + (not is_active)
        for block_bytes in range(1, 400):
            assert _scan(profile, _SMALL, block_bytes, is_active=is_active) == expected


@_QUICKLY
@given(lines=_LINES, cuts=st.lists(st.integers(1, 1500), max_size=4, unique=True))
def test_cuts_between_ranges_change_nothing(
    tmp_path: Path, lines: list[bytes], cuts: list[int]
) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"\n".join(lines) + b"\n")
    profile = _profile(path)
    whole = _scan(profile, DEFAULT_SETTINGS, None)
    bounds = [0, *sorted(cuts), None]
    parts = [
        _scan(profile, DEFAULT_SETTINGS, 64, start or 0, end) for start, end in pairwise(bounds)
    ]
    joined = _joined_events(parts)
    kept = drop_routine(joined, lambda event: role_of(event) or Separator(None))
    assert kept == list(whole.events)
    assert _summed_volumes(parts) == _summed_volumes([whole])
    assert sum(part.event_bytes + part.counted_bytes for part in parts) == path.stat().st_size


def _joined_events(parts: list[RangeScan]) -> list[Event]:
    """Returns the events of all parts with line numbers relative to the file."""
    events: list[Event] = []
    newlines = 0
    for part in parts:
        events += [replace(event, line=event.line + newlines) for event in part.events]
        newlines += part.newline_count
    return events


def _summed_volumes(
    parts: list[RangeScan],
) -> dict[tuple[str | None, datetime | None], tuple[int, ...]]:
    sums: dict[tuple[str | None, datetime | None], Counter[str]] = {}
    for part in parts:
        for volume in part.volumes:
            cell = sums.setdefault((volume.level, volume.minute), Counter())
            cell.update(lines=volume.line_count, bytes=volume.byte_count, events=volume.event_count)
    return {key: (cell["lines"], cell["bytes"], cell["events"]) for key, cell in sums.items()}


@pytest.mark.parametrize(
    ("layout", "line"),
    [
        pytest.param(
            "logback <[9999-99-99T99:99:99.999Z] > ]2",
            "[2026-11-21T06:54:27.012Z] [main-%d] INFO  org.apache.flink.Foo - message %d\n",
            id="level after the second bracket",
        ),
        pytest.param(
            "log4j1 <99/99/99 99:99:99 > @18",
            "26/11/21 06:40:%02d INFO taskexecutor.TaskManagerRunner: message %d\n",
            id="Log4j 1 with two-digit years",
        ),
        pytest.param(
            "house <9999-99-99 99:99:99.999 >",
            "2026-11-21 06:54:27.012 worker-%d INFO  org.apache.flink.Foo - message %d\n",
            id="no fixed anchor",
        ),
    ],
)
def test_other_shapes_agree_too(tmp_path: Path, layout: str, line: str) -> None:
    path = tmp_path / "a.log"
    text = "".join(line % (number % 60, number) for number in range(50))
    path.write_text(text + (line % (1, 1)).replace("INFO", "ERROR") + "\tat a.B.c(B.java:1)\n")
    profile = _profile(path, layout)
    expected = _scan(profile, DEFAULT_SETTINGS, None)
    assert [event.level for event in expected.events] == ["ERROR"]
    assert [volume.event_count for volume in expected.volumes] == [1, 50]
    for block_bytes in (1, 77, 1_000_000):
        assert _scan(profile, DEFAULT_SETTINGS, block_bytes) == expected


def test_level_at_the_anchor_overrides_the_layout(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("2026-11-21 06:54:27.012 [ERROR handler] INFO  org.apache.flink.Foo - m\n" * 3)
    profile = _profile(path, "logback <9999-99-99 99:99:99.999 > @25")
    expected = _scan(profile, DEFAULT_SETTINGS, None)
    assert [event.level for event in expected.events] == ["ERROR"] * 3
    assert _scan(profile, DEFAULT_SETTINGS, 64) == expected


def test_first_and_last_completed_checkpoint_of_a_minute_are_kept(
    tmp_path: Path,
) -> None:
    def completed(second: int, number: int, job: str = _ONE_JOB) -> str:
        return (
            f"2026-11-21 06:{47 + second // 60:02d}:{second % 60:02d},468 INFO  o.a.f.Foo [] - "
            f"Completed checkpoint {number} for job {job} (9 bytes in 812 ms).\n"
        )

    fault = "2026-11-21 06:47:35,000 ERROR o.a.f.Foo [] - Authorization failed\n"
    path = tmp_path / "a.log"
    path.write_text(
        "".join(completed(10 * n, n) for n in range(4))
        + fault
        + "".join(completed(36 + 10 * n, 10 + n) for n in range(9))
        + completed(130, 99, "0000000000000000000000000000000a")
    )
    scan = _scan(_profile(path), DEFAULT_SETTINGS, 1_000_000)
    kept = [e.lifecycle.checkpoint_id if e.lifecycle else None for e in scan.events]
    assert kept == [0, 3, None, 10, 12, 13, 18, 99]
    assert scan.event_bytes + scan.counted_bytes == path.stat().st_size
    assert scan.event_bytes == sum(event.size_bytes for event in scan.events)
