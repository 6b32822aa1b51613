"""Rank 1 is the cause, even if the evidence for its consequence has more weight."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from test_incidents import FULL, GRAPH, JOB, NPE, START, STRANGE, completed, failed, line, state

from flink_triage.local import Options, run_local

NO_SLOTS = (
    "org.apache.flink.runtime.jobmanager.scheduler.NoResourceAvailableException: "
    "Could not acquire the minimum required resources.\n"
    "\tat org.apache.flink.runtime.jobmaster.slotpool.SlotPool.fail(SlotPool.java:1)\n"
)
SEEKING = (
    "Could not resolve ResourceManager address pekko.tcp://flink@jm:26999/user/rpc/"
    "resourcemanager_*, retrying in 10000 ms: Could not connect to rpc endpoint under address "
    "pekko.tcp://flink@jm:26999/user/rpc/resourcemanager_*."
)
EXECUTOR = "org.apache.flink.runtime.taskexecutor.TaskExecutor"


def test_cause_ranks_before_the_fault_it_explains(diagnose):
    found = diagnose(
        jobmanager=completed(5, 4)
        + line(300, "Job orders failed.", "WARN")
        + NO_SLOTS
        + state(300, "RUNNING", "FAILING"),
        taskmanager="".join(
            line(second, SEEKING, "INFO", EXECUTOR) for second in range(310, 610, 10)
        ),
    )
    (incident,) = found.incidents
    first, second = incident.diagnoses[:2]
    assert first.signature == "taskmanager/registration-timeout"
    assert second.signature == "resources/slots-unavailable"
    assert second.signature in first.explains
    assert second.confidence < first.confidence
    assert any(reason.startswith("behind-cause:") for reason in second.reasons)


SLOW_LOOKUPS = """
title: Lookups are slow
severity: major
role: trigger
match:
  any:
    - literal: Lookup took longer than
      regex: 'Lookup took longer than (?P<limit>\\w{1,20})'
  count: 30
  within: {within}
cause: The database is overloaded.
remediation:
  summary: Add replicas.
  steps: [Add replicas.]
  risk: live
