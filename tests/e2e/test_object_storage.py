"""Logs and tables in S3: a real server on this machine, and the whole result of local files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from benchmarks.storage import main
from flink_triage.logs.storage import StorageOptions, use_options
from tests.e2e.places import (
    LOOPBACK,
    bare_environment,
    copy_logs,
    free_port,
    started,
    unavailable,
    wait_until,
    whole,
    whole_local,
)

ACCESS, SECRET = "flinktriageaccess", "n0t-to-be-seen-anywhere"
RECORDED = (
    "checkpoint/tolerable-threshold-exceeded/disk-full-1.16.0",
    "kafka/offset-commit-failed/broker-frozen-1.20.1",
    "rocksdb/bad-table-magic/flip-2.1.1",
)


@dataclass(frozen=True, slots=True)
class Store:
    """An S3 server; ``folder`` is where it keeps its buckets, each object a file."""

    endpoint: str
    folder: Path

    @property
    def options(self) -> dict[str, str]:
        return {
            "fs.s3a.endpoint": self.endpoint,
            "fs.s3a.endpoint.region": "us-east-1",
            "fs.s3a.access.key": ACCESS,
            "fs.s3a.secret.key": SECRET,
        }

    def client(self) -> fs.S3FileSystem:
        return fs.S3FileSystem(
            access_key=ACCESS,
            secret_key=SECRET,
            endpoint_override=self.endpoint.removeprefix("http://"),
            scheme="http",
            region="us-east-1",
            allow_bucket_creation=True,
        )

    def put(self, local: Path, key: str) -> None:
        """Upload; last written to long ago, as the local file."""
        with self.client().open_output_stream(key) as out:
            out.write(local.read_bytes())
        os.utime(self.folder / key, (1.7e9, 1.7e9))


def server_program() -> str:
    at = shutil.which("versitygw")
    if at is None and shutil.which("go"):
        home = subprocess.run(["go", "env", "GOPATH"], capture_output=True, text=True, check=True)
        at = shutil.which("versitygw", path=str(Path(home.stdout.strip()) / "bin"))
    if at is None:
        unavailable("versitygw: go install github.com/versity/versitygw/cmd/versitygw@v1.8.0")
    return str(at)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    folder = tmp_path_factory.mktemp("store")
    port = free_port()
    (folder / "buckets").mkdir()
    command = [server_program(), "--port", f"{LOOPBACK}:{port}", "posix", str(folder / "buckets")]
    env = bare_environment(ROOT_ACCESS_KEY=ACCESS, ROOT_SECRET_KEY=SECRET)
    with started(command, folder / "server.log", env, cwd=folder) as server:
        found = Store(f"http://{LOOPBACK}:{port}", folder / "buckets")

        def answers() -> bool:
            try:
                for bucket in ("logs", "tables"):
                    found.client().create_dir(bucket)
            except OSError:
                return False
            return True

        wait_until(answers, server, "an answer")
        yield found


@pytest.fixture
def reachable(store: Store) -> Iterator[Store]:
    """The store as this process's own file systems reach it."""
    use_options(StorageOptions(store.options))
    yield store
    use_options(StorageOptions())


def upload(store: Store, local: Path, name: str) -> str:
    for path in sorted(local.rglob("*")):
        if path.is_file():
            store.put(path, f"logs/{name}/{path.relative_to(local)}")
    return f"s3a://logs/{name}"


def moved(result: dict[str, Any], local: Path, uri: str) -> dict[str, Any]:
    """The same result for files that lie behind ``uri``."""
    text = json.dumps(result).replace(json.dumps(str(local))[1:-1], uri)
    return dict(json.loads(text))


def command(store: Store, tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command, with a Spark whose own configuration says how the store is reached."""
    conf = tmp_path / "conf"
    conf.mkdir(exist_ok=True)
    settings = store.options | {"fs.s3a.path.style.access": "true"}
    lines = [f"spark.hadoop.{name} {value}\n" for name, value in settings.items()]
    (conf / "spark-defaults.conf").write_text("".join(lines), encoding="utf-8")
    call = [sys.executable, "-c", "import sys; from flink_triage.cli import main; sys.exit(main())"]
    env = bare_environment(SPARK_CONF_DIR=str(conf))
    return subprocess.run(
        [*call, *words], capture_output=True, text=True, env=env, timeout=1500, check=False
    )


def test_logs_and_tables_in_s3_say_what_local_files_say(store: Store, tmp_path: Path) -> None:
    local = copy_logs(tmp_path / "fleet", *RECORDED)
    uri = upload(store, local, "fleet")
    words = ["run", "--input", uri, "--warehouse", "s3a://tables/triage", "--format", "json"]
    first = command(store, tmp_path, *words, "--verbose")
    assert first.returncode == 0, first.stderr
    expected = moved(whole_local(str(local)), local, uri)
    assert whole(json.loads(first.stdout)) == expected
    grown = next(local.rglob("*taskexecutor*.log"))
    line = "2026-01-01 00:00:00,000 WARN  org.apache.flink.Late [] - one more line\n"
    with grown.open("a", encoding="utf-8") as log:
        log.write(line)
    store.put(grown, f"logs/fleet/{grown.relative_to(local)}")
    second = command(store, tmp_path, *words)
    assert second.returncode == 0, second.stderr
    assert "reading 1 ranges of 1 files" in second.stderr
    read = json.loads(second.stdout)["coverage"]["bytes"]
    assert read == expected["coverage"]["bytes"] + len(line)
    tables = store.folder / "tables" / "triage"
    kept = [path.read_bytes() for path in tables.rglob("*") if path.is_file()]
    said = [text.encode() for done in (first, second) for text in (done.stdout, done.stderr)]
    assert len(kept) > 20
    assert not [data for data in kept + said if SECRET.encode() in data or ACCESS.encode() in data]


def test_one_process_reads_s3_as_it_reads_files(reachable: Store, tmp_path: Path) -> None:
    local = copy_logs(tmp_path / "quick", *RECORDED)
    uri = upload(reachable, local, "quick")
    assert whole_local(uri) == moved(whole_local(str(local)), local, uri)
    one = next(local.rglob("*.log"))
    alone = f"{uri}/{one.relative_to(local)}"
    assert whole_local(alone)["incidents"] == moved(whole_local(str(one)), local, uri)["incidents"]


def test_the_benchmark_prints_both_rates(
    reachable: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    local = copy_logs(tmp_path / "rates", RECORDED[0])
    uri = upload(reachable, local, "rates")
    assert main(["--local", str(local), "--uri", uri, "--turns", "1"]) == 0
    said = capsys.readouterr().out
    sizes = {line.split(": ")[1].split(",")[0] for line in said.split("\n") if "MiB/s" in line}
    assert len([line for line in said.split("\n") if "of the local rate" in line]) == 2
    assert len(sizes) == 1, "both sides read the same bytes, whole"
