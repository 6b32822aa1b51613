"""The command on a terminal: progress, width, colour, and that a log does nothing to the screen."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from flink_triage.report.facts.sanitize import columns_of
from tests.unit.report import hostile

COMMAND = "import sys; from flink_triage.cli import main; sys.exit(main())"
PACKAGE = Path(__file__).parents[3] / "pipeline"
# What the program itself writes: colours on and off, and the carriage return of the progress line.
OWN_CODES = re.compile(r"\x1b\[(?:0|1|2|31|32|33|36|1;31)m")
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def on_a_terminal(*words: str, columns: int = 80, **environment: str) -> str:
    """All that the command writes to a terminal of its own, standard output and error alike."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    hidden = {"NO_COLOR", "COLUMNS", "LINES"}
    known = {key: value for key, value in os.environ.items() if key not in hidden}
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**known, "PYTHONPATH": str(PACKAGE), "TERM": "xterm-256color", **environment},
        close_fds=True,
    )
    os.close(theirs)
    written = b""
    while True:
        try:
            some = os.read(ours, 65_536)
        except OSError:  # Linux: the last writer has gone
            break
        if not some:
            break
        written += some
    os.close(ours)
    assert process.wait() == 0, written.decode(errors="replace")
    return written.decode("utf-8", errors="strict")


@pytest.fixture(scope="module")
def hostile_logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log whose every part attacks the screen, in a file and a folder that do too."""
    folder = tmp_path_factory.mktemp("logs") / "job\x1b]0;owned\x07\u202e"
    folder.mkdir()
    attacks = [text.replace("\n", " ") for text in hostile.STRINGS.values()]
    events = "".join(
        f"2026-11-21 05:00:{number % 60:02},000 ERROR org.apache.flink.X{text} [] - {text}\n"
        f"java.io.IOException: No space left on device {text}\n"
        f"\tat org.apache.flink.runtime.state.Y.write(Y.java:1)\n"
        f"Caused by: com.acme.Failure{number}: {text}\n"
        f"\tat com.acme.Z.z(Z.java:{number})\n"
        for number, text in enumerate(attacks)
    )
    log = folder / "task\x1b[2J\x1b[31mmanager\r.log"
    log.write_text(events, encoding="utf-8", errors="surrogatepass")
    return folder


@pytest.mark.parametrize("flags", [[], ["-v"]], ids=["short", "verbose"])
def test_no_escape_code_of_a_log_reaches_the_screen(hostile_logs: Path, flags: list[str]) -> None:
    shown = on_a_terminal("diagnose", str(hostile_logs), *flags)
    assert "Disk or storage volume is full" in shown
    assert OWN_CODES.search(shown), "a terminal gets colour"
    left = OWN_CODES.sub("", shown).replace("\r\n", "\n")
    progress, _, report = left.rpartition("\r")
    assert CONTROL.findall(report) == []
    assert CONTROL.findall(progress.replace("\r", "")) == []
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u2028\u2029\u200b]", report)


def test_a_report_is_no_wider_than_the_page(hostile_logs: Path) -> None:
    shown = on_a_terminal("diagnose", str(hostile_logs), "--quiet", "-v", NO_COLOR="1")
    assert "\x1b" not in shown
    # Options to paste stay on one line; a folded option would be none.
    wide = [line for line in shown.split("\r\n") if columns_of(line) > 80]
    assert [line for line in wide if not re.match(r" +(# choose a value: )?[\w.-]+: ", line)] == []


def test_a_report_is_as_wide_as_the_terminal_and_shows_whole_paths() -> None:
    logs = Path(__file__).parents[2] / "logs/checkpoint/tolerable-threshold-exceeded"
    words = ("diagnose", str(logs / "disk-full-1.16.0" / "logs"), "--quiet", "-v")
    narrow, wide = (
        on_a_terminal(*words, columns=columns, NO_COLOR="1").split("\r\n") for columns in (80, 200)
    )
    assert 120 < max(map(columns_of, wide)) <= 200
    assert len(wide) < len(narrow)
    assert any(re.search(r"(^| )/\S+/logs/\S+\.log:\d+( |$)", line) for line in wide)


def test_progress_says_stage_bytes_and_rate_and_goes_away() -> None:
    logs = Path(__file__).parents[2] / "logs" / "rocksdb"
    shown = on_a_terminal("diagnose", str(logs), "--format", "json", "--workers", "1")
    progress, _, data = shown.rpartition("\r{")
    assert re.search(r"\rscan +\d+ % +[\d.,]+ of [\d.,]+ MiB +[\d,]+ MiB/s", progress)
    assert re.search(r"\rdiagnose +([\d.,]+) of \1 MiB +[\d,]+ MiB/s", progress)
    assert re.search(r"\r {60}\Z", progress), "the line is wiped before the data"
    assert data.rstrip().endswith("}")


def test_quiet_shows_no_progress() -> None:
    logs = Path(__file__).parents[2] / "logs" / "healthy" / "orders-2.1.1" / "logs"
    assert "MiB/s" not in on_a_terminal("diagnose", str(logs), "--quiet")
