"""Runs the job with `spark-submit` in a separate process, from log files to a report."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyspark

from flink_triage.spark.runtime.jars import ensure_jars
from flink_triage.spark.runtime.session import session_options
from tests.e2e.places import whole, whole_local

ROOT = Path(__file__).parents[2]


def submit(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs spark-submit and returns the finished process. Its stdout may contain stderr output."""
    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", "local[2]"]
    for key, value in session_options(ensure_jars(), verbose=False, size_bytes=0).items():
        command += ["--conf", f"{key}={value}"]
    environment = os.environ | {
        "PYTHONPATH": str(ROOT / "pipeline"),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    return subprocess.run(
        [*command, str(ROOT / "jobs" / "triage.py"), *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=900,
        check=False,
    )


def test_submitted_run_gives_the_same_result_as_a_local_diagnosis(tmp_path: Path) -> None:
    logs = tmp_path / "orders"
    recorded = ROOT / "tests/logs/operator/user-code-exception/npe-1.16.0/logs"
    shutil.copytree(recorded, logs, copy_function=shutil.copyfile)
    for path in logs.rglob("*"):
        os.utime(path, (1.7e9, 1.7e9))
    output = tmp_path / "run.json"
    warehouse = f"--warehouse={tmp_path / 'warehouse'}"
    done = submit("run", f"--input={logs}", warehouse, "--format=json", f"--output={output}")
    assert done.returncode == 0, done.stderr
    assert whole(json.loads(output.read_text(encoding="utf-8"))) == whole_local(str(logs))


def test_a_job_ends_with_the_code_of_its_error(tmp_path: Path) -> None:
    failed = submit("run", "--input=/nowhere", f"--warehouse={tmp_path}")
    assert failed.returncode == 2
    assert "'/nowhere' does not exist" in failed.stdout
