"""Verdicts without an incident: healthy requires proof, and other verdicts state the reason."""

from __future__ import annotations

import pytest

from flink_triage.diagnosis import diagnose_incrementally
from flink_triage.remediation import OptionTable
from tests.unit.diagnosis.test_incidents import JOB, completed, line, state

ERROR = line(
    7, "Uncaught problem in the sink: java.io.IOException: no route", "ERROR", "com.acme.Sink"
)
WARNED = ERROR.replace("ERROR", "WARN")


def test_single_error_is_not_healthy(diagnose) -> None:
    (incident,) = diagnose(jobmanager=line(1, "Starting the rest endpoint.") + ERROR).incidents
    assert (incident.verdict, incident.outcome) == ("undetermined", "unknown")
    assert incident.summary.endswith("IOException: no route")
    assert (incident.first_fault.line, incident.first_fault.at) == (2, incident.started_at)


def test_a_throwable_in_a_sentence_without_a_level_is_an_error(diagnose) -> None:
    text = "Could not load service provider. java.util.MissingResourceException: no bundle\n"
    (incident,) = diagnose(pasted=text).incidents
    assert (incident.verdict, incident.first_fault.excerpt) == ("text-only", text.rstrip())
    (incident,) = diagnose(pasted=text + line(1, "Slow.", "WARN")).incidents
    assert (incident.verdict, incident.first_fault.excerpt) == ("undetermined", text.rstrip())


@pytest.mark.parametrize("sign", [completed(9, 4), state(9, "CREATED", "RUNNING")])
def test_error_followed_by_a_healthy_job_is_harmless(diagnose, sign: str) -> None:
    (incident,) = diagnose(jobmanager=ERROR + sign).incidents
    assert incident.verdict == "healthy"
    (incident,) = diagnose(jobmanager=sign + ERROR.replace("05:00:07", "05:00:17")).incidents
    assert (incident.verdict, incident.first_fault.line) == ("undetermined", 2)


def test_healthy_names_the_errors_that_did_not_stop_a_job(diagnose) -> None:
    error = line(
        1,
        "Cannot create Hadoop Security Module.\n"
        "java.lang.NoClassDefFoundError: org/apache/hadoop/hdfs/HdfsConfiguration\n"
        "\tat org.apache.flink.runtime.security.SecurityUtils.install(SecurityUtils.java:64)",
        "ERROR",
        "org.apache.flink.runtime.security.modules.HadoopModuleFactory",
    )
    (incident,) = diagnose(jobmanager=error * 2 + completed(9, 4)).incidents
    assert incident.verdict == "healthy"
    assert incident.summary == (
        "No failure was found in these logs. Errors that did not stop a job: Hadoop Security"
        " Module or delegation token provider is not available at startup"
        " (kerberos/hadoop-module-skipped)."
    )


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (WARNED, "healthy"),
        (completed(9, 4), "healthy"),
        ("", "no-logs"),
        ('Error from server (NotFound): pods "orders-1" not found\n', "no-logs"),
        (
            "tail: cannot open '/opt/flink/log/a.log' for reading: No such file or directory\n",
            "no-logs",
        ),
        ("The job ran without failures for nine days.\n", "no-logs"),
        ("The job crashed twice, and nobody knows why.\n", "text-only"),
    ],
)
def test_verdict_is_healthy_only_for_flink_logs(diagnose, text: str, verdict: str) -> None:
    assert [i.verdict for i in diagnose(jobmanager=text).incidents] == [verdict]


def test_logs_that_never_mention_flink_are_not_flink_logs(diagnose) -> None:
    text = WARNED.replace("com.acme.Sink", "com.acme.Shop")
    assert [i.verdict for i in diagnose(shop=text).incidents] == ["not-flink"]


NOT_LEADER = """\
Caused by: org.apache.flink.runtime.rest.util.RestClientException: [Internal server error., \
<Exception on server side:
org.apache.flink.runtime.rpc.exceptions.FencingTokenException: Fencing token not set: Ignoring \
message LocalFencedMessage(ac4f, LocalRpcInvocation(requestJobStatus(JobID, Time))) sent to \
akka.tcp://flink@jm:6123/user/dispatcher because the fencing token is null.
\tat org.apache.flink.runtime.rpc.akka.FencedAkkaRpcActor.handleRpcMessage(Actor.java:63)
"""


