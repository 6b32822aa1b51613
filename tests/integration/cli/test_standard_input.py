"""Tests logs from pipes and outputs that are not regular files."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from flink_triage.cli.standard_input import piped_inputs
from flink_triage.errors import UsageError

LOG = Path(__file__).parents[2] / "logs/operator/user-code-exception/npe-1.16.0/logs"
JOBMANAGER = max(LOG.glob("*.log"), key=lambda path: path.stat().st_size)


def diagnose(*words: str, given: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "flink_triage", "diagnose", *words, "--format", "json"]
    return subprocess.run(command, input=given, capture_output=True, check=False)


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_log_is_read_from_standard_input(name: str) -> None:
    done = diagnose(name, given=JOBMANAGER.read_bytes())
    (incident,) = json.loads(done.stdout)["incidents"]
    assert incident["deployment"] == "stdin"
    assert incident["diagnoses"][0]["signature"] == "operator/user-code-exception"
    kept = Path(incident["first_fault"]["path"])
    assert (kept.name, kept.exists()) == ("stdin.log", False)


def test_an_endless_pipe_ends_at_a_limit() -> None:
    reader, writer = os.pipe()
    feeder = threading.Thread(target=_feed, args=(writer,))
    feeder.start()
    with (
        os.fdopen(reader, "rb"),
        pytest.raises(UsageError, match=r"larger than the allowed 2000000 bytes"),
        piped_inputs([f"/proc/self/fd/{reader}"], 2_000_000),
    ):
        raise AssertionError("the pipe was read to its end")
    feeder.join()


def _feed(writer: int) -> None:
    with contextlib.suppress(BrokenPipeError), os.fdopen(writer, "wb", buffering=0) as stream:
        while True:
            stream.write(b"x" * 65_536)


def test_a_named_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(JOBMANAGER.read_bytes(),))
    writer.start()
    done = diagnose(str(pipe))
    writer.join()
    assert json.loads(done.stdout)["incidents"][0]["verdict"] == "diagnosed"


def test_an_output_that_is_a_link_or_a_pipe_is_written_through(tmp_path: Path) -> None:
    target, link, pipe = (tmp_path / name for name in ("target", "link", "pipe"))
    target.write_text("before")
    link.symlink_to(target)
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    done = diagnose(str(LOG), "--output", str(link), "--report", str(pipe))
    reader.join()
    assert done.returncode == 0, done.stderr
    assert link.is_symlink()
    assert json.loads(target.read_text())["incidents"]
    assert read[0].startswith("<!doctype html")
    assert pipe.is_fifo()


def test_full_disk_behind_standard_output_is_reported_in_one_line() -> None:
    command = [sys.executable, "-m", "flink_triage", "diagnose", str(LOG), "--format", "json"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 4
    error = done.stderr.decode()
    assert error == "flink-triage: cannot write to standard output: No space left on device\n"
