"""Small but complete logs: incidents with their diagnoses, and logs without an incident."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

JOB = "9b1a51e416dc4303171d4287e9e52830"
GRAPH = "ad5498bd8e6af42420707a08aa2fb304"
START = datetime(2026, 11, 21, 5)


def line(second: float, message: str, level: str = "INFO", logger: str = "a.B") -> str:
    at = START + timedelta(seconds=second)
    time = at.isoformat(" ", "milliseconds").replace(".", ",")
    return f"{time} {level:<5} {logger} [] - {message}\n"


def state(second: float, before: str, after: str, job: str = JOB) -> str:
    return line(second, f"Job orders ({job}) switched from state {before} to {after}.")


def completed(second: float, number: int, job: str = JOB) -> str:
    return line(second, f"Completed checkpoint {number} for job {job} (1 bytes, x=1 ms).")


def failed(second: float, trace: str, attempt: int = 0) -> str:
    return (
        line(
            second,
            f"Totals (1/2) ({GRAPH}_8eeed16b661251f13cfc6a3c5e75c420_0_{attempt}) switched from"
            " RUNNING to FAILED on host:1 @ host (dataPort=1).",
        )
        + trace
    )


def completed_then(second: float, number: int, *rest: str) -> str:
    return completed(second, number) + "".join(rest)


FULL = (
    "java.io.IOException: Could not perform checkpoint 5 for operator Totals (1/2)#0.\n"
    "\tat org.apache.flink.streaming.runtime.tasks.StreamTask.triggerCheckpointOnBarrier"
    "(StreamTask.java:1256)\n"
    "Caused by: java.io.IOException: No space left on device\n"
    "\tat java.io.FileOutputStream.writeBytes(Native Method)\n"
    "\t... 3 more\n"
)
NPE = (
    "java.lang.NullPointerException: null\n"
    "\tat com.acme.Enricher.map(Enricher.java:15)\n"
    "\tat org.apache.flink.streaming.api.operators.StreamMap.processElement(StreamMap.java:38)\n"
)
STRANGE = (
    "org.apache.flink.util.FlinkException: The frobnicator is out of phase\n"
    "\tat org.apache.flink.runtime.frob.Frobnicator.turn(Frobnicator.java:15)\n"
)
SUPPRESSED = (
    "org.apache.flink.runtime.JobException: Recovery is suppressed by"
    " FixedDelayRestartBackoffTimeStrategy(maxNumberRestartAttempts=1, backoffTimeMS=1000)\n"
    "\tat org.apache.flink.runtime.executiongraph.failover.flip1.ExecutionFailureHandler"
    ".handleFailure(ExecutionFailureHandler.java:138)\n"
)

HEAP_FULL = (
    "java.lang.OutOfMemoryError: Java heap space\n"
    "\tat org.apache.flink.runtime.state.heap.CopyOnWriteStateMap.put(CopyOnWriteStateMap.java:1)\n"
)
NO_SLOTS = (
    "org.apache.flink.runtime.jobmanager.scheduler.NoResourceAvailableException: Could not acquire"
    " the minimum required resources.\n"
)

THRESHOLD = (
    "org.apache.flink.util.FlinkRuntimeException: Exceeded checkpoint tolerable failure"
    " threshold.\n"
    "\tat org.apache.flink.runtime.checkpoint.CheckpointFailureManager.checkFailureAgainstCounter"
    "(CheckpointFailureManager.java:206)\n"
)


def loop(trace: str, count: int, start: float = 10) -> str:
    """``count`` failures of one kind, four seconds apart, without a checkpoint between them."""
    text = ""
    for attempt in range(count):
        at = start + 4 * attempt
        text += failed(at, trace, attempt) + state(at, "RUNNING", "RESTARTING")
        text += state(at + 3, "RESTARTING", "RUNNING")
    return text


def signatures(incident):
    return [d.signature for d in incident.diagnoses]


def test_a_log_without_failures_is_healthy(diagnose):
    found = diagnose(jobmanager=state(1, "CREATED", "RUNNING") + completed(2, 1) + completed(4, 2))
    assert [i.verdict for i in found.incidents] == ["healthy"]
    assert found.incidents[0].diagnoses == ()


def rescheduled(second: float) -> str:
    """The adaptive scheduler cancels a job and creates it again."""
    return (
        line(second, "Restarting job.", logger="AdaptiveScheduler")
        + state(second, "RUNNING", "CANCELLING")
        + state(second, "CANCELLING", "CANCELED")
        + state(second + 1, "CREATED", "RUNNING")
    )


def test_the_adaptive_scheduler_restarts_a_job_by_cancelling_it(diagnose):
    text = completed(5, 4)
    for attempt, at in enumerate((10, 20)):
        text += failed(at, FULL, attempt) + rescheduled(at)
    (incident,) = diagnose(jobmanager=text + completed(30, 5)).incidents
    assert signatures(incident)[0] == "disk/full"
    assert (incident.outcome, incident.restarts) == ("recovered", 2)


def test_a_job_that_is_cancelled_is_not_restarted_where_no_line_has_a_time(diagnose):
    def timeless(text: str) -> str:
        return "".join(row.split(" ", 2)[2] for row in text.splitlines(keepends=True))

    canceled = completed(5, 4) + state(10, "RUNNING", "CANCELLING")
    assert [i.restarts for i in diagnose(jobmanager=timeless(canceled)).incidents] == [0]


def test_a_job_that_is_rescaled_has_not_failed(diagnose):
    text = completed(5, 4) + rescheduled(10) + completed(30, 5)
    assert [i.verdict for i in diagnose(jobmanager=text).incidents] == ["healthy"]


def test_root_cause_outranks_the_wrapper_in_its_own_trace(diagnose):
    incident = diagnose(jobmanager=completed(5, 4) + loop(FULL, 2)).incidents[0]
    assert incident.verdict == "diagnosed"
    assert incident.diagnoses[0].signature == "disk/full"
    assert incident.diagnoses[0].evidence[0].excerpt.endswith("No space left on device")
    assert incident.last_healthy is not None
    assert incident.last_healthy.checkpoint_id == 4
    assert incident.restarts == 2


def test_evidence_points_at_the_line_of_the_cause_not_at_the_header(diagnose):
    text = completed(5, 4) + loop(FULL, 1)
    evidence = diagnose(jobmanager=text).incidents[0].diagnoses[0].evidence[0]
    assert text.split("\n")[evidence.line - 1].endswith("No space left on device")


def test_fault_without_a_time_does_not_hide_the_start_time(diagnose):
    untimed = (
        'Exception in thread "main" java.lang.OutOfMemoryError: Java heap space\n'
        "\tat com.acme.Cache.put(Cache.java:3)\n"
    )
    assert diagnose(a=untimed).incidents[0].started_at is None
    started_at = diagnose(a=untimed, b=failed(40, NPE)).incidents[0].started_at
    assert started_at is not None
    assert (started_at.minute, started_at.second) == (0, 40)


def test_recurring_failure_outranks_an_unrelated_first_failure(diagnose):
    text = completed(5, 4) + loop(NPE, 1) + loop(FULL, 3, start=14)
    incident = diagnose(jobmanager=text).incidents[0]
    assert signatures(incident)[:2] == ["disk/full", "operator/user-code-exception"]


def test_a_symptom_without_its_cause_is_first_as_a_symptom(diagnose):
    incident = diagnose(jobmanager=completed(5, 4) + loop(THRESHOLD, 2)).incidents[0]
    assert incident.diagnoses[0].signature == "checkpoint/tolerable-threshold-exceeded"
    assert incident.diagnoses[0].role == "symptom"
    assert incident.missing_evidence


def test_a_symptom_is_explained_by_its_cause(diagnose):
    text = completed(5, 4) + line(9, "Decline checkpoint", "WARN") + FULL + loop(THRESHOLD, 2)
    incident = diagnose(jobmanager=text).incidents[0]
    assert incident.diagnoses[0].signature == "disk/full"
    assert "checkpoint/tolerable-threshold-exceeded" in incident.diagnoses[0].explains
    assert incident.diagnoses[0].confidence > 0.9


def test_options_of_an_explained_symptom_are_not_in_the_patch(diagnose):
    text = completed(5, 4) + failed(9, HEAP_FULL) + failed(20, NO_SLOTS)
    incident = diagnose(jobmanager=text).incidents[0]
    explained = [d for d in incident.diagnoses if d.signature in incident.diagnoses[0].explains]
    assert any(d.remediation.config for d in explained)
    assert incident.config == incident.diagnoses[0].remediation.config


@pytest.mark.parametrize(
    ("limit", "value"), [(805306368, "1 gb"), (268435456, "512 mb")], ids=["set", "default"]
)
def test_metaspace_is_not_set_below_the_limit_of_the_jvm(diagnose, limit: int, value: str) -> None:
    runner = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
    log = line(0, f"    -XX:MaxMetaspaceSize={limit}", logger=runner)
    log += failed(60, "java.lang.OutOfMemoryError: Metaspace\n\tat java.lang.A.b(A.java:1)\n")
    (incident,) = diagnose(taskmanager=log).incidents
    (config,) = incident.diagnoses[0].remediation.config
    assert (config.key, config.value) == ("taskmanager.memory.jvm-metaspace.size", value)


def test_a_cause_holds_the_values_of_the_log(diagnose):
    text = line(
        9, "java.lang.IllegalStateException: Unrecognized checkpoint version number: 6", "ERROR"
    )
    (diagnosis, *_) = diagnose(jobmanager=text).incidents[0].diagnoses
    assert diagnosis.signature == "checkpoint/written-by-newer-flink"
    assert "format version 6," in diagnosis.cause


def test_an_unknown_failure_is_undetermined_and_reported(diagnose):
    found = diagnose(jobmanager=completed(5, 4) + loop(STRANGE, 2))
    assert found.incidents[0].verdict == "undetermined"
    assert "frobnicator" in found.incidents[0].first_fault.excerpt
    assert {o.root_cause_message for o, _ in found.unknown_faults} >= {
        "The frobnicator is out of phase"
    }


def test_an_unknown_first_fault_outranks_its_known_consequence(diagnose):
    incident = diagnose(jobmanager=completed(5, 4) + loop(STRANGE + "", 1) + loop(THRESHOLD, 1, 14))
    assert incident.incidents[0].verdict == "undetermined"


def test_failures_separated_by_a_healthy_period_are_two_incidents(diagnose):
    text = completed(5, 4) + loop(NPE, 1) + completed(30, 5) + completed(40, 6) + loop(FULL, 2, 50)
    found = diagnose(jobmanager=text)
    assert sorted(i.diagnoses[0].signature for i in found.incidents) == [
        "disk/full",
        "operator/user-code-exception",
    ]
    assert {i.restarts for i in found.incidents} == {1, 2}


def test_failure_that_recurs_after_a_checkpoint_is_one_incident(diagnose):
    text = completed(5, 4) + loop(FULL, 1) + completed(20, 5) + loop(FULL, 1, 30)
    assert len(diagnose(jobmanager=text).incidents) == 1


def test_exception_without_its_stack_belongs_to_the_same_incident(diagnose):
    bare = "java.lang.NullPointerException: null\n"
    text = completed(5, 4) + loop(NPE, 1) + completed(20, 5) + loop(bare, 1, 30)
    incidents = diagnose(jobmanager=text).incidents
    assert [signatures(i) for i in incidents] == [["operator/user-code-exception"]]


def test_two_jobs_that_fail_at_the_same_time_stay_apart(diagnose, observe):
    other = "f" * 32
    first = completed(5, 4) + loop(FULL, 2)
    second = (completed(5, 4) + loop(NPE, 2)).replace(JOB, other).replace(GRAPH, "e" * 32)
    tie = line(1, f"Created execution graph {GRAPH} for job {JOB}.")
    tie += line(1, f"Created execution graph {'e' * 32} for job {other}.")
    mixed = diagnose(jobmanager=tie + first, taskmanager=second)
    by_job = {i.job_id: i.diagnoses[0].signature for i in mixed.incidents}
    assert by_job == {JOB: "disk/full", other: "operator/user-code-exception"}


def test_outcome_is_ongoing_recovered_or_failed(diagnose):
    trouble = completed(5, 4) + loop(FULL, 1)
    for ending, outcome in (
        ("", "ongoing"),
        (completed(60, 9), "recovered"),
        (state(60, "FAILING", "FAILED"), "failed"),
    ):
        assert diagnose(jobmanager=trouble + ending).incidents[0].outcome == outcome


def test_a_thousand_turns_of_the_loop_rank_like_three(diagnose):
    few = diagnose(jobmanager=completed(5, 4) + loop(NPE, 1) + loop(FULL, 3, 14)).incidents[0]
    many = diagnose(jobmanager=completed(5, 4) + loop(NPE, 1) + loop(FULL, 300, 14)).incidents[0]
    assert signatures(few) == signatures(many)
    assert many.restarts == 301


def test_a_clock_that_is_thirty_seconds_off_does_not_change_the_answer(diagnose, observe):
    observations = observe(
        jobmanager=completed(5, 4) + loop(THRESHOLD, 2), taskmanager=line(9, "x", "WARN") + FULL
    )

    def shifted(observation, seconds):
        event = observation.event
        if "taskmanager" not in event.path or event.logged_at is None:
            return observation
        return replace(
            observation,
            event=replace(event, logged_at=event.logged_at + timedelta(seconds=seconds)),
        )

    answers = {
        seconds: signatures(diagnose([shifted(o, seconds) for o in observations]).incidents[0])[0]
        for seconds in (-30, 0, 30)
    }
    assert answers == dict.fromkeys((-30, 0, 30), "disk/full")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param(
            "bookie",
            line(1, "oops", "ERROR", "org.apache.bookkeeper.bookie.Bookie")
            + "org.rocksdb.RocksDBException: block checksum mismatch: stored = 1, computed = 2,"
            " type = 4  in /data/ledgers/000037.sst offset 0 size 29026\n"
            "\tat org.rocksdb.RocksDB.get(Native Method)\n"
            "\tat org.apache.bookkeeper.bookie.storage.ldb.KeyValueStorageRocksDB.get(K.java:1)\n",
            id="BookKeeper",
        ),
        pytest.param(
            "tool",
            "[2026-11-21 05:00:00,000] WARN [AdminClient clientId=adminclient-1] Metadata update"
            " failed due to authentication error"
            " (org.apache.kafka.clients.admin.internals.AdminMetadata)\n"
            "org.apache.kafka.common.errors.SslAuthenticationException: SSL handshake failed\n"
            "\tat java.base/sun.security.ssl.Alert.createSSLException(Alert.java:131)\n",
            id="a Kafka tool",
        ),
    ],
)
def test_logs_of_another_product_raise_no_alarm(diagnose, name, text):
    incident = diagnose(**{name: text}).incidents[0]
    assert (incident.verdict, incident.diagnoses) == ("not-flink", ())


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "24/02/08 01:24:30 ERROR repl.Main: Failed to initialize Spark session.\n"
            "Caused by: org.apache.hadoop.security.AccessControlException: Client cannot"
            " authenticate via:[TOKEN, KERBEROS]\n",
            id="a Spark shell",
        ),
        pytest.param(
            "org.apache.hadoop.security.token.SecretManager$InvalidToken: token (token 1 for acme)"
            " can't be found in cache\n"
            "\tat org.apache.hadoop.ipc.Server$Connection.saslReadAndProcess(Server.java:1203)\n",
            id="an authentication failure in a Hadoop server",
        ),
        pytest.param(
            "org.springframework.data.mongodb.UncategorizedMongoDbException: Command failed with"
            " error 286 (ChangeStreamHistoryLost): 'Resume of change stream was not possible, as"
            " the resume point may no longer be in the oplog.'\n",
            id="Spring",
        ),
        pytest.param(
            "ERROR acme_stream::source::reader: hang up due to ProvisionedThroughputExceeded"
            "Exception: Rate exceeded for shard shardId-000000000000 in stream orders\n",
            id="a Rust program",
        ),
        pytest.param(
            "org.apache.kafka.common.errors.TimeoutException: Timeout of 5000ms expired before the"
            " position for partition orders-0 could be determined\n"
            "o.a.k.c.c.i.ConsumerCoordinator [Consumer clientId=consumer-28, groupId=orders] User"
            " provided listener akka.kafka.internal.KafkaConsumerActor$WrappedAutoPausedListener"
            " failed on partition assignment\n",
            id="an Alpakka consumer",
        ),
        pytest.param(
            "2021-01-13 11:07:27,108 - [ERROR] - from kafka.manager.actor.cluster.KafkaStateActor"
            " in kafka-manager-system-akka.actor.default-dispatcher-37\n"
            "org.apache.kafka.common.errors.TimeoutException: Failed to get offsets by times in"
            " 33958ms\n",
            id="a Kafka manager",
        ),
        pytest.param(
            "2019-12-27 07:46:20,147 ERROR [main-EventThread] o.a.c.f.imps.CuratorFrameworkImpl"
            " Background operation retry gave up\n"
            "org.apache.zookeeper.KeeperException$ConnectionLossException: KeeperErrorCode ="
            " ConnectionLoss\n"
            "\tat org.apache.curator.framework.imps.CuratorFrameworkImpl.checkBackgroundRetry("
            "CuratorFrameworkImpl.java:862)\n",
            id="a program with its own Curator client",
        ),
        pytest.param(
            "[2018-08-23 19:38:24,291] ERROR Server died unexpectedly:"
            "  (io.confluent.kafka.schemaregistry.rest.SchemaRegistryMain:52)\n"
            "org.apache.kafka.common.errors.TimeoutException: Timeout expired while fetching topic"
            " metadata\n",
            id="a schema registry, identified by its logger",
        ),
        pytest.param(
            "org.apache.kafka.common.errors.TimeoutException: Timeout expired while fetching topic"
            " metadata\n"
            "\tat org.glassfish.jersey.server.ServerRuntime.process(ServerRuntime.java:235)\n",
            id="a server with a REST API",
        ),
        pytest.param(
            "java.lang.RuntimeException: org.apache.hadoop.ipc.RemoteException"
            "(org.apache.hadoop.security.authorize.AuthorizationException): User: etl is not"
            " allowed to impersonate hive\n"
            "\tat org.apache.hive.service.cli.CLIService.openSession(CLIService.java:193)\n",
            id="HiveServer2",
        ),
    ],
)
def test_text_shared_with_flink_raises_no_alarm_in_another_product(diagnose, text):
    incidents = diagnose(pasted=text).incidents
    assert [i for i in incidents if i.diagnoses] == []


def test_failed_task_alone_identifies_a_flink_failure(diagnose):
    text = "Enricher (1/2) switched from RUNNING to FAILED\n" + NPE.partition("\tat org.")[0]
    (diagnosis,) = diagnose(pasted=text).incidents[0].diagnoses
    assert diagnosis.signature == "operator/user-code-exception"


def test_class_not_found_does_not_identify_another_product(diagnose):
    text = "Caused by: java.lang.ClassNotFoundException: org.apache.hadoop.mapred.JobConf\n"
    first, second = diagnose(pasted=text).incidents[0].diagnoses
    assert first.signature == "filesystem/hadoop-classpath-missing"
    assert second.signature == "classloading/user-class-missing"


def test_jars_of_frames_identify_a_flink_trace(diagnose):
    lost = "com.acme.shaded.org.apache.iceberg.exceptions.CommitFailedException: lost the race\n"
    frame = "\tat com.acme.tables.Commits.run(Commits.java:45)"
    incidents = diagnose(pasted=f"{lost}{frame} ~[flink-dist-1.16.0.jar:1.16.0]\n").incidents
    assert [signatures(i)[0] for i in incidents] == ["iceberg/commit-conflict"]
    incidents = diagnose(pasted=f"{lost}{frame} ~[acme-tables-1.2.jar:1.2]\n").incidents
    assert [signatures(i) for i in incidents] == [[]]


def test_a_process_that_ended_when_asked_leaves_no_incident(diagnose):
    gone = (
        "Association with remote system [akka.tcp://flink@172.19.0.8:33487] has failed, address is"
        " now gated for [50] ms. Reason: [Disassociated]"
    )
    text = line(1, gone, "WARN", "akka.remote.ReliableDeliverySupervisor") + line(
        2, "RECEIVED SIGNAL 15: SIGTERM. Shutting down as requested."
    )
    assert [i.verdict for i in diagnose(jobmanager=text).incidents] == ["healthy"]


def test_frames_without_a_beginning_do_not_hide_a_symptom(diagnose):
    symptom = (
        "org.apache.flink.util.FlinkException: Global failure triggered by OperatorCoordinator for"
        " 'Source: orders[1]' (operator cbc357ccb763df2852fee8c4fc7d55f2).\n"
    )
    frames = "\tat org.apache.flink.yarn.A.b(A.java:1)\n\tat org.apache.flink.yarn.A.c(A.java:2)\n"
    incidents = diagnose(pasted=f"{frames}\n{symptom}").incidents
    assert [(i.verdict, signatures(i)) for i in incidents] == [
        ("diagnosed", ["job/operator-coordinator-failed"])
    ]


def test_symptom_does_not_explain_an_unknown_cause_below_it(diagnose):
    head = (
        "org.apache.flink.util.FlinkException: Global failure triggered by OperatorCoordinator for"
        " 'Source: orders[1]' (operator cbc357ccb763df2852fee8c4fc7d55f2).\n"
    )
    named = (
        f"{head}Caused by: java.io.IOException: No space left on device\n\tat java.io.A.b(A.java)\n"
    )
    unnamed = head + "Caused by: " + STRANGE.replace("org.apache.flink", "org.apache.thrift")
    result = diagnose(pasted=unnamed)
    assert result.incidents[0].verdict == "undetermined"
    assert result.unknown_faults[0][0].root_cause_message == "The frobnicator is out of phase"
    assert signatures(diagnose(pasted=named).incidents[0])[0] == "disk/full"
    assert diagnose(pasted=head).incidents[0].verdict == "diagnosed"
    of_kafka = (
        line(1, "Failed to commit consumer offsets for checkpoint 8", "WARN")
        + "org.apache.kafka.clients.consumer.RetriableCommitFailedException: Offset commit failed "
        "with a retriable exception. You should retry committing the latest consumed offsets.\n"
        "Caused by: org.apache.kafka.common.errors.DisconnectException\n"
    )
    assert diagnose(taskmanager=of_kafka).incidents[0].verdict == "diagnosed"


def test_the_version_is_that_of_the_banner_or_else_of_the_jars(diagnose, observe):
    banner = line(1, " Starting TaskManager (Version: 1.16.0, Scala: 2.12)")
    jar = "\tat org.apache.flink.A.b(A.java:1) ~[flink-dist_2.12-1.11.2.jar:1.11.2]\n"
    trace = line(2, "x", "WARN") + FULL.partition("\n")[0] + "\n" + jar
    assert diagnose(taskmanager=trace).incidents[0].flink_version == "1.11.2"
    assert diagnose(taskmanager=trace + banner).incidents[0].flink_version == "1.16.0"
    assert {o.flink_version for o in observe(taskmanager=trace)} == {"1.11.2"}


STOPPED = (
    "org.apache.flink.util.FlinkExpectedException: The TaskExecutor is shutting down.\n"
    "\tat org.apache.flink.runtime.taskexecutor.TaskExecutor.onStop(TaskExecutor.java:481)\n"
)


EXPIRED = (
    "org.apache.flink.runtime.checkpoint.CheckpointException: Checkpoint expired before"
    " completing.\n"
    "\tat org.apache.flink.runtime.checkpoint.CheckpointCoordinator$CheckpointCanceller.run"
    "(CheckpointCoordinator.java:2143)\n"
)


def expired(second: float, number: int) -> str:
    message = f"Checkpoint {number} of job {JOB} expired before completing."
    failed_with = f"Failed to trigger or complete checkpoint {number} for job {JOB}."
    return line(second, message, "WARN") + line(second, failed_with, "WARN") + EXPIRED


def test_stop_at_the_end_of_an_incident_is_not_its_cause(diagnose) -> None:
    trouble = "".join(expired(10 + 4 * n, n) for n in range(5))
    text = completed(5, 0) + trouble + failed(60, STOPPED) + state(60, "RUNNING", "RESTARTING")
    (incident,) = diagnose(jobmanager=text).incidents
    assert signatures(incident)[0] == "checkpoint/expired"
    stop = next(d for d in incident.diagnoses if d.signature == "taskmanager/shutdown-requested")
    assert any(reason.startswith("afterwards:") for reason in stop.reasons)
    assert "checkpoint/expired" not in stop.explains


def test_stop_after_another_failure_of_the_job_is_not_its_cause(diagnose) -> None:
    text = completed(5, 0) + loop(FULL, 1) + failed(30, STOPPED)
    text += state(30, "RUNNING", "RESTARTING")
    (incident,) = diagnose(jobmanager=text).incidents
    assert signatures(incident)[0] == "disk/full"


SEEKER = "org.apache.flink.runtime.taskexecutor.TaskExecutor"
SOUGHT = (
    "Could not resolve ResourceManager address pekko.tcp://flink@jm:6123/user/rpc/resourcemanager_*,"
    " retrying in 10000 ms: Could not connect to rpc endpoint under address jm."
)
GATED = (
    "Association with remote system [pekko.tcp://flink@jm:6123] has failed, address is now gated"
    " for [50] ms. Reason: [Association failed with [pekko.tcp://flink@jm:6123]] Caused by:"
    " [java.net.ConnectException: Connection refused: jm/10.0.0.5:6123]"
)


def test_a_taskmanager_that_finds_its_jobmanager_in_the_end_is_healthy(diagnose) -> None:
    gated = line(1, GATED, "WARN", "org.apache.pekko.remote.ReliableDeliverySupervisor")
    started = gated + line(1.1, SOUGHT, logger=SEEKER)
    found = line(12, "Successful registration at resource manager pekko.tcp://flink@jm:6123/u.")
    (incident,) = diagnose(taskmanager=started + found).incidents
    assert incident.verdict == "healthy"
    for ending in ("", found.replace("05:00", "05:09")):
        (incident,) = diagnose(taskmanager=started + ending).incidents
        assert signatures(incident)[0] == "taskmanager/registration-timeout"
    (incident,) = diagnose(taskmanager=found + gated.replace("05:00", "05:09")).incidents
    assert signatures(incident)[0] == "rpc/association-gated"


def test_stop_long_after_recovery_is_a_separate_incident(diagnose) -> None:
    text = completed(5, 0) + loop(FULL, 1) + line(50, "Late.", "ERROR") + FULL
    text += completed(60, 9) + failed(90, STOPPED, 1)
    trouble, stop = diagnose(jobmanager=text).incidents
    assert (signatures(trouble)[0], trouble.outcome) == ("disk/full", "recovered")
    assert "taskmanager/shutdown-requested" not in signatures(trouble)
    assert signatures(stop) == ["taskmanager/shutdown-requested"]


def test_stop_at_the_start_of_an_incident_is_its_cause(diagnose) -> None:
    gone = (
        "org.apache.flink.runtime.io.network.partition.PartitionNotFoundException: Partition"
        " 8ba9#0@6f6c not found.\n"
        "\tat org.apache.flink.runtime.io.network.partition.ResultPartitionManager"
        ".createSubpartitionView(ResultPartitionManager.java:121)\n"
    )
    text = completed(5, 0) + failed(30, STOPPED) + state(30, "RUNNING", "RESTARTING")
    text += state(31, "RESTARTING", "RUNNING") + failed(33, gone, 1)
    text += state(33, "RUNNING", "RESTARTING")
    (incident,) = diagnose(jobmanager=text).incidents
    assert signatures(incident)[0] == "taskmanager/shutdown-requested"
    assert "network/partition-not-found" in signatures(incident)[1:]


def test_single_expired_checkpoint_before_a_stop_is_not_the_cause(diagnose) -> None:
    text = completed(5, 0) + expired(10, 1) + failed(60, STOPPED)
    text += state(60, "RUNNING", "RESTARTING")
    (incident,) = diagnose(jobmanager=text).incidents
    assert signatures(incident)[0] == "taskmanager/shutdown-requested"


def test_fault_without_a_time_does_not_precede_a_stop(diagnose) -> None:
    text = completed(5, 0) + expired(30, 1) + failed(60, STOPPED)
    text += state(60, "RUNNING", "RESTARTING")
    (incident,) = diagnose(jobmanager=text, excerpt=EXPIRED).incidents
    stop = incident.diagnoses[0]
    assert stop.signature == "taskmanager/shutdown-requested"
    assert not any(reason.startswith("afterwards:") for reason in stop.reasons)


def test_contributing_signature_is_no_incident_of_a_finished_job(diagnose) -> None:
    skipped = line(
        21,
        f"Failed to trigger checkpoint for job {JOB} since some tasks of job {JOB} has been"
        " finished, abort the checkpoint Failure reason: Not all required tasks are currently"
        " running.",
    )
    began = state(1, "CREATED", "RUNNING") + skipped
    (incident,) = diagnose(jobmanager=began).incidents
    assert signatures(incident) == ["checkpoint/tasks-finished"]
    (incident,) = diagnose(jobmanager=began + state(30, "RUNNING", "FINISHED")).incidents
    assert incident.verdict == "healthy"
