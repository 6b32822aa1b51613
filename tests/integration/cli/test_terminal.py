"""Tests the command in a terminal: progress, width, and color. Log content cannot control it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path

import pytest

from flink_triage.report.facts.sanitize import columns_of
from tests.unit.report import hostile

COMMAND = "import sys; from flink_triage.cli import main; sys.exit(main())"
PACKAGE = Path(__file__).parents[3] / "pipeline"
# The color codes that the program prints.
OWN_CODES = re.compile(r"\x1b\[(?:0|1|2|31|32|33|36|1;31)m")
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def run_on_a_terminal(
    argv: Sequence[str], columns: int = 80, folder: Path | None = None, **environment: str
) -> tuple[int, str]:
    """Returns the exit code and everything written to the terminal on stdout and stderr."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    hidden = {"NO_COLOR", "COLUMNS", "LINES"}
    known = {key: value for key, value in os.environ.items() if key not in hidden}
    process = subprocess.Popen(
        argv,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**known, "PYTHONPATH": str(PACKAGE), "TERM": "xterm-256color", **environment},
        close_fds=True,
        cwd=folder,
    )
    os.close(theirs)
    written = b""
    while True:
        try:
            some = os.read(ours, 65_536)
        except OSError:  # Linux: all writers have closed the terminal
            break
        if not some:
            break
        written += some
    os.close(ours)
    return process.wait(), written.decode("utf-8", errors="strict")


def on_a_terminal(*words: str, columns: int = 80, **environment: str) -> str:
    argv = [sys.executable, "-c", COMMAND, *words]
    code, written = run_on_a_terminal(argv, columns, **environment)
    assert code == 0, written
    return written


@pytest.fixture(scope="module")
def hostile_logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Writes a log with hostile loggers, messages, and exceptions, and hostile file names."""
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
    assert "Disk, volume or quota is full" in shown
    assert OWN_CODES.search(shown), "a terminal gets colour"
    left = OWN_CODES.sub("", shown).replace("\r\n", "\n")
    progress, _, report = left.rpartition("\r")
    assert CONTROL.findall(report) == []
    assert CONTROL.findall(progress.replace("\r", "")) == []
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u2028\u2029\u200b]", report)


def test_report_fits_the_width_of_a_page(hostile_logs: Path) -> None:
    shown = on_a_terminal("diagnose", str(hostile_logs), "--quiet", "-v", NO_COLOR="1")
    assert "\x1b" not in shown
    # Options to copy stay on one line, because a wrapped option would be invalid.
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


def test_progress_shows_stage_bytes_and_rate_and_is_erased() -> None:
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


# Shell commands, the expected exit code, and part of the expected output.
TRIED = {
    "a pipe": ("cat tm.log | T diagnose -", 0, "Disk, volume or quota is full"),
    "standard input by its path": ("T diagnose /dev/stdin < tm.log", 0, "volume or quota is full"),
    "a substituted process": ("T diagnose <(cat tm.log)", 0, "Disk, volume or quota is full"),
    "a FIFO as output": (
        "mkfifo pipe; cat pipe & T diagnose tm.log --quiet --output pipe; wait; test -p pipe",
        0,
        "Disk, volume or quota is full",
    ),
    "a link as output": (
        "touch report; ln -s report link; T diagnose tm.log --quiet --report link.html "
        "--output link && test -L link && cat report",
        0,
        "Disk, volume or quota is full",
    ),
    "a device as output": ("T diagnose tm.log --output /dev/null && test -c /dev/null", 0, ""),
    "only binary data": ("head -c 3000 /dev/urandom > core.log; T diagnose core.log", 2, "binary"),
    "a full disk": ("T diagnose tm.log --format json > /dev/full", 4, "No space left on device"),
    "one bad signature": (
        "mkdir -p own/a; echo 'title: [' > own/a/bad.yaml; T diagnose tm.log --signatures own",
        0,
        "own/a/bad.yaml",
    ),
}


@pytest.mark.parametrize(("script", "code", "words"), TRIED.values(), ids=TRIED.keys())
def test_commands_that_users_tried_at_a_prompt(
    tmp_path: Path, script: str, code: int, words: str
) -> None:
    (tmp_path / "tm.log").write_text(
        "2026-11-21 05:00:00,000 ERROR org.apache.flink.Task [] - failed\n"
        "java.io.IOException: No space left on device\n"
        "\tat org.apache.flink.core.fs.LocalStream.write(LocalStream.java:53)\n"
    )
    command = f'T() {{ {shlex.join([sys.executable, "-c", COMMAND])} "$@"; }}; {script}'
    found, shown = run_on_a_terminal(["bash", "-c", command], 200, tmp_path)
    assert (found, "Traceback" in shown) == (code, False), shown
    assert words in OWN_CODES.sub("", shown)