def test_stack_trace_of_an_excerpt_is_an_incident_even_if_logs_usually_contain_it(diagnose) -> None:
    (incident,) = diagnose(pasted=NOT_LEADER).incidents
    assert [one.signature for one in incident.diagnoses] == ["rpc/fencing-token-mismatch"]
    in_a_log = line(1, "Status failed.", "WARN") + NOT_LEADER + completed(9, 4)
    assert [i.verdict for i in diagnose(jobmanager=in_a_log).incidents] == ["healthy"]


def test_excerpt_that_becomes_a_log_is_diagnosed_in_full(observe, pack) -> None:
    excerpt = line(1, "Request failed.", "WARN") + NOT_LEADER
    stopped = line(9, "RECEIVED SIGNAL 15: SIGTERM. Shutting down as requested.")
    read = observe(jobmanager=excerpt + stopped)
    options = OptionTable.load()
    first = diagnose_incrementally("d", None, read[:1], pack, options)
    assert first is not None
    assert first.carried is not None
    assert len(first.open.incidents[0].diagnoses) == 1
    assert diagnose_incrementally("d", first.carried, read[1:], pack, options) is None


@pytest.mark.parametrize("later", [WARNED.replace("05:07", "05:40"), completed(9, 4)])
def test_an_error_of_an_earlier_run_is_remembered(diagnose, observe, pack, later: str) -> None:
    options = OptionTable.load()
    read = observe(jobmanager=state(1, "INITIALIZING", "CREATED") + ERROR + later)
    first = diagnose_incrementally("d", None, read[:2], pack, options)
    assert first is not None
    then = diagnose_incrementally("d", first.carried, read[2:], pack, options)
    assert then is not None
    assert then.open.incidents == diagnose(read).incidents


def test_error_with_a_known_meaning_is_not_carried_to_the_next_run(observe, pack) -> None:
    known = line(
        1,
        f"Exception occurred in REST handler: Checkpointing is not enabled for this job ({JOB}).",
        "ERROR",
        "org.apache.flink.runtime.rest.handler.job.checkpoints.CheckpointConfigHandler",
    )
    read = observe(jobmanager=known + WARNED.replace("05:07", "05:40"))
    first = diagnose_incrementally("d", None, read[:1], pack, OptionTable.load())
    assert first is not None
    then = diagnose_incrementally("d", first.carried, read[1:], pack, OptionTable.load())
    assert then is not None
    assert [i.verdict for i in (*first.open.incidents, *then.open.incidents)] == 2 * ["healthy"]


ASKED = "org.apache.flink.runtime.rest.handler.job.JobDetailsHandler"
ANSWER = "Exception occurred in REST handler: Job {} not found"
THROWN = "org.apache.flink.runtime.rest.NotFoundException: Job {} not found"


@pytest.mark.parametrize("job", [JOB, "****", "0a1b\u20269e8d", "<id>"])
@pytest.mark.parametrize(
    "message", ["Exception occurred in REST handler: Job {} not found", THROWN]
)
def test_an_unknown_job_is_named_in_an_excerpt_only(diagnose, job: str, message: str) -> None:
    asked = line(7, message.format(job), "WARN", ASKED)
    (incident,) = diagnose(excerpt=asked).incidents
    assert [d.signature for d in incident.diagnoses] == ["rest/job-unknown"]
    (incident,) = diagnose(jobmanager=state(1, "CREATED", "RUNNING") + asked).incidents
    assert incident.verdict == "healthy"


@pytest.mark.parametrize(
    ("before", "verdict"),
    [
        ("", "undetermined"),
        (completed(2, 4), "healthy"),
        (state(1, "CREATED", "RUNNING"), "healthy"),
    ],
)
@pytest.mark.parametrize("level", ["WARN", "INFO"])
def test_an_exception_below_error_is_not_healthy_in_an_excerpt(
    diagnose, level: str, before: str, verdict: str
) -> None:
    thrown = "org.apache.flink.runtime.rest.FakeUnknownException: odd"
    frame = "\tat org.apache.flink.runtime.rest.RestClient.send(RestClient.java:1)\n"
    warned = line(7, thrown, level, "org.apache.flink.runtime.rest.RestClient") + frame
    (incident,) = diagnose(jobmanager=before + warned).incidents
    assert incident.verdict == verdict
    assert incident.summary.endswith(thrown) is (verdict == "undetermined")


