"""Runs the checks of `doctor --worker` in this process."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from flink_triage.cli.worker_checks import _cause, diagnose_demo, first_file, read_head
from flink_triage.errors import UsageError


def test_the_first_file_of_a_folder_is_read(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    log = tmp_path / "a" / "b" / "jobmanager.log"
    log.write_bytes(b"x" * 100_000)
    assert first_file(str(tmp_path)) == first_file(str(log)) == str(log)
    assert read_head(str(log)) == f"read 65,536 bytes of {log}"


def test_a_folder_without_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match="expected a URI, a log file, or a folder that contains a log file"
    ):
        first_file(str(tmp_path))


def test_the_demo_logs_are_diagnosed() -> None:
    assert "rocksdb/bad-table-magic" in diagnose_demo()


def test_held_memory_is_resident_and_a_shortage_ends_the_process() -> None:
    """Runs in a separate process whose address space is limited."""
    code = (
        "import resource, sys; from flink_triage.cli.worker_checks import hold_memory;"
        "limit = int(sys.argv[1]) << 20; resource.setrlimit(resource.RLIMIT_AS, (limit, limit));"
        "hold_memory(600 << 20); print(open('/proc/self/status').read())"
    )
    enough = subprocess.run([sys.executable, "-c", code, "4000"], capture_output=True, text=True)
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", enough.stdout)
    assert int(peak) >= 590 << 10
    little = subprocess.run([sys.executable, "-c", code, "600"], capture_output=True, text=True)
    assert "MemoryError" in little.stderr


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        pytest.param(
            "An exception was thrown from the Python worker:\nTraceback (most recent call last):\n"
            "  File \"worker.py\", line 1\nModuleNotFoundError: No module named 'flink_triage'\n",
            "ModuleNotFoundError: No module named 'flink_triage'",
            id="a traceback",
        ),
        pytest.param(
            "[UDF_PYSPARK_USER_CODE_ERROR.MEMORY_LIMIT_SERVERLESS] Function exceeded the limit\nat",
            "[UDF_PYSPARK_USER_CODE_ERROR.MEMORY_LIMIT_SERVERLESS] Function exceeded the limit",
            id="a memory limit of the platform",
        ),
        pytest.param("", "the worker ended without a message", id="no message"),
    ],
)
def test_the_cause_is_one_line(message: str, cause: str) -> None:
    assert _cause(message) == cause
