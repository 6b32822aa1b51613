"""The number of processes and the distribution of deployments do not change the result."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

LOGS = Path(__file__).parents[1] / "logs" / "taskmanager"
# Runs in a separate process, like the command, because the test runner has threads.
PROGRAM = """
import json, sys
from flink_triage import local
from flink_triage.report import to_json
local._POOL_FROM_BYTES = 0
result = local.run_local([sys.argv[1]], local.Options(workers=int(sys.argv[2])))
print(json.dumps(to_json(result), default=str))
"""


def result_of(folder: Path, workers: int) -> dict[str, Any]:
    command = [sys.executable, "-c", PROGRAM, str(folder), str(workers)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    result.pop("run")
    return result


def test_process_pool_gives_the_same_result_as_one_process() -> None:
    """Two processes read whole deployments each. Twelve processes read ranges of all of them."""
    expected = result_of(LOGS, 1)
    assert len({incident["deployment"] for incident in expected["incidents"]}) > 4
    assert expected["stack_traces"]
    assert result_of(LOGS, 2) == expected
    assert result_of(LOGS, 12) == expected


def test_trace_text_comes_from_the_first_range_that_contains_it(tmp_path: Path) -> None:
    """A deployment cites a stack trace that another process read first."""
    logs = sorted(LOGS.rglob("*taskexecutor*.log"))
    source = next(log for log in logs if "Exception: " in log.read_text(encoding="utf-8"))
    for number in range(6):
        folder = tmp_path / f"orders-{number}"
        folder.mkdir()
        log = source.read_text(encoding="utf-8")
        log = log.replace("Exception: ", f"Exception: 1000{number} ")
        # File sizes increase: the pool starts with the last file.
        (folder / source.name).write_text(log + log * number, encoding="utf-8")
    result = result_of(tmp_path, 2)
    texts = [text for text in result["stack_traces"].values() if "Exception: 1000" in text]
    assert texts
    assert all("Exception: 10000 " in text for text in texts)


@pytest.mark.parametrize("workers", [1, 2])
def test_unreadable_deployment_has_no_verdict(tmp_path: Path, workers: int) -> None:
    for name in ("dump", "empty"):
        (tmp_path / name).mkdir()
    (tmp_path / "dump" / "heap.log").write_bytes(b"JAVA PROFILE 1.0.2\0" + bytes(64))
    (tmp_path / "empty" / "jobmanager.log").write_bytes(b"")
    result = result_of(tmp_path, workers)
    verdicts = {i["deployment"]: i["verdict"] for i in result["incidents"]}
    assert verdicts == {"empty": "no-logs"}
    assert [entry["path"] for entry in result["coverage"]["quarantined"]] == [
        str(tmp_path / "dump" / "heap.log")
    ]


# One of two processes ignores SIGTERM because it arrives before the process starts to work. This
# occurs if a process is terminated before it first runs, while a signal handler is set.
DEAF = """
import signal, sys, time
from pathlib import Path
signal.signal(signal.SIGTERM, lambda *_: None)
from flink_triage.local import Options, pack_of, pool
from flink_triage.local.tasks import SharedObjects

def start(pack, options):
    try:
        Path(sys.argv[1]).touch(exist_ok=False)
    except FileExistsError:
        time.sleep(2)
    return "shared"

def length(shared, text):
    return len(text)

options = Options()
shared = SharedObjects(pack_of(options), options)
pool.SharedObjects = start
with pool.mapper(shared, 2, is_remote=False) as over:
    print(sorted(over(length, ["a", "bb", "ccc"])), flush=True)
    if len(sys.argv) > 2:
        raise SystemExit(3)
"""


@pytest.mark.parametrize(("arguments", "code"), [([], 0), (["fail"], 3)])
def test_pool_ends_although_a_process_starts_late(
    tmp_path: Path, arguments: list[str], code: int
) -> None:
    command = [sys.executable, "-c", DEAF, str(tmp_path / "first"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.returncode) == ("[(0, 1), (1, 2), (2, 3)]\n", code), done.stderr
