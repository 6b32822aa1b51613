"""Real logs, changed in ways that must, or must not, change the answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from flink_triage.local import Options, run_local
from flink_triage.model import Incident

LOGS = Path(__file__).resolve().parents[1] / "logs"
FULL_DISK = "checkpoint/tolerable-threshold-exceeded/disk-full-1.16.0"
READ_ONLY = "checkpoint/tolerable-threshold-exceeded/read-only-1.16.0"
EXPIRED = "checkpoint/tolerable-threshold-exceeded/expired-1.16.0"
NPE = "operator/user-code-exception/npe-1.16.0"
BAD_MAGIC = "rocksdb/bad-table-magic/flip-1.16.0"
Change = Callable[[str], str]


def copy(deployment: str, folder: Path, change: Change = lambda text: text) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for source in sorted((LOGS / deployment / "logs").glob("*.log")):
        folder.joinpath(source.name).write_text(change(source.read_text()))
    return folder


def leading(folder: Path) -> Incident:
    return run_local([str(folder)], Options()).incidents[0]


def signatures(incident: Incident) -> list[str]:
    return [d.signature for d in incident.diagnoses]


def events_without(words: str) -> Change:
    """Take out every event that holds ``words``, as a log level or a rotation would."""

    def change(text: str) -> str:
        events = re.split(r"(?m)^(?=\d{4}-\d\d-\d\d )", text)
        return "".join(event for event in events if words not in event)

    return change


def rename(text: str) -> str:
    for old, new in (
        ("com.acme.orders", "io.widgets.billing"),
        ("Tier Enricher", "Price Lookup"),
        ("Customer Totals", "Invoice Sums"),
        ("orders-totals", "billing job (v2)"),
        ("localhost", "tm-7.prod.example"),
        ("/var/lib/flink", "/srv/data"),
        ("-vm.log", "-node.log"),
    ):
        text = text.replace(old, new)
    return re.sub(r"\b[0-9a-f]{32}", lambda m: m[0][::-1], text)


def shifted(seconds: int) -> Change:
    def move(match: re.Match[str]) -> str:
        at = datetime.strptime(match[0], "%Y-%m-%d %H:%M:%S") + timedelta(seconds=seconds)
        return f"{at:%Y-%m-%d %H:%M:%S}"

    return lambda text: re.sub(r"(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", move, text)


@pytest.mark.parametrize("deployment", [FULL_DISK, READ_ONLY, EXPIRED, NPE, BAD_MAGIC])
def test_other_names_and_ids_give_the_same_ranking(deployment, tmp_path):
    plain = leading(copy(deployment, tmp_path / "plain"))
    renamed = leading(copy(deployment, tmp_path / "renamed", rename))
    assert signatures(renamed) == signatures(plain)
    assert renamed.restarts == plain.restarts


@pytest.mark.parametrize("seconds", [-30, 30])
@pytest.mark.parametrize("deployment", [FULL_DISK, BAD_MAGIC])
def test_a_taskmanager_whose_clock_is_off_gives_the_same_answer(deployment, seconds, tmp_path):
    folder = copy(deployment, tmp_path / "d")
    for log in folder.glob("*taskexecutor*"):
        log.write_text(shifted(seconds)(log.read_text()))
    assert signatures(leading(folder))[0] == signatures(leading(LOGS / deployment / "logs"))[0]


def test_names_and_order_of_files_do_not_matter(tmp_path):
    folder = copy(BAD_MAGIC, tmp_path / "d")
    for number, log in enumerate(sorted(folder.iterdir(), reverse=True)):
        log.rename(folder / f"{number}.txt")
    assert signatures(leading(folder)) == signatures(leading(LOGS / BAD_MAGIC / "logs"))


def test_without_the_cause_the_symptom_stands_first_and_says_what_is_missing(tmp_path):
    incident = leading(copy(FULL_DISK, tmp_path / "d", events_without("No space left on device")))
    assert incident.diagnoses[0].signature == "checkpoint/tolerable-threshold-exceeded"
    assert incident.diagnoses[0].role == "symptom"
    assert incident.diagnoses[0].confidence < 0.9
    assert incident.missing_evidence


def test_two_jobs_on_one_cluster_come_out_as_when_alone(tmp_path):
    alone = {
        deployment: signatures(leading(LOGS / deployment / "logs"))[0]
        for deployment in (FULL_DISK, NPE)
    }
    both = tmp_path / "both"
    copy(FULL_DISK, both)
    other = copy(NPE, tmp_path / "other", rename)
    for log in other.iterdir():
        log.rename(both / f"second-{log.name}")
    incidents = run_local([str(both)], Options()).incidents
    first = {i.job_id: signatures(i)[0] for i in reversed(incidents) if i.diagnoses}
    assert sorted(first.values()) == sorted(alone.values())


DENIED = ("(Read-only file system)", "(Permission denied)")
CORRUPT = (
    "java.io.IOException: No space left on device",
    "org.rocksdb.RocksDBException: block checksum mismatch: stored = 395426827, computed ="
    " 21345761  in /tmp/db/000032.sst offset 0 size 2085",
)


@pytest.mark.parametrize(
    ("deployment", "words", "cause"),
    [
        pytest.param(EXPIRED, ("", ""), "checkpoint/expired", id="expired under backpressure"),
        pytest.param(FULL_DISK, ("", ""), "disk/full", id="disk full"),
        pytest.param(READ_ONLY, ("", ""), "checkpoint/storage-not-writable", id="read-only"),
        pytest.param(READ_ONLY, DENIED, "checkpoint/storage-permission-denied", id="denied"),
        pytest.param(FULL_DISK, CORRUPT, "rocksdb/sst-block-checksum-mismatch", id="RocksDB"),
    ],
)
def test_the_threshold_is_told_apart_by_what_exceeded_it(deployment, words, cause, tmp_path):
    incident = leading(copy(deployment, tmp_path / "d", lambda text: text.replace(*words)))
    assert incident.diagnoses[0].signature == cause
    assert "checkpoint/tolerable-threshold-exceeded" in incident.diagnoses[0].explains
