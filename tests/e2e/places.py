"""Environments for the tests: cluster processes and servers on this machine, and their output."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import venv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
import pytest

from flink_triage.local import Options, run_local
from flink_triage.report import to_json

ROOT = Path(__file__).parents[2]
SPARK_HOME = Path(pyspark.__file__).parent
LOOPBACK = "127.0.0.1"
# Processes that start within seconds on an idle machine take much longer on a busy one.
PATIENCE_SECONDS = 240


def unavailable(reason: str) -> None:
    """Skips the test because a tool is missing, or fails it if the variable ``CI`` is set."""
    if os.environ.get("CI"):
        pytest.fail(f"required in CI: {reason}")
    pytest.skip(reason)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True, slots=True)
class Server:
    """A process with its child processes, and the log file that they write to."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def text(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        try:
            os.killpg(self.process.pid, how)
        except ProcessLookupError:
            return
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(20)

    def wait_for(self, words: str) -> None:
        wait_until(lambda: words in self.text, self, words)


def wait_until(is_there: Any, server: Server, what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_there():
        ended = server.process.poll()
        assert ended is None, f"ended with {ended} before {what!r}:\n{server.text}"
        assert time.monotonic() < deadline, f"no {what!r} in:\n{server.text}"
        time.sleep(0.05)


@contextmanager
def started(
    command: Sequence[str], log: Path, env: Mapping[str, str], cwd: Path | None = None
) -> Iterator[Server]:
    """Runs the command in its own process group until the block ends."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
        )
    server = Server(process, log)
    try:
        yield server
    finally:
        server.end()


def bare_environment(**more: str) -> dict[str, str]:
    """Returns the environment without PYTHONPATH and its settings for Spark, PySpark, and AWS."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK", "SPARK", "AWS_"))}
    kept.pop("PYTHONPATH", None)
    return kept | {"SPARK_LOCAL_IP": LOOPBACK, "SPARK_HOME": str(SPARK_HOME)} | more


def python_without_us(folder: Path) -> Path:
    """Creates a Python environment with all dependencies, including Spark, but not flink-triage.

    The site-packages directories of the tests are on its path. Paths that an editable installation
    adds to them are not.
    """
    venv.create(folder, with_pip=False, symlinks=True)
    site = next(folder.glob("lib/python*/site-packages"))
    ours = [path for path in sys.path if path.endswith("site-packages")]
    (site / "dependencies.pth").write_text("\n".join(ours) + "\n", encoding="utf-8")
    python = folder / "bin" / "python"
    found = subprocess.run(
        [str(python), "-c", "import pyspark, hyperscan, flink_triage.model"],
        env=bare_environment(),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "No module named 'flink_triage" in found.stderr, found.stderr
    return python


def build_wheel(folder: Path) -> Path:
    """Builds a wheel from this checkout."""
    done = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return next(folder.glob("flink_triage-*.whl"))


def copy_logs(target: Path, *names: str) -> Path:
    """Copies recorded logs to ``target``, one deployment per name, with old modification times."""
    for name in names:
        shutil.copytree(
            ROOT / "tests/logs" / name / "logs", target / name, copy_function=shutil.copyfile
        )
    for path in target.rglob("*"):
        os.utime(path, (1.7e9, 1.7e9))
    return target


def whole(result: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a result without the field ``run``, which differs between runs."""
    return {key: value for key, value in result.items() if key != "run"}


def whole_local(*inputs: str, options: Options | None = None) -> dict[str, Any]:
    """Returns the result of the local runner in the JSON format."""
    return whole(json.loads(json.dumps(to_json(run_local(list(inputs), options or Options())))))
