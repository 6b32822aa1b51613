"""Logs and tables on a local S3 server produce the same result as local files."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.storage import main
from flink_triage.logs.inputs.storage import StorageOptions, use_options
from tests.e2e.object_store import ACCESS, SECRET, Gate, Store, gate_before, served
from tests.e2e.places import ROOT, bare_environment, copy_logs, whole, whole_local

RECORDED = (
    "checkpoint/tolerable-threshold-exceeded/disk-full-1.16.0",
    "kafka/offset-commit-failed/broker-frozen-1.20.1",
    "rocksdb/bad-table-magic/flip-2.1.1",
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with served(tmp_path_factory.mktemp("store")) as found:
        yield found


@pytest.fixture
def reachable(store: Store) -> Iterator[Store]:
    """Makes the store accessible to the file systems of this process."""
    use_options(StorageOptions(store.options))
    yield store
    use_options(StorageOptions())


def upload(store: Store, local: Path, name: str) -> str:
    for path in sorted(local.rglob("*")):
        if path.is_file():
            store.put(path, f"logs/{name}/{path.relative_to(local)}")
    return f"s3a://logs/{name}"


def moved(result: dict[str, Any], local: Path, uri: str) -> dict[str, Any]:
    """Returns the result with local paths replaced by ``uri``."""
    text = json.dumps(result).replace(json.dumps(str(local))[1:-1], uri)
    return dict(json.loads(text))


# All runs share one JVM. Each line of input names an output file.
RUNS = """
import sys
from flink_triage.cli import main

for line in sys.stdin:
    print("ended with", main([*sys.argv[1:], "--output", line.strip()]), flush=True)
"""
# With the default retry settings, S3A retries for minutes.
IMPATIENT = {
    "fs.s3a.attempts.maximum": "1",
    "fs.s3a.retry.limit": "1",
    "fs.s3a.retry.throttle.limit": "1",
}


class Runner:
    """A process that runs the command repeatedly."""

    def __init__(self, store: Store, folder: Path, *words: str) -> None:
        self.said = folder / "stderr"
        conf = store.configure(folder / "conf", **IMPATIENT)
        with self.said.open("wb") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-c", RUNS, *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                env=bare_environment(SPARK_CONF_DIR=str(conf), PYTHONPATH=str(ROOT / "pipeline")),
            )

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()

    def run(self, output: Path) -> tuple[int, str]:
        """Returns the exit code and the new output on stderr."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        before = self.said.stat().st_size
        self.process.stdin.write(f"{output}\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("ended with "):
                return int(line.split()[-1]), self.said.read_text(encoding="utf-8")[before:]
        raise AssertionError(self.said.read_text(encoding="utf-8"))


@pytest.fixture
def gate(store: Store) -> Iterator[Gate]:
    with gate_before(store) as made:
        yield made


def test_logs_and_tables_in_s3_give_the_same_result_as_local_files(
    gate: Gate, tmp_path: Path
) -> None:
    """The same holds after rejected writes: each is reported on one line, and no data is lost."""
    local = copy_logs(tmp_path / "fleet", *RECORDED)
    uri = upload(gate.store, local, "fleet")
    expected = moved(whole_local(str(local)), local, uri)
    words = ["run", "--input", uri, "--warehouse", "s3a://tables/triage", "--format", "json"]
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    with Runner(gate.store, tmp_path, *words) as runner:
        code, said = runner.run(first)
        assert code == 0, said
        assert whole(json.loads(first.read_text(encoding="utf-8"))) == expected

        grown = next(local.rglob("*taskexecutor*.log"))
        line = "2026-01-01 00:00:00,000 WARN  org.apache.flink.Late [] - one more line\n"
        with grown.open("a", encoding="utf-8") as log:
            log.write(line)
        gate.store.put(grown, f"logs/fleet/{grown.relative_to(local)}")
        for gate.refused, words_of_error in (
            ((403, "AccessDenied"), "is not writable by this user"),
            ((503, "SlowDown"), "does not respond or throttles requests"),
        ):
            code, said = runner.run(second)
            assert (code, second.exists()) == (4, False), said
            assert words_of_error in the_line_of(said)
        gate.refused = None

        code, said = runner.run(second)
        assert code == 0, said
        assert "reading 1 ranges of 1 files" in said
    read = json.loads(second.read_text(encoding="utf-8"))["coverage"]["bytes"]
    assert read == expected["coverage"]["bytes"] + len(line)
    tables = gate.store.folder / "tables" / "triage"
    kept = [path.read_bytes() for path in tables.rglob("*") if path.is_file()]
    assert len(kept) > 20
    written = [*kept, *(path.read_bytes() for path in (first, second, runner.said))]
    assert not [data for data in written if SECRET.encode() in data or ACCESS.encode() in data]


def the_line_of(said: str) -> str:
    """Returns the only error line. The JVM prints nothing, but an interrupted Python worker may."""
    lines = said.splitlines()
    assert not [line for line in lines if line.startswith(("spark: ", "\tat "))], said
    (error,) = (line for line in lines if line.startswith("flink-triage: "))
    assert error.startswith("flink-triage: s3a://tables/triage: ")
    return error


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
    output = capsys.readouterr().out
    sizes = {line.split(": ")[1].split(",")[0] for line in output.split("\n") if "MiB/s" in line}
    assert len([line for line in output.split("\n") if "of the local rate" in line]) == 2
    assert len(sizes) == 1, "both sides read the same bytes, whole"
