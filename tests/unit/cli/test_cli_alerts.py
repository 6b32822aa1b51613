"""Tests the options for alerts and incident settling, and exit by signal."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from flink_triage.cli.main import build_parser, main

RUN = ["run", "--input", ".", "--warehouse", "nowhere"]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--alert", "slack"], "--alert slack: FLINK_TRIAGE_SLACK_URL is not set"),
        (["--dry-run"], "--dry-run prints the alerts of --alert"),
        (["--settle", "-1"], "--settle: got -1, allowed: seconds, at least 0"),
    ],
)
def test_invalid_alert_flags_are_refused_before_anything_starts(
    flags: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FLINK_TRIAGE_SLACK_URL", raising=False)
    assert main([*RUN, *flags]) == 2
    assert words in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_without_the_flag_ten_seconds_are_settled() -> None:
    assert build_parser().parse_args(RUN).settle == 10


# Shells start background processes with SIGINT ignored, and the tests inherit this.
WAITING = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from flink_triage.cli.main import main
def wait(arguments):
    import time
    print("waiting", flush=True)
    time.sleep(60)
module_main = sys.modules["flink_triage.cli.main"]
module_main.commands.doctor = wait
sys.exit(main(["doctor"]))
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_command_without_a_traceback(number: signal.Signals, code: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (code, "")
