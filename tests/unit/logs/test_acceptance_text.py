"""Logs with invalid bytes, unusual text, or a broken structure are read."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from flink_triage.cli.main import main
from flink_triage.local import Options, scan_inputs
from flink_triage.logs.detect.profile import probe
from flink_triage.logs.inputs.files import list_inputs
from flink_triage.logs.layouts.headers import parse_header
from flink_triage.logs.readers.scan import Scanner
from flink_triage.model import ByteRange, Event, RangeScan
from flink_triage.settings import DEFAULT_SETTINGS, Settings
from flink_triage.traces import extract

_INFO = "2026-11-21 06:47:23,468 INFO  org.apache.flink.Foo [] - fine"
_ERROR = "2026-11-21 06:48:23,468 ERROR org.apache.flink.Foo [] - it failed"
_ROOT = "java.io.IOException: No space left on device"
_FRAME = "\tat org.apache.flink.Foo.bar(Foo.java:12)"
_TRACE = f"{_ROOT}\n{_FRAME}"
_LOG = f"{_INFO}\n{_INFO}\n{_INFO}\n{_ERROR}\n{_TRACE}\n"


def _scan(path: Path, limits: Settings = DEFAULT_SETTINGS) -> RangeScan:
    profile = probe(list_inputs([str(path)]).files[0], limits)
    scan = Scanner((), limits).scan(ByteRange(profile, "d"))
    assert scan.event_bytes + scan.counted_bytes + scan.quarantined_bytes == path.stat().st_size
    return scan


def _read(data: bytes | str, tmp_path: Path, limits: Settings = DEFAULT_SETTINGS) -> RangeScan:
    path = tmp_path / "a.log"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return _scan(path, limits)


def _roots(scan: RangeScan) -> list[tuple[str, str] | None]:
    """Returns the type and message of the root cause of each event."""
    found: list[tuple[str, str] | None] = []
    for event in scan.events:
        _, trace = extract(event.message, event.continuation)
        found.append((trace.root_cause.type, trace.root_cause.message) if trace else None)
    return found


_EXPECTED = [("java.io.IOException", "No space left on device")]

# --- C: bytes and text -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "errors"),
    [
        pytest.param(_LOG.replace("failed", "f\xe4iled").encode("latin-1"), 1, id="Latin-1"),
        pytest.param(_LOG.encode().replace(b"failed", b"f\xc3iled"), 1, id="half a character"),
        pytest.param(_LOG.encode().replace(b"failed", b"f\xed\xa0\xbdd"), 3, id="a surrogate"),
        pytest.param(_LOG.encode().replace(b"failed", b"f\xf0\x9f\x92\xa9"), 0, id="four bytes"),
        pytest.param(_LOG.replace("failed", "f\ufffd").encode(), 0, id="a replacement character"),
    ],
)
def test_invalid_utf8_is_replaced_and_counted(data: bytes, errors: int, tmp_path: Path) -> None:
    scan = _read(data, tmp_path)
    assert (_roots(scan), scan.decode_errors) == (_EXPECTED, errors)
    assert data[scan.events[0].offset :].startswith(b"2026-11-21 06:48:23")


def test_lone_surrogates_of_json_never_leave_the_reader(tmp_path: Path) -> None:
    line = '{"level":"ERROR","@timestamp":"2026-11-21T06:48:23Z","message":"x \\ud83d y"}\n'
    (event,) = _read(line * 1, tmp_path).events
    assert event.message == "x \ufffd y"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\xef\xbb\xbf" + _LOG.encode(), id="at the start"),
        pytest.param(b"\xef\xbb\xbf" + f"{_INFO}\n".encode() * 3 + b"\xef\xbb\xbf" + _LOG.encode(),
                     id="between two files"),
    ],
)  # fmt: skip
def test_byte_order_marks_hide_no_header(data: bytes, tmp_path: Path) -> None:
    scan = _read(data, tmp_path)
    assert _roots(scan) == _EXPECTED
    assert sum(v.event_count for v in scan.volumes) == data.count(b" - ")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_powershell_encodings_are_read(encoding: str, tmp_path: Path) -> None:
    scan = _read(_LOG.replace("\n", "\r\n").encode(encoding), tmp_path)
    assert _roots(scan) == _EXPECTED


@pytest.mark.parametrize(
    "character",
    ["\r", "\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e"],
    ids=lambda c: f"U+{ord(c):04X}",
)
def test_only_a_newline_ends_a_line(character: str, tmp_path: Path) -> None:
    scan = _read(_LOG.replace("it failed", f"it{character}failed"), tmp_path)
    assert _roots(scan) == _EXPECTED
    assert sum(v.line_count for v in scan.volumes) == 6


def test_line_ends_may_be_mixed(tmp_path: Path) -> None:
    scan = _read(_LOG.replace("\n", "\r\n", 3), tmp_path)
    assert (_roots(scan), sum(v.event_count for v in scan.volumes)) == (_EXPECTED, 4)


@pytest.mark.parametrize("count", [1, 100, 10_000])
def test_runs_of_nul_are_shown_and_collapsed(count: int, tmp_path: Path) -> None:
    scan = _read(_LOG.replace("it failed", "it failed" + "\0" * count), tmp_path)
    assert _roots(scan) == _EXPECTED
    assert "\0" not in scan.events[0].message
    assert len(scan.events[0].message) < 200


@pytest.mark.parametrize("end", ["", "\n"], ids=["no final newline", "a final newline"])
def test_the_last_line_counts(end: str, tmp_path: Path) -> None:
    assert _roots(_read(_LOG.rstrip("\n") + end, tmp_path)) == _EXPECTED


@pytest.mark.parametrize("where", ["message", "a line of its own", "before all else"])
def test_overlong_line_is_truncated_and_counted(where: str, tmp_path: Path) -> None:
    long = "x" * 5_000_000
    text = {
        "message": _LOG.replace("it failed", f"it failed {long}"),
        "a line of its own": _LOG.replace(_FRAME, f"{_FRAME}\n{long}"),
        "before all else": f"{long}\n{_LOG}",
    }[where]
    scan = _read(text, tmp_path, Settings(max_line_bytes=10_000, max_event_bytes=50_000))
    assert all(len(e.message) + len(e.continuation or "") < 70_000 for e in scan.events)
    assert _EXPECTED[0] in _roots(scan)
    if where != "before all else":
        assert scan.truncated == 1


@pytest.mark.parametrize(
    "escape",
    [
        "\x1b[31m", "\x1b[0;1;38;5;196m", "\x1b[2K", "\x1b[1A", "\x1b]8;;http://x\x07",
        "\x1b]52;c;aGk=\x07", "\x1b]0;title\x1b\\", "\x1bM",
    ],
    ids=repr,
)  # fmt: skip
def test_terminal_escape_codes_are_removed(escape: str, tmp_path: Path) -> None:
    text = _LOG.replace("ERROR", f"{escape}ERROR").replace("it failed", f"it{escape} failed")
    scan = _read(text, tmp_path)
    assert (_roots(scan), scan.events[0].message) == (_EXPECTED, "it failed")


@pytest.mark.parametrize(
    "trick",
    ["\u202e", "\u2066", "\u200b", "\u0430", "a" * 10_000, "Z\u0351\u036b" * 500],
    ids=ascii,
)
def test_bidirectional_and_control_characters_do_not_reach_a_terminal(
    trick: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.log").write_text(_LOG.replace("on device", f"on {trick} device \x1b[2J\x9b31m"))
    assert main(["diagnose", str(tmp_path), "--quiet"]) == 0
    shown = capsys.readouterr().out
    assert not set(shown) & {"\u202e", "\u2066", "\x9b"}
    assert "\x1b" not in shown


# --- D: the structure of a log -----------------------------------------------------------------


def test_a_file_may_begin_inside_a_trace(tmp_path: Path) -> None:
    text = f"{_FRAME}\nCaused by: {_TRACE}\n" + f"{_INFO}\n" * 3 + f"{_ERROR}\n{_TRACE}\n"
    scan = _read(text, tmp_path)
    assert _roots(scan) == _EXPECTED * 2
    assert scan.events[0].logged_at is None


@pytest.mark.parametrize("cut", range(1, 40))
def test_a_file_may_end_inside_a_trace(cut: int, tmp_path: Path) -> None:
    scan = _read(_LOG[:-cut], tmp_path)
    assert _roots(scan) == _EXPECTED


def test_a_deep_stack_keeps_head_and_tail(tmp_path: Path) -> None:
    frames = "".join(f"\tat com.acme.Deep.down(Deep.java:{n})\n" for n in range(50_000))
    text = f"{_LOG}{_ERROR}\njava.lang.StackOverflowError\n{frames}Caused by: {_TRACE}\n{_INFO}\n"
    scan = _read(text, tmp_path, Settings(max_event_bytes=64 * 1024))
    assert (_roots(scan), scan.truncated) == (_EXPECTED * 2, 1)
    assert "bytes left out" in (scan.events[1].continuation or "")


def test_a_chain_of_fifty_causes_has_one_root(tmp_path: Path) -> None:
    causes = "".join(f"Caused by: java.lang.RuntimeException: {n}\n{_FRAME}\n" for n in range(50))
    scan = _read(f"{_LOG}{_ERROR}\njava.lang.Exception: x\n{causes}Caused by: {_TRACE}\n", tmp_path)
    assert _roots(scan) == _EXPECTED * 2


@pytest.mark.parametrize(
    "message",
    [
        pytest.param("first\n\nsecond", id="a blank line"),
        pytest.param("look at this\nat home (again)", id="a line that begins with at"),
        pytest.param("x\nCaused by something\ny", id="a line that begins with Caused by"),
        pytest.param("x\n{\n\"a\": 1\n}", id="JSON"),
        pytest.param("x\n- 2026\n* y", id="a list"),
    ],
)  # fmt: skip
def test_a_message_of_several_lines_stays_one(message: str, tmp_path: Path) -> None:
    text = f"{_INFO}\n" * 4 + f"{_ERROR}\njava.io.IOException: {message}\n{_FRAME}\n{_INFO}\n"
    assert _roots(_read(text, tmp_path)) == [("java.io.IOException", message)]


def test_interleaved_streams_of_one_file_are_separated(tmp_path: Path) -> None:
    """The lines of two pods alternate, and each stack trace is complete."""
    other = _LOG.replace("No space left on device", "Connection refused")
    pairs = zip(_LOG.split("\n")[:-1], other.split("\n")[:-1], strict=True)
    text = "".join(f"[pod/a/main] {x}\n[pod/b/main] {y}\n" for x, y in pairs)
    assert sorted(_roots(_read(text, tmp_path)), key=repr) == [
        ("java.io.IOException", "Connection refused"),
        *_EXPECTED,
    ]


def test_a_broken_json_line_is_kept_as_text(tmp_path: Path) -> None:
    good = {"@timestamp": "2026-11-21T06:48:23Z", "log.level": "ERROR", "message": "it failed",
            "error.stack_trace": _TRACE}  # fmt: skip
    lines = [json.dumps(good), '{"@timestamp":"2026-11-21T06:48:23Z","mess', json.dumps(good)]
    scan = _read("\n".join(lines) + "\n", tmp_path)
    assert [root for root in _roots(scan) if root] == _EXPECTED * 2
    assert sum(v.line_count for v in scan.volumes) == 3


_NINE = datetime(2026, 11, 21, 6, 48, 23, 468000, tzinfo=UTC)
_WHOLE = _NINE.replace(microsecond=0)


def test_a_header_without_a_level_has_time_thread_and_logger() -> None:
    header = parse_header("2026-11-21 06:48:23,468 [main] o.a.f.Foo - m")
    assert header is not None
    assert (header.logged_at, header.level, header.thread, header.logger, header.message) == (
        _NINE,
        None,
        "main",
        "o.a.f.Foo",
        "m",
    )


@pytest.mark.parametrize(
    "line",
    [
        "2026-11-21 06:48:23,468 [main] started - m",
        "2026-11-21 06:48:23,468 o.a.f.Foo - m",
        "2026-11-21 06:48:23,468 nine days later - m",
        "[main] o.a.f.Foo - m",
    ],
)
def test_line_with_too_few_parts_is_not_a_header(line: str) -> None:
    assert parse_header(line) is None


@pytest.mark.parametrize(
    ("line", "at", "level", "message"),
    [
        ("2026-11-21 06:48:23 ERROR o.a.Foo - m", _WHOLE, "ERROR", "m"),
        ("2026-11-21 06:48:23.468 ERROR o.a.Foo - m", _NINE, "ERROR", "m"),
        ("2026-11-21T06:48:23,468 ERROR [main] o.a.Foo - m", _NINE, "ERROR", "m"),
        ("2026-11-21T06:48:23.468Z ERROR o.a.Foo [main] m", _NINE, "ERROR", "m"),
        ("2026-11-21T14:48:23.468+08:00 ERROR o.a.Foo - m", _NINE, "ERROR", "m"),
        ("2026-11-21 14:48:23.468 +0800 [main] ERROR o.a.Foo - m", _NINE, "ERROR", "m"),
        ("2026-11-21T06:48:23.468123456Z ERROR o.a.Foo - m",
         _NINE.replace(microsecond=468123), "ERROR", "m"),
        ("1795243703468 ERROR o.a.Foo - m", _NINE, "ERROR", "m"),
        ("1795243703.468 ERROR o.a.Foo - m", _NINE, "ERROR", "m"),
        ("26/11/21 06:48:23 ERROR taskmanager.Foo: m", _WHOLE, "ERROR", "m"),
        ("21 Nov 2026 06:48:23,468 ERROR [main] o.a.Foo - m", _NINE, "ERROR", "m"),
        ("21/Nov/2026:06:48:23 +0000 ERROR o.a.Foo - m", _WHOLE, "ERROR", "m"),
        ("Nov 21, 2026 06:48:23 ERROR o.a.Foo - m", _WHOLE, "ERROR", "m"),
        ("21.11.2026 06:48:23.468 [main] ERROR o.a.Foo - m", _NINE, "ERROR", "m"),
        ("21-11-2026 14:48:23,468+08:00 ERROR o.a.Foo - m", _NINE, "ERROR", "m"),
        ("11/21/2026 06:48:23,468 ERROR o.a.Foo - m", _NINE, "ERROR", "m"),
        ("21/11/2026 06:48:23,468 ERROR o.a.Foo - m", _NINE, "ERROR", "m"),
        ("31.02.2026 06:48:23,468 ERROR o.a.Foo - m", None, "ERROR", "m"),
        ("20261121 064823.468 ERROR o.a.Foo - m", _NINE, "ERROR", "m"),
        ("ERROR 2026-11-21 06:48:23,468 o.a.Foo - m", _NINE, "ERROR", "m"),
        ("ERROR o.a.flink.Foo - m", None, "ERROR", "m"),
        ("[ERROR] 2026-11-21 06:48:23,468 [main] o.a.Foo - m", _NINE, "ERROR", "m"),
        ("06:48:23.468 [main] ERROR o.a.Foo - m", None, "ERROR", "m"),
        ("2026-11-21 06:48:23,468 ERROR - m", _NINE, "ERROR", "m"),
        ("2026-11-21 06:48:23,468 WARNING o.a.Foo - m", _NINE, "WARN", "m"),
        ("2026-11-21 06:48:23,468|ERROR|main|o.a.Foo|m", _NINE, "ERROR", "m"),
        ("2026/11/21 06:48:23.468 ERROR o.a.Foo - m", _NINE, "ERROR", "m"),
        ("2026-11-21 06:48:60,468 ERROR o.a.Foo - m",
         _NINE.replace(second=59), "ERROR", "m"),
        ("2026-02-30 06:48:23,468 ERROR o.a.Foo - m", None, "ERROR", "m"),
        ("9999-12-31 23:59:59,999 ERROR o.a.Foo - m", None, "ERROR", "m"),
        ("0000-00-00 00:00:00,000 ERROR o.a.Foo - m", None, "ERROR", "m"),
    ],
)  # fmt: skip
def test_headers_of_custom_layouts(
    line: str, at: datetime | None, level: str, message: str
) -> None:
    header = parse_header(line)
    assert header is not None
    assert (header.logged_at, header.level, header.message) == (at, level, message)


def test_log_without_times_has_events_without_times(tmp_path: Path) -> None:
    text = "".join(f"{line.partition(',468 ')[2] or line}\n" for line in _LOG.split("\n")[:-1])
    scan = _read(text, tmp_path)
    assert _roots(scan) == _EXPECTED
    assert [event.logged_at for event in scan.events] == [None]


def test_backward_clock_does_not_reorder_events_of_a_file(tmp_path: Path) -> None:
    text = f"{_INFO}\n" * 3 + f"{_ERROR}\n{_TRACE}\n{_ERROR.replace('06:48', '05:48')}\n{_TRACE}\n"
    scan = _read(text, tmp_path)
    assert [e.logged_at.hour for e in scan.events if e.logged_at] == [6, 5]


def test_a_header_forged_inside_a_message_is_its_own_event_with_its_place(tmp_path: Path) -> None:
    forged = _LOG.replace("it failed", f"user said: x\n{_ERROR.replace('it failed', 'forged')}")
    events: tuple[Event, ...] = _read(forged, tmp_path).events
    assert [(e.line, e.message) for e in events] == [(4, "user said: x"), (5, "forged")]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("gc.log", "[2026-11-21T06:48:23.468+0000][info][gc] GC(0) Pause Young 24M->8M\n" * 9),
        ("gc8.log", "2026-11-21T06:48:23.468+0000: 0.5: [GC (System.gc()) 1K->2K(3K)]\n" * 9),
        ("flink.out", "1> (hello,1)\n2> (world,2)\n" * 9),
        ("hs_err_pid1.log", "#\n# A fatal error has been detected by the Java Runtime\n#\n" * 3),
        ("threads.txt", '"main" #1 prio=5 os_prio=0 tid=0x00007f nid=0x1 runnable\n'
         "   java.lang.Thread.State: RUNNABLE\n\tat java.lang.Object.wait(Native Method)\n" * 3),
        ("prose.md.txt", "# Title\n\nWe read logs; nothing failed here.\n" * 3),
    ],
)  # fmt: skip
def test_other_files_beside_logs_match_no_signature(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    scanned = scan_inputs([str(tmp_path)], Options(), lambda done, total: None)
    assert [m for r in scanned.results for o in r.observations for m in o.matches] == []
    read = sum(r.scan.event_bytes + r.scan.counted_bytes for r in scanned.results)
    assert read == len(text)


@pytest.mark.parametrize("form", ["json", "jsonl", "html"])
def test_report_of_the_tool_is_not_a_log(form: str, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.log").write_text(_LOG)
    arguments = ["diagnose", str(tmp_path), "--quiet", "--format", form]
    before = scan_inputs([str(tmp_path)], Options(), lambda done, total: None)
    assert main([*arguments, "--output", str(tmp_path / "logs" / f"r.{form}")]) == 0
    after = scan_inputs([str(tmp_path)], Options(), lambda done, total: None)
    counts = [sum(t.count for r in s.results for t in r.traces) for s in (before, after)]
    assert counts == [1, 1]


def test_information_is_matched_like_an_error(tmp_path: Path) -> None:
    text = (
        f"{_INFO}\n" * 4 + f"{_INFO.replace('fine', 'x switched to FAILED.')}\n{_TRACE}\n{_INFO}\n"
    )
    assert _roots(_read(text, tmp_path)) == _EXPECTED
