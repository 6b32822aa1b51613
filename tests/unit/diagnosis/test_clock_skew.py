"""Clock skew is bounded by events that both processes log, and corrected in the timeline."""

from __future__ import annotations

import pytest
from test_incidents import GRAPH, JOB, NPE, completed, line, state

EXECUTION = f"{GRAPH}_8eeed16b661251f13cfc6a3c5e75c420_0_0"
LOST = (
    "java.util.concurrent.TimeoutException: Heartbeat of {} with id x timed out.\n\tat a.B.c(B)\n"
)


def manager(trace: str) -> str:
    return (
        line(5, f"Created execution graph {GRAPH} for job {JOB}.")
        + state(6, "CREATED", "RUNNING")
        + completed(9.5, 4)
        + line(10.1, f"Totals (1/2) ({EXECUTION}) switched from RUNNING to FAILED on t @ h (x).")
        + trace
        + state(10.2, "RUNNING", "RESTARTING")
    )


def worker(ahead: float, trace: str) -> str:
    failed = f"Totals (1/2)#0 ({EXECUTION}) switched from RUNNING to FAILED with failure cause:"
    return line(
        9.9 + ahead, "Totals (1/2)#0 - asynchronous part of checkpoint 5 failed", "WARN"
    ) + (line(10 + ahead, f"{failed} {trace}".rstrip("\n"), "WARN"))


@pytest.mark.parametrize(
    ("ahead", "noted"),
    [
        pytest.param(40.0, "39.9 s ahead of", id="ahead"),
        pytest.param(-4.0, "4.1 s behind", id="behind by more than the runtime of the job"),
        pytest.param(0.0, None, id="equal"),
        pytest.param(1.0, None, id="indistinguishable from a delay"),
    ],
)
def test_clock_skew_is_noted_and_corrected(diagnose, observe, ahead, noted):
    logs = {"u-standalonesession-0-a": manager(NPE), "u-taskexecutor-0-b": worker(ahead, NPE)}
    incident = diagnose(observe(**logs)).incidents[0]
    assert [noted in note for note in incident.notes] == [True] * bool(noted)
    if noted:
        kinds = [entry.kind for entry in incident.timeline]
        # The TaskManager fails before the JobManager is notified.
        assert kinds.index("fault") < kinds.index("job-state", 1)


def test_independently_detected_failures_imply_no_clock_skew(diagnose, observe):
    logs = {
        "u-standalonesession-0-a": manager(LOST.format("TaskManager")),
        "u-taskexecutor-0-b": worker(7, LOST.format("JobManager")),
    }
    assert diagnose(observe(**logs)).incidents[0].notes == ()


def test_execution_that_fails_twice_implies_no_clock_skew(diagnose, observe):
    """This occurs in logs that were merged, or replayed with other times."""
    again = line(50, f"Totals (1/2) ({EXECUTION}) switched from RUNNING to FAILED on t @ h (x).")
    logs = {
        "u-standalonesession-0-a": manager(NPE) + again + NPE,
        "u-taskexecutor-0-b": worker(40, NPE).split("failed\n", 1)[1],
    }
    assert diagnose(observe(**logs)).incidents[0].notes == ()
