"""Example results for the report formats: diagnosed, undetermined, healthy, and a fleet.

The log texts come from real runs of Flink 1.16.0 (a full 12 MB checkpoint volume) and 2.1.1. The
verdicts are written by hand.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from flink_triage.model import (
    Checkpoint,
    ConfigChange,
    Coverage,
    Diagnosis,
    Evidence,
    Incident,
    Quarantined,
    Remediation,
    Result,
    Run,
    SimilarFailure,
    SkippedSignature,
    TimelineEntry,
    TriedFix,
    UnknownFailure,
)

JOB_ID = "9b1a51e416dc4303171d4287e9e52830"
TASK = "Customer Totals -> Filter -> Map -> Sink: Audit Sink"
JOBMANAGER = "orders-prod/flink-flink-standalonesession-0-vm.log"
TASKMANAGER = "orders-prod/flink-flink-taskexecutor-0-vm.log"

NO_SPACE_TRACE = """\
2026-11-21 05:52:20,772 WARN  org.apache.flink.runtime.checkpoint.CheckpointFailureManager [] - \
Failed to trigger or complete checkpoint 5 for job 9b1a51e416dc4303171d4287e9e52830. \
(0 consecutive failed attempts so far)
org.apache.flink.runtime.checkpoint.CheckpointException: Asynchronous task checkpoint failed.
\tat org.apache.flink.runtime.messages.checkpoint.SerializedCheckpointException.unwrap\
(SerializedCheckpointException.java:51) ~[flink-dist-1.16.0.jar:1.16.0]
\tat org.apache.flink.runtime.checkpoint.CheckpointCoordinator.receiveDeclineMessage\
(CheckpointCoordinator.java:1036) ~[flink-dist-1.16.0.jar:1.16.0]
\tat java.util.concurrent.ThreadPoolExecutor.runWorker(ThreadPoolExecutor.java:1136) [?:?]
\tat java.lang.Thread.run(Thread.java:840) [?:?]
Caused by: org.apache.flink.util.SerializedThrowable: java.lang.Exception: Could not materialize \
checkpoint 5 for operator Customer Totals -> Filter -> Map -> Sink: Audit Sink (1/2)#0.
\tat org.apache.flink.streaming.runtime.tasks.AsyncCheckpointRunnable.handleExecutionException\
(AsyncCheckpointRunnable.java:298) ~[flink-dist-1.16.0.jar:1.16.0]
\t... 3 more
Caused by: org.apache.flink.util.SerializedThrowable: java.io.IOException: No space left on device
\tat java.io.FileOutputStream.writeBytes(Native Method) ~[?:?]
\tat java.io.FileOutputStream.write(FileOutputStream.java:349) ~[?:?]
\tat org.apache.flink.core.fs.local.LocalDataOutputStream.write(LocalDataOutputStream.java:68) \
~[flink-dist-1.16.0.jar:1.16.0]
\t... 3 more"""

THRESHOLD_TRACE = """\
org.apache.flink.util.FlinkRuntimeException: Exceeded checkpoint tolerable failure threshold.
\tat org.apache.flink.runtime.checkpoint.CheckpointFailureManager.checkFailureAgainstCounter\
(CheckpointFailureManager.java:206) ~[flink-dist-1.16.0.jar:1.16.0]"""


def at(clock: str) -> datetime:
    """Returns a time such as ``05:52:20.772`` on the day of the runs, in UTC."""
    return datetime.fromisoformat(f"2026-11-21T{clock}+00:00")


def _evidence(line: int, clock: str, excerpt: str, path: str = JOBMANAGER) -> Evidence:
    return Evidence(path=path, line=line, offset=line * 137, at=at(clock), excerpt=excerpt)


def disk_full() -> Diagnosis:
    """Rank 1: the cause."""
    return Diagnosis(
        rank=1,
        signature="disk/full",
        title="Checkpoint storage is full",
        severity="critical",
        role="trigger",
        confidence=0.97,
        score=8.4,
        reasons=(
            "stands at the root of the cause chain in 28 of 28 traces",
            "came first: 05:52:20.754, before any other failure of the job",
            "explains checkpoint/tolerable-threshold-exceeded and checkpoint/async-phase-failed",
        ),
        occurrences=28,
        first_seen_at=at("05:52:20.754"),
        last_seen_at=at("05:52:33.021"),
        subtasks=(f"{TASK} (1/2)", f"{TASK} (2/2)"),
        hosts=("localhost",),
        captures={"path": "file:/mnt/flink-checkpoints"},
        explains=("checkpoint/async-phase-failed",),
        evidence=(
            _evidence(253, "05:52:20.754", NO_SPACE_TRACE),
            _evidence(
                342,
                "05:52:20.741",
                "Caused by: java.io.IOException: No space left on device",
                TASKMANAGER,
            ),
        ),
        cause=(
            "The file system that holds the checkpoints has no free space left. Every checkpoint "
            "fails while its files are written; the state itself is not damaged."
        ),
        remediation=Remediation(
            summary="Free or enlarge file:/mnt/flink-checkpoints; no option cures a full disk.",
            steps=(
                "df -h /mnt/flink-checkpoints on localhost: confirm that it is full.",
                "Delete checkpoints of jobs that are gone; keep chk-4 and the shared folder.",
                "Restart the job from checkpoint 4.",
            ),
            config=(
                ConfigChange(
                    key="execution.checkpointing.tolerable-failed-checkpoints",
                    value="3",
                    action="raise",
                    reason="One failed checkpoint restarts the job today; a cushion buys time.",
                    current="0",
                    current_source="log",
                ),
                ConfigChange(
                    key="state.checkpoints.num-retained",
                    value="1",
                    action="already-set",
                    reason="More retained checkpoints are not what fills the disk.",
                    current="1",
                    current_source="default",
                    restart=False,
                ),
            ),
            risk="restart",
            verify="numberOfFailedCheckpoints stays flat and a new checkpoint completes.",
            commonly_tried=(
                TriedFix(
                    advice="Raise tolerable-failed-checkpoints and leave the disk as it is.",
                    assessment=(
                        "Hides the failure: the job runs on without any checkpoint and replays "
                        "everything since checkpoint 4 at its next restart."
                    ),
                ),
                TriedFix(
                    advice="Set state.checkpoints.num-retained: 1.",
                    assessment="Already the default; frees nothing that incremental state shares.",
                ),
            ),
            references=(
                "CheckpointFailureManager.java",
                "FLINK-18856",
                "https://nightlies.apache.org/flink/flink-docs-stable/docs/ops/state/checkpoints/",
            ),
        ),
    )


def async_failed() -> Diagnosis:
    """Rank 2: the effect of the full disk on checkpoints."""
    return Diagnosis(
        rank=2,
        signature="checkpoint/async-phase-failed",
        title="Asynchronous part of a checkpoint failed",
        severity="minor",
        role="symptom",
        confidence=0.9,
        score=3.1,
        reasons=("explained by disk/full, which stands deeper in the same cause chains",),
        occurrences=12,
        first_seen_at=at("05:52:20.754"),
        last_seen_at=at("05:52:33.021"),
        subtasks=(f"{TASK} (1/2)", f"{TASK} (2/2)"),
        hosts=(),
        captures={},
        explains=("checkpoint/tolerable-threshold-exceeded",),
        evidence=(_evidence(298, "05:52:20.772", NO_SPACE_TRACE),),
        cause="A task could not write its part of a checkpoint in the background.",
        remediation=Remediation(summary="Read the cause below it in the same trace."),
    )


def threshold_exceeded() -> Diagnosis:
    """Rank 3: the counter that exceeded its threshold."""
    return Diagnosis(
        rank=3,
        signature="checkpoint/tolerable-threshold-exceeded",
        title="Tolerable checkpoint failures exceeded",
        severity="major",
        role="symptom",
        confidence=0.88,
        score=2.2,
        reasons=("a counter: it says that checkpoints fail, never why",),
        occurrences=7,
        first_seen_at=at("05:52:20.776"),
        last_seen_at=at("05:52:33.087"),
        subtasks=(),
        hosts=(),
        captures={},
        explains=("job/recovery-suppressed",),
        evidence=(_evidence(303, "05:52:20.776", THRESHOLD_TRACE),),
        cause="More consecutive checkpoints failed than the job tolerates.",
        remediation=Remediation(
            summary="Cure what fails the checkpoints; tolerance is a cushion.",
            config=(
                ConfigChange(
                    key="execution.checkpointing.tolerable-failed-checkpoints",
                    value="3",
                    action="raise",
                    reason="The same change as above.",
                    current="0",
                    current_source="log",
                ),
            ),
        ),
    )


def _timeline() -> tuple[TimelineEntry, ...]:
    running = TimelineEntry(at("05:52:11.038"), "job-state", "CREATED -> RUNNING")
    healthy = tuple(
        TimelineEntry(at(clock), "checkpoint-completed", f"checkpoint {number} completed")
        for number, clock in enumerate(
            ("05:52:12.793", "05:52:14.730", "05:52:16.781", "05:52:18.768"), start=1
        )
    )
    loop: list[TimelineEntry] = []
    for number, (failed, restarted) in enumerate(
        (
            ("05:52:20.772", "05:52:23.809"),
            ("05:52:25.345", "05:52:28.362"),
            ("05:52:29.120", "05:52:32.135"),
        ),
        start=5,
    ):
        loop += [
            TimelineEntry(
                at(failed),
                "checkpoint-declined",
                f"checkpoint {number} declined: No space left on device",
                _evidence(298, failed, "java.io.IOException: No space left on device"),
                2,
            ),
            TimelineEntry(at(restarted), "job-state", "RESTARTING -> RUNNING"),
        ]
    end = (
        TimelineEntry(at("05:52:33.021"), "fault", "No space left on device", None, 4),
        TimelineEntry(at("05:52:33.087"), "job-state", "FAILING -> FAILED"),
    )
    return (running, *healthy, *loop, *end)


def diagnosed_incident() -> Incident:
    return Incident(
        incident_id="3f1c9a70d2b84e55",
        deployment="orders-prod",
        job_id=JOB_ID,
        job_name="orders-totals",
        flink_version="1.16.0",
        started_at=at("05:52:11.038"),
        ended_at=at("05:52:33.087"),
        verdict="diagnosed",
        outcome="failed",
        restarts=3,
        first_fault=_evidence(253, "05:52:20.754", NO_SPACE_TRACE),
        last_healthy=Checkpoint(4, at("05:52:18.768")),
        diagnoses=(disk_full(), async_failed(), threshold_exceeded()),
        timeline=_timeline(),
    )


def undetermined_incident() -> Incident:
    return Incident(
        incident_id="77aa01",
        deployment="clicks-staging",
        job_id="52e23241890a75ceb42842d4686e5600",
        job_name="clicks",
        flink_version="2.1.1",
        started_at=at("06:58:52.740"),
        ended_at=None,
        verdict="undetermined",
        outcome="ongoing",
        restarts=2,
        first_fault=_evidence(
            289, "06:58:59.101", "java.lang.NullPointerException: null", "clicks/jobmanager.log"
        ),
        last_healthy=Checkpoint(2, at("06:58:57.665")),
        diagnoses=(),
        summary="A task failed with an exception whose cause these logs do not hold.",
        missing_evidence=(
            "the TaskManager's log of 06:58:55 to 06:59:05",
            "stack traces: -XX:-OmitStackTraceInFastThrow keeps them",
        ),
    )


def healthy_incident(deployment: str = "payments-prod") -> Incident:
    return Incident(
        incident_id=f"ok-{deployment}",
        deployment=deployment,
        job_id="dbff8b3b16556bcab878b71679c49680",
        job_name="orders-totals",
        flink_version="2.1.1",
        started_at=at("06:18:04"),
        ended_at=at("06:20:00.962"),
        verdict="healthy",
        outcome="unknown",
        restarts=0,
        first_fault=None,
        last_healthy=Checkpoint(58, at("06:20:00.140")),
        diagnoses=(),
    )


def similar_failures() -> tuple[SimilarFailure, ...]:
    return (
        SimilarFailure(
            signature="kafka/not-leader",
            title="Kafka partition has moved to another broker",
            agrees=("NotLeaderException", "the words broker, partition"),
            differs=('its text "is not the leader" is not in the message',),
            reference="https://kafka.apache.org/documentation/",
        ),
        SimilarFailure(
            signature="kafka/record-too-large",
            title="Kafka record is larger than the broker allows",
            agrees=("the words broker, topic",),
            differs=("RecordTooLargeException is expected, but was not thrown",),
        ),
    )


def unknown_failure() -> UnknownFailure:
    return UnknownFailure(
        fingerprint="v1:5d41402abc4b2a76b9719d911017c592",
        count=12,
        exception_type="org.apache.flink.runtime.taskmanager.AsynchronousException",
        root_cause_type="com.acme.orders.LedgerException",
        root_cause_message="ledger 7 refused entry 91",
        first_user_frame="com.acme.orders.Ledger.append",
        deployments=("orders-prod",),
        evidence=(
            _evidence(
                811, "05:52:31.5", "com.acme.orders.LedgerException: ledger 7 refused entry 91"
            ),
        ),
        first_seen_at=at("05:52:31.5"),
    )


def _result(
    *incidents: Incident, coverage: Coverage, unknown: tuple[UnknownFailure, ...] = ()
) -> Result:
    config = {
        "execution.checkpointing.interval": "2s",
        "execution.checkpointing.tolerable-failed-checkpoints": "0",
        "restart-strategy": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "3",
        "state.backend": "rocksdb",
        "state.backend.incremental": "true",
        "state.checkpoints.dir": "file:///mnt/flink-checkpoints",
    }
    return Result(
        tool={"name": "flink-triage", "version": "0.1.0"},
        run=Run(
            "run-20261121-061000", at("06:10:00"), at("06:10:01.25"), "sha256:9f86d081884c7d65"
        ),
        coverage=coverage,
        incidents=incidents,
        unknown=unknown,
        effective_config={incident.deployment: config for incident in incidents[:1]},
    )


def diagnosed() -> Result:
    coverage = Coverage(
        files=2,
        bytes=295_504,
        events=412,
        stack_traces=61,
        fingerprints=9,
        quarantined=(Quarantined("orders-prod/core.4711", "binary: 38 % NUL bytes"),),
        truncated=1,
        redactions=2,
        signatures_evaluated=96,
        signatures_skipped=(SkippedSignature("kafka/auth-failed", "regex ran out of time"),),
    )
    return _result(diagnosed_incident(), coverage=coverage, unknown=(unknown_failure(),))


def undetermined() -> Result:
    coverage = Coverage(files=1, bytes=220_448, events=180, signatures_evaluated=96)
    return _result(undetermined_incident(), coverage=coverage)


def unnamed() -> Result:
    """An unknown failure that resembles known failures, and a second unknown failure."""
    incident = replace(undetermined_incident(), similar=similar_failures())
    other = replace(unknown_failure(), similar=similar_failures()[1:])
    return replace(undetermined(), incidents=(incident,), unknown=(other,))


def healthy() -> Result:
    coverage = Coverage(files=2, bytes=91_000, events=633, signatures_evaluated=96)
    return _result(healthy_incident(), coverage=coverage)


def fleet(size: int = 40) -> Result:
    """Three diagnosed deployments, and an undetermined one. All others are healthy."""
    first = diagnosed_incident()
    later = replace(first, deployment="orders-eu", incident_id="b2", outcome="recovered")
    degraded = replace(
        first,
        deployment="invoices",
        incident_id="c3",
        outcome="ongoing",
        diagnoses=(replace(threshold_exceeded(), rank=1, explains=(), confidence=0.62),),
        started_at=at("05:52:11") - timedelta(days=1),
    )
    fine = tuple(healthy_incident(f"service-{number:02}") for number in range(size - 4))
    coverage = Coverage(files=2 * size, bytes=41_000_000_000, events=1_904_332)
    return _result(first, later, degraded, undetermined_incident(), *fine, coverage=coverage)


ALL = {
    "diagnosed": diagnosed,
    "undetermined": undetermined,
    "unnamed": unnamed,
    "healthy": healthy,
    "fleet": fleet,
}
