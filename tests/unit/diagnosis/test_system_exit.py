"""Distinguishes a TaskManager that user code terminated from one that was stopped or killed."""

from __future__ import annotations

import pytest

from tests.unit.diagnosis.test_incidents import failed, line, signatures, state
from tests.unit.diagnosis.test_orderly_shutdown import (
    RUNNER,
    STOPPED,
    STOPPED_IN_ORDER,
    WELL,
    banner,
    sigterm,
    started,
)

EXITED = "job/system-exit"
BLOBS = "org.apache.flink.runtime.blob.PermanentBlobCache"
# The location that `failed` logs for this TaskManager.
NAME = "host:1"
HOOKS = line(60, "Shutting down BLOB cache", logger=BLOBS)
FAREWELL = failed(60.2, STOPPED) + state(60.3, "RUNNING", "RESTARTING")
JOBMANAGER = WELL + FAREWELL
FATAL = line(
    59,
    "Fatal error occurred while executing the TaskManager. Shutting it down...",
    "ERROR",
    RUNNER,
)
CLOSED = line(
    60,
    "Shutting KubernetesApplicationClusterEntrypoint down with application status UNKNOWN."
    " Diagnostics Cluster entrypoint has been closed externally..",
    logger="org.apache.flink.runtime.entrypoint.ClusterEntrypoint",
)
UNREACHABLE = (
    "org.apache.flink.runtime.jobmaster.JobMasterException: TaskManager with id host:1 is no"
    " longer reachable.\n"
    "\tat org.apache.flink.runtime.jobmaster.JobMaster$X.notifyTargetUnreachable(J.java:1370)\n"
)


@pytest.fixture
def printed(tmp_path):
    """Writes the standard output of the TaskManager."""

    def write(text: str, name: str = "flink-taskmanager.out") -> None:
        (tmp_path / "deployment").mkdir(exist_ok=True)
        (tmp_path / "deployment" / name).write_text(text)

    return write


@pytest.mark.parametrize("suffix", ["out", "err", "out.1"])
def test_shutdown_hooks_without_a_signal_indicate_an_exit(diagnose, printed, suffix):
    printed("rates of May read\nno rates for June, leaving", f"flink-taskmanager.{suffix}")
    (incident,) = diagnose(jobmanager=JOBMANAGER, taskmanager=started(0, NAME) + HOOKS).incidents
    assert signatures(incident) == [EXITED]
    first = incident.diagnoses[0].evidence[0]
    assert (first.line, first.excerpt) == (2, "no rates for June, leaving")
    assert first.path.endswith(suffix)


def test_exit_is_detected_without_any_output(diagnose):
    (incident,) = diagnose(jobmanager=JOBMANAGER, taskmanager=started(0, NAME) + HOOKS).incidents
    assert signatures(incident) == [EXITED]


def test_taskmanager_lost_without_notice_has_exited(diagnose):
    lost = WELL + failed(80, UNREACHABLE) + state(80.1, "RUNNING", "RESTARTING")
    (incident,) = diagnose(jobmanager=lost, taskmanager=started(0, NAME) + HOOKS).incidents
    assert signatures(incident)[0] == EXITED


@pytest.mark.parametrize(
    "taskmanager",
    [
        pytest.param(started(0, NAME) + sigterm(59.9, RUNNER) + HOOKS, id="a signal"),
        pytest.param(started(0, NAME), id="a kill, which runs no shutdown hooks"),
        pytest.param(started(0, "host:2") + HOOKS, id="the shutdown hooks of another TaskManager"),
        pytest.param("", id="no log from the TaskManager"),
        pytest.param(
            started(0, NAME) + HOOKS + banner(300, "TaskManager") + sigterm(3000, RUNNER),
            id="shutdown hooks at another time",
        ),
    ],
)
def test_other_ends_of_a_process_are_not_an_exit(diagnose, printed, taskmanager):
    printed("rates of May read\nbye\n")
    at = 3000 if "05:50:00" in taskmanager else 0
    jobmanager = WELL + failed(60.2 + at, STOPPED) + state(60.3 + at, "RUNNING", "RESTARTING")
    found = diagnose(jobmanager=jobmanager, taskmanager=taskmanager)
    assert [signatures(i)[:1] for i in found.incidents] == [[STOPPED_IN_ORDER]]


def test_fatal_error_of_flink_is_not_an_exit_of_user_code(diagnose):
    taskmanager = started(0, NAME) + FATAL + HOOKS
    for incident in diagnose(jobmanager=JOBMANAGER, taskmanager=taskmanager).incidents:
        assert EXITED not in signatures(incident)


def test_output_of_a_healthy_process_is_not_a_failure(diagnose, printed):
    printed("rates of May read\nerror rate is 0\ncannot say more\n")
    found = diagnose(jobmanager=WELL, taskmanager=started(0, NAME))
    assert [i.verdict for i in found.incidents] == ["healthy"]


def test_jobmanager_that_ends_with_a_running_job_has_exited(diagnose, printed):
    printed("no licence key, leaving", "flink-jobmanager.out")
    (incident,) = diagnose(jobmanager=WELL + CLOSED).incidents
    assert signatures(incident) == [EXITED]
    assert incident.diagnoses[0].evidence[0].excerpt == "no licence key, leaving"


@pytest.mark.parametrize(
    "jobmanager",
    [
        WELL + sigterm(59.9) + CLOSED,
        WELL + state(59, "RUNNING", "CANCELED") + CLOSED,
        banner(0, "StandaloneSessionClusterEntrypoint") + CLOSED,
    ],
    ids=["signal", "job has ended", "no job"],
)
def test_requested_end_of_a_jobmanager_is_not_an_exit(diagnose, jobmanager):
    assert [i.verdict for i in diagnose(jobmanager=jobmanager).incidents] == ["healthy"]
