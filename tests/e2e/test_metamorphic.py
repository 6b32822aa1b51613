"""Modified real logs, and the effect of each modification on the diagnosis."""

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
LOST = "taskmanager/heartbeat-timeout/frozen-1.16.0"
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
    """Removes every event that contains ``words``."""

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


def test_symptom_without_its_cause_ranks_first_with_missing_evidence(tmp_path):
    incident = leading(copy(FULL_DISK, tmp_path / "d", events_without("No space left on device")))
    assert incident.diagnoses[0].signature == "checkpoint/tolerable-threshold-exceeded"
    assert incident.diagnoses[0].role == "symptom"
    assert incident.diagnoses[0].confidence < 0.9
    assert "TaskManager" in incident.missing_evidence[0]
    assert "2026-11-21 05:52:20 UTC" in incident.missing_evidence[0]
    possible = {other.signature: other.look_for for other in incident.other_causes}
    assert "No space left on device" in possible["disk/full"]


def test_missing_evidence_names_the_log_of_a_lost_taskmanager(tmp_path):
    name = "localhost:35087-a3f512"
    incident = leading(LOGS / LOST / "logs")
    assert f"The inputs contain the log of TaskManager {name}," in incident.missing_evidence[0]
    assert incident.blast_radius is not None
    assert incident.blast_radius.taskmanagers == (name,)
    folder = copy(LOST, tmp_path / "d")
    (own,) = (log for log in folder.iterdir() if f"ResourceID: {name}" in log.read_text())
    own.unlink()
    incident = leading(folder)
    assert f"TaskManager {name} up to 2026-11-21 06:21:57" in incident.missing_evidence[0]


def events_of(log: Path) -> list[str]:
    return re.split(r"(?m)^(?=\d{4}-\d\d-\d\d )", log.read_text())[1:]


def repeat_a_turn_of_the_loop(folder: Path, times: int) -> None:
    """Repeats the events between the first and the second restart ``times`` more times."""
    logs = {log: events_of(log) for log in folder.iterdir()}
    restarts = [e[:19] for of in logs.values() for e in of if " to RESTARTING" in e.split("\n")[0]]
    first, second = sorted(restarts)[:2]
    turn = datetime.fromisoformat(second) - datetime.fromisoformat(first)
    for log, events in logs.items():
        inside = "".join(e for e in events if first < e[:19] <= second)
        after = "".join(e for e in events if e[:19] > second)
        with log.open("w") as out:
            out.write("".join(e for e in events if e[:19] <= second))
            for number in range(1, times + 1):
                out.write(shifted(number * int(turn.total_seconds()))(inside))
            out.write(shifted(times * int(turn.total_seconds()))(after))


@pytest.mark.parametrize("deployment", [FULL_DISK, BAD_MAGIC])
def test_a_thousand_turns_of_the_loop_leave_the_ranking(deployment, tmp_path):
    plain = leading(copy(deployment, tmp_path / "plain"))
    folder = copy(deployment, tmp_path / "looped")
    repeat_a_turn_of_the_loop(folder, 1000)
    looped = leading(folder)
    assert signatures(looped)[0] == signatures(plain)[0]
    assert set(signatures(looped)) == set(signatures(plain))
    assert looped.restarts == plain.restarts + 1000
    assert looped.diagnoses[0].occurrences > 1000


def essence(incident: Incident) -> tuple[object, ...]:
    return (
        incident.verdict,
        incident.outcome,
        incident.restarts,
        incident.last_healthy and incident.last_healthy.checkpoint_id,
        [(d.signature, d.occurrences, d.explains) for d in incident.diagnoses],
    )


def test_two_jobs_that_fail_at_one_time_on_one_cluster_come_out_as_when_alone(tmp_path):
    """Both jobs fail within the same seconds and log to the same files."""
    first = copy(FULL_DISK, tmp_path / "first")
    second = copy(NPE, tmp_path / "second", lambda text: shifted(-362)(rename(text)))
    alone = {i.job_id: essence(i) for folder in (first, second) for i in [leading(folder)]}
    both = tmp_path / "both"
    both.mkdir()
    for log, other in zip(sorted(first.iterdir()), sorted(second.iterdir()), strict=True):
        events = sorted(events_of(log) + events_of(other), key=lambda event: event[:23])
        both.joinpath(log.name).write_text("".join(events))
    incidents = run_local([str(both)], Options()).incidents
    assert {i.job_id: essence(i) for i in incidents} == alone


DENIED = ("(Read-only file system)", "(Permission denied)")
CORRUPT = (
    "java.io.IOException: No space left on device",
    "org.rocksdb.RocksDBException: block checksum mismatch: stored = 395426827, computed ="
    " 21345761  in /tmp/db/000032.sst offset 0 size 2085",
)


FIVE = [
    pytest.param(EXPIRED, ("", ""), "checkpoint/expired", id="expired under backpressure"),
    pytest.param(FULL_DISK, ("", ""), "disk/full", id="disk full"),
    pytest.param(READ_ONLY, ("", ""), "checkpoint/storage-not-writable", id="read-only"),
    pytest.param(READ_ONLY, DENIED, "checkpoint/storage-permission-denied", id="denied"),
    pytest.param(FULL_DISK, CORRUPT, "rocksdb/sst-block-checksum-mismatch", id="RocksDB"),
]


@pytest.mark.parametrize(("deployment", "words", "cause"), FIVE)
def test_exceeded_threshold_is_attributed_to_its_cause(deployment, words, cause, tmp_path):
    incident = leading(copy(deployment, tmp_path / "d", lambda text: text.replace(*words)))
    assert incident.diagnoses[0].signature == cause
    assert "checkpoint/tolerable-threshold-exceeded" in incident.diagnoses[0].explains


def replaced(old: str, new: str) -> Change:
    return lambda text: text.replace(old, new)


def test_each_cause_of_the_threshold_has_a_remediation_of_its_own(tmp_path):
    remedies = []
    for number, param in enumerate(FIVE):
        deployment, words, _ = param.values
        incident = leading(copy(deployment, tmp_path / str(number), replaced(*words)))
        remedies.append(incident.diagnoses[0].remediation)
    for part in ("summary", "steps"):
        assert len({getattr(remedy, part) for remedy in remedies}) == len(FIVE), part
    patches = [frozenset((c.key, c.value) for c in remedy.config) for remedy in remedies]
    assert sum(bool(patch) for patch in patches) >= 2
    assert len({patch for patch in patches if patch}) == sum(bool(patch) for patch in patches)
