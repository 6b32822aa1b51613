"""A killed JobManager is inferred from the banner of its successor, or from TaskManagers."""

from __future__ import annotations

import pytest
from test_incidents import completed, line, signatures, state
from test_orderly_shutdown import ENTRYPOINT, banner, sigterm

from flink_triage.diagnosis import diagnose_incrementally
from flink_triage.remediation import OptionTable

LOST = "ha/jobmanager-lost"
RUNS = banner(0) + state(1, "CREATED", "RUNNING") + completed(60, 1)
HEARTBEAT = (
    line(85, "Totals (1/2)#0 (ad54) switched from RUNNING to FAILED with failure cause:", "WARN")
    + "java.util.concurrent.TimeoutException: The heartbeat of JobManager with id 38 timed out.\n"
    "\tat org.apache.flink.runtime.taskexecutor.TaskExecutor$JobManagerHeartbeatListener"
    ".notifyHeartbeatTimeout(TaskExecutor.java:2440)\n"
)
SOUGHT = line(
    86,
    "Could not resolve JobManager address akka.tcp://flink@localhost:6123/user/rpc/jobmanager_2,"
    " retrying in 10000 ms: Could not connect to rpc endpoint under address"
    " akka.tcp://flink@localhost:6123/user/rpc/jobmanager_2.",
    logger="org.apache.flink.runtime.taskexecutor.DefaultJobLeaderService",
)
CONFIGURED = line(
    0.5,
    "Loading configuration property: parallelism.default, 2",
    logger="org.apache.flink.configuration.GlobalConfiguration",
)


def signatures_of(diagnose, **files: str) -> list[str]:
    return [s for incident in diagnose(**files).incidents for s in signatures(incident)]


def test_banner_during_a_running_job_means_a_killed_jobmanager(diagnose):
    files = {"jobmanager": RUNS + CONFIGURED + banner(75), "taskmanager": HEARTBEAT + SOUGHT}
    (incident,) = diagnose(**files).incidents
    assert signatures(incident)[0] == LOST
    assert "taskmanager/heartbeat-timeout" in incident.diagnoses[0].explains
    assert incident.diagnoses[0].evidence[0].excerpt.startswith("Starting Standalone")
    remediation = incident.diagnoses[0].remediation
    assert not remediation.config
    assert remediation.steps[-2].startswith(
        "In addition to the fix: high-availability.type is NONE"
    )


def test_the_next_process_may_write_another_file(diagnose):
    assert LOST in signatures_of(diagnose, jobmanager=RUNS, jobmanager_again=banner(75))


def test_standby_jobmanager_is_not_lost(diagnose):
    files = {"jobmanager": RUNS + completed(120, 2), "jobmanager_again": banner(75)}
    assert LOST not in signatures_of(diagnose, **files)


def test_a_jobmanager_that_ended_in_order_or_without_a_job_is_not_lost(diagnose):
    down = "Shutting StandaloneSessionClusterEntrypoint down with application status SUCCEEDED."
    for end in (
        sigterm(70),
        line(70, down, logger=ENTRYPOINT),
        state(70, "RUNNING", "FINISHED"),
        state(70, "RUNNING", "CANCELLING"),
    ):
        assert LOST not in signatures_of(diagnose, jobmanager=RUNS + end + banner(75))
    assert LOST not in signatures_of(diagnose, jobmanager=RUNS + banner(3600))


def test_reconnecting_tasks_alone_do_not_imply_a_lost_jobmanager(diagnose):
    assert signatures_of(diagnose, jobmanager=RUNS, taskmanager=HEARTBEAT + SOUGHT) == [
        "taskmanager/heartbeat-timeout"
    ]


@pytest.mark.parametrize(("minutes", "is_lost"), [(2, False), (9, True)])
def test_long_reconnection_of_a_taskmanager_implies_a_lost_jobmanager(diagnose, minutes, is_lost):
    later = SOUGHT.replace(SOUGHT[:19], line(86 + 60 * minutes, "")[:19])
    assert (LOST in signatures_of(diagnose, taskmanager=SOUGHT + later)) == is_lost
    assert LOST not in signatures_of(diagnose, jobmanager=RUNS, taskmanager=SOUGHT + later)


def test_lost_jobmanager_is_carried_to_the_next_run(pack, observe):
    before = observe(jobmanager=RUNS + CONFIGURED + banner(75))
    table = OptionTable.load()
    first = diagnose_incrementally("d", None, before, pack, table)
    assert first is not None
    assert first.carried is not None
    assert [signatures(i)[0] for i in first.open.incidents] == [LOST]
    then = diagnose_incrementally("d", first.carried, (), pack, table)
    assert then is not None
    assert then.open == first.open