references: [https://example.org/lookups]
examples:
  match: ["2026-03-01 06:00:00,000 WARN  org.example.Lookup [] - Lookup took longer than limit"]
  no_match: ["2026-03-01 06:00:00,000 WARN  org.example.Lookup [] - Lookup took 3 ms"]
"""


@pytest.mark.parametrize(
    ("count", "within", "is_found"),
    [
        pytest.param(40, "1 min", True, id="enough, although most are only counted"),
        pytest.param(20, "1 min", False, id="too few"),
        pytest.param(40, "10 s", False, id="not within the time"),
    ],
)
def test_counted_events_are_repetitions(
    tmp_path: Path, count: int, within: str, is_found: bool
) -> None:
    logs, own = tmp_path / "logs", tmp_path / "acme"
    logs.mkdir()
    own.mkdir()
    lines = [
        line(second, "Lookup took longer than limit", "WARN") for second in range(1, 1 + count)
    ]
    (logs / "flink-taskmanager.log").write_text("".join(lines))
    (own / "lookups-slow.yaml").write_text(SLOW_LOOKUPS.replace("{within}", within))
    result = run_local([str(logs)], Options(signature_directories=(tmp_path,)))
    found = {d.signature for incident in result.incidents for d in incident.diagnoses}
    assert found == ({"acme/lookups-slow"} if is_found else set())


BAD_VALUE = "Could not parse value '120 s' for key 'heartbeat.timeout'."
CONFIGURATION = "org.apache.flink.configuration.GlobalConfiguration"
NO_DATABASE = (
    "org.postgresql.util.PSQLException: The connection attempt failed.\n"
    "\tat org.postgresql.core.v3.ConnectionFactoryImpl.openConnectionImpl(Factory.java:358)\n"
    "Caused by: java.net.UnknownHostException: postgres-service\n"
    "\tat org.postgresql.core.PGStream.createSocket(PGStream.java:243)\n"
)


def failing_after(first: str) -> str:
    return (
        first
        + completed(2, 4)
        + line(300, "Job orders failed.", "WARN")
        + NO_DATABASE
        + state(300, "RUNNING", "FAILED")
    )


def test_job_failure_outranks_a_warning(diagnose):
    warned = line(0, BAD_VALUE, "WARN", CONFIGURATION)
    (incident,) = diagnose(jobmanager=failing_after(warned)).incidents
    assert [d.signature for d in incident.diagnoses] == [
        "jdbc/connection-failed",
        "config/file-invalid",
    ]
    (incident,) = diagnose(jobmanager=failing_after(warned.replace(" WARN ", " ERROR "))).incidents
    assert incident.diagnoses[0].signature == "config/file-invalid"


TOO_LARGE = (
    "java.io.IOException: Size of the state is larger than the maximum permitted memory-backed"
    " state. Size=8, maxSize=5.\n"
    "\tat org.apache.flink.runtime.state.memory.MemCheckpointStreamFactory.checkSize(M.java:62)\n"
)
DUPLICATE = (
    "java.sql.BatchUpdateException: Batch entry 0 was aborted\n"
    "\tat org.postgresql.jdbc.BatchResultHandler.handleError(BatchResultHandler.java:165)\n"
    "Caused by: org.postgresql.util.PSQLException: ERROR: duplicate key value violates unique"
    ' constraint "totals_pkey"\n'
    "\tat org.postgresql.core.v3.QueryExecutorImpl.receiveErrorResponse(Q.java:2725)\n"
)
BLOB_GONE = (
    "java.io.IOException: Failed to fetch BLOB 9b1a/p-d0a9 from jm/10.0.0.1:6124 and store it under"
    " /tmp/blobStore/incoming/temp-1\n"
    "\tat org.apache.flink.runtime.blob.BlobClient.downloadFromBlobServer(BlobClient.java:167)\n"
    "Caused by: java.io.IOException: GET operation failed: Server side error: gone\n"
    "\tat org.apache.flink.runtime.blob.BlobClient.getInternal(BlobClient.java:253)\n"
)
SUPPRESSED = (
    "org.apache.flink.runtime.JobException: Recovery is suppressed by"
    " FixedDelayRestartBackoffTimeStrategy(maxNumberRestartAttempts=2, backoffTimeMS=2000)\n"
    "\tat org.apache.flink.runtime.executiongraph.failover.X.handleFailure(X.java:176)\n"
)
STOPPED = (
    "org.apache.flink.util.FlinkExpectedException: The TaskExecutor is shutting down.\n"
    "\tat org.apache.flink.runtime.taskexecutor.TaskExecutor.onStop(TaskExecutor.java:456)\n"
)


def test_successive_job_failures_are_ranked_in_order(diagnose):
    (incident,) = diagnose(
        jobmanager=completed(2, 3)
        + line(10, f"Decline checkpoint 4 by task {GRAPH} of job {JOB} at host:1 @ host.")
        + TOO_LARGE
        + state(10, "RUNNING", "RESTARTING")
        + state(11, "RESTARTING", "RUNNING")
        + failed(13, DUPLICATE, 1)
        + state(13, "RUNNING", "FAILED")
    ).incidents
    rivals = ("checkpoint/state-exceeds-memory-limit", "jdbc/statement-refused")
    first, second = (d for d in incident.diagnoses if d.signature in rivals)
    assert first.signature == "checkpoint/state-exceeds-memory-limit"
    assert "checkpoint/declined" not in second.explains
    assert incident.first_fault is not None
    assert incident.first_fault.at == first.first_seen_at
    assert not any(reason.startswith("last-failure:") for reason in second.reasons)


def test_job_failure_outranks_a_stop_that_the_job_survived(diagnose):
    (incident,) = diagnose(
        jobmanager=completed(2, 3)
        + failed(10, STOPPED)
        + state(10, "RUNNING", "RESTARTING")
        + state(12, "RESTARTING", "RUNNING")
        + "".join(
            failed(at, BLOB_GONE, at)
            + state(at, "RUNNING", "RESTARTING")
            + state(at + 2, "RESTARTING", "RUNNING")
            for at in (20, 30)
        )
        + line(40, "Job orders failed.", "INFO")
        + SUPPRESSED
        + failed(40, BLOB_GONE, 3)
        + state(40, "RUNNING", "FAILED")
    ).incidents
    first, second = incident.diagnoses[:2]
    assert first.signature == "job/blob-missing"
    assert second.signature == "taskmanager/shutdown-requested"
    assert "job/recovery-suppressed" not in second.explains
    assert any(reason.startswith("overcome:") for reason in second.reasons)


def test_contributing_signature_leaves_an_unknown_failure_undetermined(diagnose):
    waiting = line(
        8,
        "Database snapshot phase can't perform checkpoint, acquired Checkpoint lock.",
        logger="io.debezium.X",
    )
    (incident,) = diagnose(
        jobmanager=waiting + failed(10, STRANGE) + state(10, "RUNNING", "FAILED")
    ).incidents
    assert incident.verdict == "undetermined"
    assert incident.first_fault is not None
    assert "frobnicator" in incident.first_fault.excerpt
    assert incident.diagnoses[0].role == "contributing"


EXPIRED = line(
    20, f"Checkpoint 5 of job {JOB} expired before completing.", logger="CheckpointCoordinator"
)
FAILED_ON_NPE = failed(60, NPE) + state(60, "RUNNING", "FAILED")


def test_symptom_that_the_job_survived_is_not_the_cause(diagnose):
    (incident,) = diagnose(jobmanager=EXPIRED + completed(30, 6) + FAILED_ON_NPE).incidents
    first, second = incident.diagnoses[:2]
    assert (first.signature, second.signature) == (
        "operator/user-code-exception",
        "checkpoint/expired",
    )
    assert any(reason.startswith("survived:") for reason in second.reasons)


def test_checkpoint_before_a_symptom_does_not_count_as_recovery(diagnose):
    (incident,) = diagnose(jobmanager=completed(10, 4) + EXPIRED + FAILED_ON_NPE).incidents
    (expired,) = [d for d in incident.diagnoses if d.signature == "checkpoint/expired"]
    assert not any(reason.startswith("survived:") for reason in expired.reasons)


CONFLICT = (
    "java.lang.NoSuchMethodError: org.apache.hadoop.hive.serde2.thrift.Type.getType(Lx/TTypeId;)V\n"
    "\tat org.apache.hudi.sink.StreamWriteOperatorCoordinator.syncHive(Coordinator.java:279)\n"
)
NO_HEAP = (
    "java.lang.OutOfMemoryError: Java heap space\n"
    "\tat org.apache.hudi.sink.StreamWriteFunction.bufferRecord(StreamWriteFunction.java:537)\n"
)
SYNC_ERROR = line(10, "Executor executes action [sync hive metadata] error", "ERROR")


def test_fault_of_the_failed_task_outranks_logged_errors(diagnose):
    failure = failed(40, NO_HEAP) + state(40, "RUNNING", "FAILED")
    (incident,) = diagnose(jobmanager=SYNC_ERROR + CONFLICT + failure).incidents
    first, second = incident.diagnoses[:2]
    assert (first.signature, second.signature) == (
        "memory/oom-java-heap",
        "classloading/jar-conflict",
    )
    assert any(reason.startswith("beside:") for reason in second.reasons)


def test_error_logged_before_an_unspecific_failure_ranks_first(diagnose):
    failure = failed(40, NPE) + state(40, "RUNNING", "FAILED")
    (incident,) = diagnose(jobmanager=SYNC_ERROR + CONFLICT + failure).incidents
    assert incident.diagnoses[0].signature == "classloading/jar-conflict"


def test_full_disk_that_was_only_logged_ranks_first(diagnose):
    failure = failed(40, DUPLICATE) + state(40, "RUNNING", "FAILED")
    logged = line(10, "Could not write.", "ERROR") + FULL
    (incident,) = diagnose(jobmanager=logged + failure).incidents
    assert incident.diagnoses[0].signature == "disk/full"


def collected(second: float, milliseconds: int) -> str:
    at = START + timedelta(seconds=second)
    return (
        f"[{at.isoformat(timespec='milliseconds')}+0000][{second:.3f}s][info][gc] GC({second:.0f}) "
        f"Pause Full (G1 Compaction Pause) 1498M->1497M(1500M) {milliseconds}.423ms\n"
    )


SILENT = (
    completed(5, 4)
    + line(60, "Heartbeat of TaskManager with id tm-1 timed out.", logger="JobMaster")
    + state(60, "RUNNING", "RESTARTING")
)


@pytest.mark.parametrize(
    ("pauses", "first"),
    [
        ([5148, 3494, 5756], "memory/gc-pauses-long"),
        ([5148, 3494], "taskmanager/heartbeat-timeout"),
        ([51, 34, 57, 44], "taskmanager/heartbeat-timeout"),
    ],
    ids=["long and often", "long and seldom", "often and short"],
)
def test_a_collector_that_stops_the_process_explains_its_silence(diagnose, pauses, first):
    log = "".join(collected(20 + 10 * n, pause) for n, pause in enumerate(pauses))
    found = diagnose(**{"standalonesession-0-node1": SILENT, "taskexecutor-0-node7.gc": log})
    (incident,) = found.incidents
    assert incident.diagnoses[0].signature == first


def test_survived_symptom_does_not_explain_an_unknown_failure(diagnose):
    failure = failed(60, STRANGE) + state(60, "RUNNING", "FAILED")
    (incident,) = diagnose(jobmanager=EXPIRED + completed(30, 6) + failure).incidents
    assert incident.verdict == "undetermined"
    assert incident.first_fault is not None
    assert incident.first_fault.excerpt.endswith("out of phase")


def test_fault_followed_by_a_long_healthy_period_is_a_separate_incident(diagnose):
    full = line(10, "Could not complete the snapshot.", "WARN") + FULL
    later = failed(4000, NPE) + state(4000, "RUNNING", "FAILED")
    incidents = diagnose(jobmanager=full + completed(60, 5) + later).incidents
    assert [(i.outcome, i.diagnoses[0].signature) for i in incidents] == [
        ("failed", "operator/user-code-exception"),
        ("recovered", "disk/full"),
    ]
    (incident,) = diagnose(jobmanager=full + later).incidents
    assert incident.diagnoses[0].signature == "disk/full"