def test_a_warning_of_an_earlier_run_is_remembered(diagnose, observe, pack) -> None:
    warned = line(7, "org.apache.flink.runtime.rest.FakeUnknownException: odd", "WARN", ASKED)
    read = observe(jobmanager=warned + WARNED.replace("05:07", "05:40"))
    first = diagnose_incrementally("d", None, read[:1], pack, OptionTable.load())
    assert first is not None
    then = diagnose_incrementally("d", first.carried, read[1:], pack, OptionTable.load())
    assert then is not None
    assert then.open.incidents == diagnose(read).incidents


LARGE = (
    "RecordTooLargeException: The message is 1605328 bytes when serialized which is larger than"
    " 1048576, which is the value of the max.request.size configuration."
)


@pytest.mark.parametrize(
    "text",
    [
        f"Since Monday our Flink job falls over, the web UI only shows {LARGE} Any ideas?\n",
        f"**Symptom:** the task ends with `org.apache.kafka.common.errors.{LARGE}`\n",
    ],
)
def test_a_known_failure_is_named_in_a_sentence_and_less_certain(diagnose, text: str) -> None:
    (incident,) = diagnose(question=text).incidents
    (logged,) = diagnose(question=text, jobmanager=_logged(LARGE)).incidents
    assert incident.diagnoses[0].signature == logged.diagnoses[0].signature
    assert incident.diagnoses[0].signature == "kafka/record-too-large"
    assert any("found in prose" in note for note in incident.notes)
    assert not any("found in prose" in note for note in logged.notes)
    assert incident.diagnoses[0].confidence < logged.diagnoses[0].confidence


def _logged(thrown: str) -> str:
    task = "Sink: Out (1/1)#0 (0123456789abcdef0123456789abcdef) switched from RUNNING to FAILED"
    return (
        line(1, f"{task} with failure cause:", "WARN", "org.apache.flink.runtime.taskmanager.Task")
        + f"org.apache.kafka.common.errors.{thrown}\n"
    )


def test_ids_and_numbers_may_be_left_out_of_a_sentence(diagnose) -> None:
    text = "Flink JM: The rpc invocation size XXXX exceeds the maximum akka framesize\n"
    (incident,) = diagnose(question=text).incidents
    assert incident.diagnoses[0].signature == "rpc/oversized-payload"


@pytest.mark.parametrize(
    "record",
    ["pod -> `{}`", "The alert quotes: \u00ab{}\u00bb", "<p>JobManager</p><pre>{}</pre>"],
)
def test_a_record_behind_a_label_keeps_its_level(diagnose, record: str) -> None:
    logged = line(1, "TaskManager initialization failed.", "ERROR", "org.apache.flink.Runner")
    (incident,) = diagnose(question=record.format(logged.rstrip()) + "\n").incidents
    assert (incident.verdict, incident.first_fault.at) == ("undetermined", incident.started_at)
    assert incident.first_fault.excerpt == "TaskManager initialization failed."


MISSING = "java.lang.NoClassDefFoundError: org/apache/hadoop/hdfs/HdfsConfiguration\n"


@pytest.mark.parametrize(
    ("logger", "message", "verdict"),
    [
        (
            "org.apache.flink.runtime.security.token.DefaultDelegationTokenManager",
            "Failed to initialize delegation token provider hadoopfs",
            "healthy",
        ),
        (
            "org.apache.flink.runtime.security.modules.HadoopModuleFactory",
            "Cannot create Hadoop Security Module due to an error. No module will be loaded.",
            "healthy",
        ),
        (
            "org.apache.flink.client.cli.CliFrontend",
            "Error while running the command.",
            "diagnosed",
        ),
    ],
)
def test_exception_that_its_logger_handles_is_harmless(
    diagnose, logger: str, message: str, verdict: str
) -> None:
    (incident,) = diagnose(jobmanager=line(1, message, "ERROR", logger) + MISSING).incidents
    assert incident.verdict == verdict
