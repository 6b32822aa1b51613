"""A cluster fault that hits jobs at the same time is one incident; job faults are separate."""

from __future__ import annotations

import pytest
from test_incidents import NPE, completed, line, signatures, state

ORDERS, BILLS = "9b1a51e416dc4303171d4287e9e52830", "00000000000000000000000000000002"
GRAPHS = {ORDERS: "ad5498bd8e6af42420707a08aa2fb304", BILLS: "bd5498bd8e6af42420707a08aa2fb305"}
LOST = (
    "java.util.concurrent.TimeoutException: Heartbeat of TaskManager with id tm-7 timed out.\n"
    "\tat org.apache.flink.runtime.jobmaster.JobMaster$TaskManagerHeartbeatListener"
    ".notifyHeartbeatTimeout(JobMaster.java:1435)\n"
)
FULL = (
    "java.io.IOException: Could not perform checkpoint 5 for operator Totals (1/2)#0.\n"
    "\tat org.apache.flink.streaming.runtime.tasks.StreamTask.triggerCheckpointOnBarrier"
    "(StreamTask.java:1256)\n"
    "Caused by: java.io.IOException: No space left on device\n"
    "\tat java.io.FileOutputStream.writeBytes(Native Method)\n"
)


def job(second: float, job_id: str, trace: str) -> str:
    """A job that starts, completes a checkpoint, fails with ``trace``, and runs again."""
    graph = GRAPHS[job_id]
    return (
        line(second - 9, f"Created execution graph {graph} for job {job_id}.")
        + completed(second - 5, 4, job_id)
        + line(
            second,
            f"Totals (1/2) ({graph}_8eeed16b661251f13cfc6a3c5e75c420_0_0) switched from RUNNING"
            " to FAILED on tm-7 @ host-7 (dataPort=1).",
        )
        + trace
        + state(second, "RUNNING", "RESTARTING", job_id)
        + state(second + 3, "RESTARTING", "RUNNING", job_id)
        + completed(second + 8, 5, job_id)
    )


def merged(*parts: str) -> str:
    """Merges the events of several jobs into one file, ordered by time."""
    events: list[str] = []
    for part in parts:
        for text in part.splitlines(keepends=True):
            if text.startswith("2026-"):
                events.append(text)
            else:
                events[-1] += text
    return "".join(sorted(events, key=lambda event: event[:23]))


@pytest.mark.parametrize(
    ("trace", "root", "reach"),
    [
        pytest.param(LOST, "taskmanager/heartbeat-timeout", 2, id="a lost TaskManager"),
        pytest.param(FULL, "disk/full", 2, id="a full disk"),
        pytest.param(
            NPE, "operator/user-code-exception", 1, id="a fault in user code affects only its job"
        ),
    ],
)
def test_fault_shared_by_jobs_is_one_incident(diagnose, trace, root, reach):
    text = merged(job(30, ORDERS, trace), job(41, BILLS, trace))
    incidents = diagnose(standalonesession=text).incidents
    assert len(incidents) == 3 - reach
    assert {signatures(incident)[0] for incident in incidents} == {root}
    assert {len(incident.blast_radius.jobs) for incident in incidents} == {reach}


def test_blast_radius_lists_jobs_taskmanagers_and_minutes(diagnose):
    text = merged(job(30, ORDERS, LOST), job(70, BILLS, LOST))
    (incident,) = diagnose(standalonesession=text).incidents
    radius = incident.blast_radius
    assert [job.job_id for job in radius.jobs] == [ORDERS, BILLS]
    assert [job.last_healthy.checkpoint_id for job in radius.jobs] == [4, 4]
    assert {job.outcome for job in radius.jobs} == {"recovered"}
    assert radius.taskmanagers == ("tm-7",)
    assert [(f"{m.minute:%H:%M}", m.jobs) for m in radius.per_minute] == [
        ("05:00", 1),
        ("05:01", 1),
    ]
    assert (incident.job_id, incident.restarts, incident.outcome) == (None, 2, "recovered")
    assert "2 jobs" in incident.summary


def test_the_same_fault_hours_apart_is_two_incidents(diagnose):
    text = merged(job(30, ORDERS, LOST), job(3500, BILLS, LOST))
    assert len(diagnose(standalonesession=text).incidents) == 2


def test_two_faults_at_the_same_time_stay_apart(diagnose):
    text = merged(job(30, ORDERS, LOST), job(31, BILLS, NPE))
    incidents = diagnose(standalonesession=text).incidents
    assert {i.job_id: signatures(i)[0] for i in incidents} == {
        ORDERS: "taskmanager/heartbeat-timeout",
        BILLS: "operator/user-code-exception",
    }


GATED = (
    "Association with remote system [pekko.tcp://flink@localhost:38453] has failed, address is now"
    " gated for [50] ms. Reason: [Association failed with [pekko.tcp://flink@localhost:38453]]"
    " Caused by: [java.net.ConnectException: Connection refused: localhost/127.0.0.1:38453]"
)


@pytest.mark.parametrize(
    ("second", "count"),
    [pytest.param(40, 1, id="soon after"), pytest.param(400, 2, id="long after")],
)
def test_reconnection_to_a_lost_taskmanager_is_not_a_separate_incident(diagnose, second, count):
    logger = "org.apache.pekko.remote.ReliableDeliverySupervisor"
    gated = line(second, GATED, "WARN", logger) + completed(second + 5, 9, ORDERS)
    found = diagnose(jobmanager=job(10, ORDERS, LOST) + gated)
    assert len(found.incidents) == count
    (lost,) = (i for i in found.incidents if signatures(i)[0] == "taskmanager/heartbeat-timeout")
    assert lost.outcome == "recovered"
    assert lost.ended_at.second == 18
