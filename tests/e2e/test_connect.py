"""Tests Spark Connect with a server from the PySpark wheel and a client without Java."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from flink_triage.spark.runtime.jars import ensure_jars
from flink_triage.spark.runtime.session import session_options
from tests.e2e.places import (
    LOOPBACK,
    ROOT,
    SPARK_HOME,
    bare_environment,
    build_wheel,
    copy_logs,
    free_port,
    python_without_us,
    started,
    whole,
    whole_local,
)

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
RECORDED = (
    "checkpoint/tolerable-threshold-exceeded/disk-full-1.16.0",
    "healthy/orders-2.1.1",
    "kafka/offset-commit-failed/broker-frozen-1.20.1",
    "operator/user-code-exception/npe-1.16.0",
    "rocksdb/bad-table-magic/flip-2.1.1",
)


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Starts a server whose workers receive the wheel as an archive."""
    folder = tmp_path_factory.mktemp("connect")
    archive = folder / "flink_triage.zip"
    shutil.copyfile(build_wheel(folder / "wheel"), archive)
    python = str(python_without_us(folder / "python"))
    port = free_port()
    settings = session_options(ensure_jars(), verbose=True, size_bytes=0) | {
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.connect.grpc.binding.port": str(port),
        "spark.pyspark.python": python,
    }
    conf = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    submit = str(SPARK_HOME / "bin" / "spark-submit")
    command = [submit, "--master", "local[2]", "--class", SERVER, *conf, "spark-internal"]
    home = folder / "home"
    home.mkdir()
    env = bare_environment(PYTHONPATH=str(archive), PYSPARK_PYTHON=python)
    with started(command, folder / "server.log", env, cwd=home) as server:
        server.wait_for("Spark Connect server started")
        yield f"sc://{LOOPBACK}:{port}"


COMMAND = "import sys; from flink_triage.cli import main; sys.exit(main())"
# Prints the number of events, and the number of events found in only one of the two readings.
BOTH_READINGS = """
import sys
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from flink_triage import read_table
from flink_triage.spark.source import SCHEMA, register

remote, logs, warehouse = sys.argv[1:]
spark = SparkSession.builder.remote(remote).getOrCreate()
register(spark)
row = F.to_json(F.struct(*SCHEMA.names)).alias("row")
loaded = spark.read.format("flink_logs").load(logs).select(row)
stored = read_table(spark, warehouse, "events").select(row)
print(loaded.count(), loaded.exceptAll(stored).count(), stored.exceptAll(loaded).count())
"""


def client(*arguments: str, script: str = COMMAND) -> subprocess.CompletedProcess[str]:
    """Runs the command, or another script, in an environment without Java."""
    package = str(ROOT / "pipeline")
    env = bare_environment(PATH="/nowhere", JAVA_HOME="/nowhere", PYTHONPATH=package)
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        env=env,
        timeout=1200,
        check=False,
    )


def test_remote_run_gives_the_same_result_as_a_local_run(remote: str, tmp_path: Path) -> None:
    logs = copy_logs(tmp_path / "logs", *RECORDED)
    words = ["--remote", remote, "--input", str(logs), "--warehouse", str(tmp_path / "warehouse")]
    done = client("run", *words, "--format", "json")
    assert done.returncode == 0, done.stderr
    expected = whole_local(str(logs))
    assert whole(json.loads(done.stdout)) == expected
    again = client("run", *words, "--format", "json")
    assert "nothing new in" in again.stderr
    assert json.loads(again.stdout) == json.loads(done.stdout)
    read = client(remote, str(logs), str(tmp_path / "warehouse"), script=BOTH_READINGS)
    count, only_loaded, only_stored = map(int, read.stdout.split() or (0, 0, 0))
    assert count > 100, read.stderr
    assert (only_loaded, only_stored) == (0, 0)


def test_missing_server_is_reported_in_one_line(tmp_path: Path) -> None:
    address = f"sc://{LOOPBACK}:{free_port()}"
    words = ["--remote", address, "--warehouse", str(tmp_path)]
    failed = client("report", *words)
    assert failed.returncode == 4, failed.stderr
    assert f"{address}: no Spark Connect server answers" in failed.stderr
