"""Tests Ctrl-C at different times after the start of the command."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[3] / "pipeline"
# Starts like the installed script, and prints "ready" when the first import begins.
SCRIPT = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
import sys
class Ready:
    def find_spec(self, name, *_):
        if name == "flink_triage.cli":
            print("ready", flush=True)
sys.meta_path.insert(0, Ready())
from flink_triage.__main__ import main
sys.exit(main())
"""
EVENT = (
    "2026-11-21 05:{:02}:{:02},000 ERROR org.apache.flink.Task [] - failed {}\n"
    "java.io.IOException: No space left on device\n"
    "\tat org.apache.flink.core.fs.LocalStream.write(LocalStream.java:53)\n"
)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Writes files that a process pool takes longer to read than the test waits."""
    folder = tmp_path_factory.mktemp("logs")
    for name in "abcd":
        (folder / name).mkdir()
        text = "".join(EVENT.format(n // 60 % 60, n % 60, f"{name}{n:x}") for n in range(60_000))
        (folder / name / "taskmanager.log").write_text(text)
    return folder


def interrupted(words: list[str], seconds: float, presses: int) -> tuple[int, str]:
    """Returns the exit code and the terminal output after ``ready``."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        start_new_session=True,
        preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)),
    )
    os.close(theirs)
    shown = b""
    while b"ready" not in shown:
        shown += os.read(ours, 4096)
    time.sleep(seconds)
    for _ in range(presses):
        os.write(ours, b"\x03")
        time.sleep(0.02)
    while True:
        try:
            shown += os.read(ours, 65_536)
        except OSError:  # all writers have closed the terminal
            break
    os.close(ours)
    code = process.wait(timeout=60)
    return 128 - code if code < 0 else code, shown.decode().partition("ready")[2]


@pytest.mark.parametrize("seconds", [0, 0.05, 0.2, 0.4, 0.8, 1.6])
@pytest.mark.parametrize("presses", [1, 3])
def test_ctrl_c_is_130_without_a_traceback(logs: Path, seconds: float, presses: int) -> None:
    code, shown = interrupted(["diagnose", str(logs), "--workers", "2"], seconds, presses)
    assert code == 130, shown
    assert "Traceback" not in shown
    assert "Error" not in shown
    assert "Exception" not in shown


IN_A_FINALIZER = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from flink_triage.__main__ import main
import flink_triage.cli.commands as commands
class Finalized:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
def wait(arguments):
    import time
    Finalized()
    time.sleep(30)
commands.doctor = wait
sys.argv = ["flink-triage", "doctor"]
sys.exit(main())
"""


def test_ctrl_c_inside_a_finalizer_is_not_lost() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", IN_A_FINALIZER],
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (130, "")


def test_the_signal_is_ignored_where_the_shell_ignores_it() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "flink_triage", "signatures", "list"],
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        stdout=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 0
