"""An orderly shutdown of a cluster is not an incident; earlier and independent failures are."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from flink_triage.diagnosis import diagnose_incrementally
from flink_triage.model import Incident
from flink_triage.remediation import OptionTable
from tests.unit.diagnosis.test_incidents import (
    FULL,
    JOB,
    NPE,
    completed,
    failed,
    line,
    loop,
    signatures,
    state,
)

STOPPED_IN_ORDER = "taskmanager/shutdown-requested"
ENTRYPOINT = "org.apache.flink.runtime.entrypoint.ClusterEntrypoint"
RUNNER = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
STOPPED = (
    "org.apache.flink.util.FlinkExpectedException: The TaskExecutor is shutting down.\n"
    "\tat org.apache.flink.runtime.taskexecutor.TaskExecutor.onStop(TaskExecutor.java:456)\n"
)
TIMED_OUT = (
    "java.util.concurrent.TimeoutException: Heartbeat of TaskManager with id tm-1 timed out.\n"
    "\tat org.apache.flink.runtime.jobmaster.JobMaster$X.notifyHeartbeatTimeout(J.java:1299)\n"
)
CLOSED = (
    "java.lang.IllegalStateException: Trying to access closed classloader. Please check if you"
    " store classloaders directly or indirectly in static fields.\n"
    "\tat org.apache.flink.util.FlinkUserCodeClassLoaders$Safety.ensureInner(F.java:189)\n"
)


def banner(second: float, name: str = "StandaloneSessionClusterEntrypoint") -> str:
    logger = RUNNER if name == "TaskManager" else ENTRYPOINT
    return line(second, f"Starting {name} (Version: 1.20.3, Scala: 2.12)", logger=logger)


def started(second: float, name: str = "tm-1") -> str:
    return banner(second, "TaskManager") + line(
        second, f"Starting TaskManager with ResourceID: {name}", logger=RUNNER
    )


def sigterm(second: float, logger: str = ENTRYPOINT) -> str:
    return line(second, "RECEIVED SIGNAL 15: SIGTERM. Shutting down as requested.", logger=logger)


WELL = banner(0) + state(1, "CREATED", "RUNNING") + completed(5, 1)
# The TaskManager receives its signal first. The JobManager detects the loss before its own signal.
ENDS = (
    failed(60.1, STOPPED)
    + state(60.1, "RUNNING", "RESTARTING")
    + sigterm(61)
    + state(61.5, "RESTARTING", "FAILED")
)
TASKMANAGER_ENDS = started(0) + sigterm(60, RUNNER) + line(60.1, "Totals", "WARN") + STOPPED


def test_a_cluster_that_is_stopped_in_order_has_no_incident(diagnose):
    found = diagnose(jobmanager=WELL + ENDS, taskmanager=TASKMANAGER_ENDS)
    assert [i.verdict for i in found.incidents] == ["healthy"]


def test_jobmanager_log_alone_shows_that_the_cluster_was_stopped(diagnose):
    assert [i.verdict for i in diagnose(jobmanager=WELL + ENDS).incidents] == ["healthy"]


def test_output_of_a_thread_after_a_stop_belongs_to_the_stop(diagnose, tmp_path):
    (tmp_path / "deployment").mkdir()
    untidy = f"2026-11-21T05:01:02.084374401Z thread ERROR An exception occurred {CLOSED}"
    (tmp_path / "deployment" / "flink-taskmanager.out").write_text(untidy)
    found = diagnose(jobmanager=WELL + ENDS, taskmanager=TASKMANAGER_ENDS)
    assert [i.verdict for i in found.incidents] == ["healthy"]


def test_failure_before_a_stop_is_diagnosed_as_without_the_stop(diagnose):
    trouble = WELL + loop(FULL, 2, 20)
    (alone,) = diagnose(jobmanager=trouble, taskmanager=started(0)).incidents
    (stopped,) = diagnose(jobmanager=trouble + ENDS, taskmanager=TASKMANAGER_ENDS).incidents
    assert signatures(stopped) == signatures(alone)
    assert signatures(stopped)[0] == "disk/full"
    assert (stopped.outcome, stopped.restarts) == (alone.outcome, alone.restarts)


def test_jobmanager_error_before_its_signal_is_an_incident(diagnose):
    fatal = line(60.5, "Fatal error occurred in the cluster entrypoint.", "ERROR", ENTRYPOINT)
    text = WELL + fatal + FULL + sigterm(61)
    (incident,) = diagnose(jobmanager=text, taskmanager=TASKMANAGER_ENDS).incidents
    assert signatures(incident)[0] == "disk/full"


def test_fault_of_a_running_taskmanager_counts_after_the_jobmanager_stops(diagnose):
    goes_on = started(0) + line(62, "Totals (1/2) failed", "WARN") + FULL
    (incident,) = diagnose(jobmanager=WELL + sigterm(61), taskmanager=goes_on).incidents
    assert signatures(incident)[0] == "disk/full"


@pytest.mark.parametrize(
    "files",
    [
        {"jobmanager": WELL + failed(60.1, STOPPED), "taskmanager": TASKMANAGER_ENDS},
        {"jobmanager": WELL + failed(60.1, STOPPED)},
        {"taskmanager": TASKMANAGER_ENDS},
    ],
    ids=["both logs", "no TaskManager's log", "no JobManager's log"],
)
def test_taskmanager_that_was_stopped_alone_is_reported(diagnose, files):
    (incident,) = diagnose(**files).incidents
    assert signatures(incident) == ["taskmanager/shutdown-requested"]


def test_a_jobmanager_that_starts_again_in_the_same_file_can_fail(diagnose):
    again = banner(64) + line(65, "Could not start", "ERROR", ENTRYPOINT) + FULL
    (incident,) = diagnose(jobmanager=WELL + ENDS + again).incidents
    assert signatures(incident)[0] == "disk/full"
    assert incident.started_at is not None
    assert incident.started_at.minute == 1


LOST = (
    WELL
    + line(100, "The heartbeat of TaskManager with id tm-1 timed out.")
    + failed(100, TIMED_OUT).replace("host:1 @", "tm-1 @")
    + state(100, "RUNNING", "RESTARTING")
)


def test_a_lost_taskmanager_whose_log_has_a_signal_was_stopped_in_order(diagnose, pack):
    (incident,) = diagnose(jobmanager=LOST, taskmanager=started(0) + sigterm(60, RUNNER)).incidents
    first = incident.diagnoses[0]
    assert pack.signatures[STOPPED_IN_ORDER].is_order
    assert first.signature == STOPPED_IN_ORDER
    assert "taskmanager/heartbeat-timeout" in first.explains
    assert first.evidence[0].excerpt.startswith("RECEIVED SIGNAL 15")
    assert incident.missing_evidence == ()


@pytest.mark.parametrize(
    "log",
    [started(0, "tm-2") + sigterm(60, RUNNER), started(0)],
    ids=["another was stopped", "it had no signal"],
)
def test_a_lost_taskmanager_without_a_signal_was_not_stopped(diagnose, log):
    (incident,) = diagnose(jobmanager=LOST, taskmanager=log).incidents
    assert incident.diagnoses[0].signature == "taskmanager/heartbeat-timeout"


def test_a_taskmanager_that_starts_again_in_the_same_file_is_another(diagnose):
    again = started(0, "tm-0") + sigterm(60, RUNNER) + started(62, "tm-1")
    (incident,) = diagnose(jobmanager=LOST, taskmanager=again).incidents
    assert incident.diagnoses[0].signature == "taskmanager/heartbeat-timeout"


def test_a_log_that_was_given_is_not_asked_for(diagnose):
    def asked(log: str) -> bool:
        (incident,) = diagnose(jobmanager=LOST, taskmanager=log).incidents
        return any(text.startswith("The log of Task") for text in incident.missing_evidence)

    assert asked(started(0, "tm-2"))
    assert not asked(started(0, "tm-1"))
    assert not asked(started(0, "tm-1(node-7:8041)"))


@pytest.mark.parametrize(
    ("ending", "outcome"),
    [
        (state(40, "RUNNING", "CANCELLING") + state(41, "CANCELLING", "CANCELED"), "unknown"),
        (line(40, "Fatal error occurred in the cluster entrypoint.", "ERROR") + NPE, "failed"),
        (line(40, "Shutting X down with application status FAILED. Diagnostics null."), "failed"),
        (line(40, f"Application a.B ({JOB}) switched from state FAILING to FAILED."), "failed"),
        (line(40, "Shutting X down with application status UNKNOWN. Diagnostics x."), "ongoing"),
        (
            line(40, "Fatal error occurred in the cluster entrypoint.", "ERROR")
            + NPE
            + state(50, "CREATED", "RUNNING"),
            "ongoing",
        ),
    ],
    ids=["canceled", "fatal error", "status", "application", "status unknown", "runs again"],
)
def test_end_of_the_process_determines_the_outcome(diagnose, ending, outcome):
    text = completed(5, 4) + loop(NPE, 1) + ending
    assert [i.outcome for i in diagnose(jobmanager=text).incidents] == [outcome]


def test_stop_is_recognized_across_runs(diagnose, observe, pack):
    """The result is the same if the first run ends before, between, or after the signals."""
    events = observe(jobmanager=WELL + loop(NPE, 1, 20) + ENDS, taskmanager=TASKMANAGER_ENDS)
    whole = diagnose(events).incidents
    begun = events[0].event.logged_at
    assert begun is not None
    for seconds in (30, 60, 61.2):
        cut = [(e.event.logged_at - begun).total_seconds() <= seconds for e in events]  # type: ignore[operator]
        runs = [
            [e for e, is_in in zip(events, cut, strict=True) if is_in is one]
            for one in (True, False)
        ]
        assert incidents_of(runs, pack) == whole


def incidents_of(runs: Sequence[Sequence[object]], pack: object) -> tuple[Incident, ...]:
    carried, incidents = None, ()
    for news in runs:
        found = diagnose_incrementally("d", carried, list(news), pack, OptionTable.load())
        assert found is not None
        carried, incidents = found.carried, (*found.closed.incidents, *found.open.incidents)
    return incidents
