"""The first fault, the rank of a minor warning, and the cluster and Flink version of a job."""

from __future__ import annotations

import pytest

from tests.unit.diagnosis.test_incidents import JOB, completed, failed, line, state

OTHER_JOB = "fedcba9876543210" * 2
OWN_CODE = (
    "java.lang.IllegalArgumentException: no tariff for code X9\n"
    "\tat com.acme.tariff.Rate.processElement(Rate.java:52)\n"
    "\tat org.apache.flink.streaming.api.operators.StreamMap.processElement(StreamMap.java:38)\n"
)
MAGIC = (
    "java.lang.Exception: Exception while creating StreamOperatorStateContext.\n"
    "\tat org.apache.flink.streaming.api.operators.StreamTaskStateInitializerImpl.x(S.java:330)\n"
    "Caused by: org.rocksdb.RocksDBException: Bad table magic number: expected 9863518390377041911,"
    " found 0 in /tmp/rocks/db/000031.sst\n"
    "\tat org.rocksdb.RocksDB.open(Native Method)\n"
)


def banner(second: float, version: str) -> str:
    return line(second, f"Starting StandaloneSessionClusterEntrypoint (Version: {version}, Rev:a)")


def expired(second: float, number: int, job: str = JOB) -> str:
    return line(second, f"Checkpoint {number} of job {job} expired before completing.")


def test_the_first_fault_is_that_of_the_first_failure(diagnose) -> None:
    (incident,) = diagnose(
        jobmanager=failed(10, OWN_CODE)
        + state(10.1, "RUNNING", "RESTARTING")
        + failed(14, MAGIC, 1)
        + state(14.1, "RESTARTING", "FAILED")
    ).incidents
    assert incident.diagnoses[0].signature == "rocksdb/bad-table-magic"
    assert incident.first_fault.line == 1


@pytest.mark.parametrize("warned_at", [5, 15, 25])
def test_a_minor_warning_does_not_outrank_what_failed_the_job(diagnose, warned_at: int) -> None:
    warned = line(
        warned_at,
        "Time from receiving all checkpoint barriers/RPC to executing it exceeded threshold: 9ms",
        "WARN",
        "org.apache.flink.streaming.runtime.tasks.SubtaskCheckpointCoordinatorImpl",
    )
    text = expired(10, 3) + expired(20, 4) + expired(30, 5)
    lines = sorted((text + warned).splitlines(keepends=True))
    (incident,) = diagnose(jobmanager="".join(lines)).incidents
    assert incident.diagnoses[0].signature == "checkpoint/expired"


@pytest.mark.parametrize("old_is_first", [True, False])
def test_a_job_has_the_version_of_its_own_cluster(diagnose, old_is_first: bool) -> None:
    start = (0, 2) if old_is_first else (2, 0)
    old = banner(start[0], "1.15.4") + state(3, "CREATED", "RUNNING") + expired(40, 3)
    old += state(40.1, "RUNNING", "FAILING") + state(40.2, "FAILING", "FAILED")
    new = banner(start[1], "2.1.0") + state(4, "CREATED", "RUNNING", OTHER_JOB)
    new += completed(50, 9, OTHER_JOB)
    (incident,) = diagnose(jobmanager=old, jobmanager2=new).incidents
    assert (incident.job_id, incident.flink_version) == (JOB, "1.15.4")


def test_a_fault_without_a_job_is_not_given_to_a_job_of_another_cluster(diagnose) -> None:
    large = line(
        10,
        "org.apache.flink.runtime.rpc.akka.exceptions.AkkaRpcException: The method requestJob's"
        " result size 11800300 exceeds the maximum size 10485760 .",
        "ERROR",
        "org.apache.flink.runtime.rest.handler.job.JobDetailsHandler",
    )
    new = banner(20, "2.1.0") + state(21, "CREATED", "RUNNING") + completed(30, 9)
    (incident,) = diagnose(jobmanager=banner(0, "1.17.2") + large, jobmanager2=new).incidents
    assert (incident.job_id, incident.flink_version) == (None, "1.17.2")
    assert {c.key for c in incident.diagnoses[0].remediation.config} == {"akka.framesize"}
