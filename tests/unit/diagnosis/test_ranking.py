"""What is said first, where the words of one fault would weigh more than those of its cause."""

from __future__ import annotations

from test_incidents import completed, line, state

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


def test_what_explains_a_fault_stands_before_it(diagnose):
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
    assert any(reason.startswith("it stands behind what explains it") for reason in second.reasons)


SKIPPED_LINE = (
    "Error while trying to split key and value in configuration file /opt/flink/conf/"
    "flink-conf.yaml:10: Line is not a key-value pair (missing space after ':'?)"
)
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


def test_what_was_only_warned_of_stands_behind_what_failed_the_job(diagnose):
    warned = line(0, SKIPPED_LINE, "WARN", CONFIGURATION)
    (incident,) = diagnose(jobmanager=failing_after(warned)).incidents
    assert [d.signature for d in incident.diagnoses] == [
        "jdbc/connection-failed",
        "config/file-invalid",
    ]
    (incident,) = diagnose(jobmanager=failing_after(warned.replace(" WARN ", " ERROR "))).incidents
    assert incident.diagnoses[0].signature == "config/file-invalid"
