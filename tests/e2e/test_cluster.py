"""Tests a run on a standalone cluster with two workers, one of which is killed while it reads."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from flink_triage.spark.runtime.jars import ensure_jars
from flink_triage.spark.runtime.session import ONE_COLLECTOR, session_options
from tests.e2e.places import (
    LOOPBACK,
    ROOT,
    SPARK_HOME,
    Server,
    bare_environment,
    build_wheel,
    copy_logs,
    free_port,
    python_without_us,
    started,
    unavailable,
    wait_until,
    whole,
    whole_local,
)

WORDS = "org.apache.spark.deploy"
COPIES = 3
RECORDED = (
    "checkpoint/tolerable-threshold-exceeded/disk-full-1.16.0",
    "kafka/offset-commit-failed/broker-frozen-1.20.1",
    "operator/user-code-exception/npe-1.16.0",
    "rocksdb/bad-table-magic/flip-2.1.1",
)


def hiding(folder: Path) -> list[str]:
    """Returns a command prefix that makes ``folder`` appear empty, as on another machine."""
    for flags in (["--mount"], ["--mount", "--map-root-user"]):
        command = ["unshare", *flags, "sh", "-c", f'mount -t tmpfs none "{folder}" && exec "$@"']
        if (
            shutil.which("unshare")
            and not subprocess.run(
                [*command, "sh", "true"], capture_output=True, check=False
            ).returncode
        ):
            return [*command, "sh"]
    unavailable("unshare with mount namespaces, to hide the driver's folder from the workers")
    return []


class Cluster:
    def __init__(self, url: str, workers: list[Server], python: Path) -> None:
        self.url = url
        self.workers = workers
        self.python = python


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Starts a cluster whose workers can access neither the driver's folder nor this package."""
    python = python_without_us(tmp_path / "python")
    driver = tmp_path / "driver"
    driver.mkdir()
    port = free_port()
    url = f"spark://{LOOPBACK}:{port}"
    env = bare_environment(
        SPARK_NO_DAEMONIZE="1", SPARK_DAEMON_MEMORY="256m", SPARK_DAEMON_JAVA_OPTS=ONE_COLLECTOR
    )
    spark_class = str(SPARK_HOME / "bin" / "spark-class")
    at = ["--host", LOOPBACK, "--webui-port", "0"]
    with ExitStack() as stack:
        master = stack.enter_context(
            started(
                [spark_class, f"{WORDS}.master.Master", *at, "--port", str(port)],
                tmp_path / "master.log",
                env,
            )
        )
        master.wait_for("I have been elected leader")
        workers = []
        for name in ("one", "two"):
            home = tmp_path / name
            home.mkdir()
            command = [*hiding(driver), spark_class, f"{WORDS}.worker.Worker", *at]
            command += ["--cores", "1", "--memory", "1g", "--work-dir", str(home), url]
            log = tmp_path / f"{name}.log"
            workers.append(stack.enter_context(started(command, log, env, cwd=home)))
        for worker in workers:
            worker.wait_for("Successfully registered with master")
        yield Cluster(url, workers, python)


def submit_command(cluster: Cluster, archive: Path, *arguments: str) -> list[str]:
    settings = session_options(ensure_jars(), verbose=True, size_bytes=0) | {
        "spark.pyspark.python": str(cluster.python),
        "spark.driver.host": LOOPBACK,
        "spark.driver.memory": "1g",
        "spark.executor.memory": "700m",
        "spark.executor.extraJavaOptions": ONE_COLLECTOR,
    }
    conf = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    submit = str(SPARK_HOME / "bin" / "spark-submit")
    job = str(ROOT / "jobs" / "triage.py")
    return [submit, "--master", cluster.url, "--py-files", str(archive), *conf, job, *arguments]


def test_a_worker_that_dies_while_it_reads_changes_nothing(
    cluster: Cluster, tmp_path: Path
) -> None:
    """The wheel is shipped to the workers, and the result is the same as in a local run."""
    logs = tmp_path / "logs"
    for number in range(COPIES):
        copy_logs(logs / f"cluster-{number:02}", *RECORDED)
    home = tmp_path / "driver" / "home"
    home.mkdir()
    archive = home / "flink_triage.zip"
    shutil.copyfile(build_wheel(tmp_path / "wheel"), archive)
    warehouse, output = tmp_path / "warehouse", home / "result.json"
    words = ["run", "--input", str(logs), "--warehouse", str(warehouse)]
    words += ["--format", "json", "--output", str(output)]
    env = bare_environment(PYSPARK_DRIVER_PYTHON=str(cluster.python))
    first, second = cluster.workers
    command = submit_command(cluster, archive, *words)
    with started(command, tmp_path / "submit.log", env, cwd=home) as submitted:
        # A file that a task has started to write.
        begun = "_state/batches/batch=*/kind=*/*.parquet"
        wait_until(lambda: list(warehouse.glob(begun)), submitted, "rows of a task")
        first.end(signal.SIGKILL)
        assert submitted.process.poll() is None, "it was over before the worker died"
        submitted.process.wait(300)
    assert submitted.process.returncode == 0, submitted.text
    assert "Lost executor" in submitted.text
    assert second.process.poll() is None
    assert whole(json.loads(output.read_text(encoding="utf-8"))) == whole_local(str(logs))
