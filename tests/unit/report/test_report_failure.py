"""The description of a failure that no signature matches."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flink_triage.model import Evidence, Incident, Result
from flink_triage.report import render
from flink_triage.report.facts.unnamed_failure import Failure, failure_of
from tests.unit.report import examples

RUN = "\tat java.lang.Thread.run(Thread.java:829) [?:?]"
RECORDS = (
    "\tat org.apache.flink.connector.kafka.source.reader.KafkaRecordEmitter.emitRecord"
    "(KafkaRecordEmitter.java:53) ~[flink-connector-kafka-3.2.0-1.19.jar:3.2.0-1.19]"
)
TASK = (
    "\tat org.apache.flink.runtime.taskmanager.Task.run(Task.java:562) "
    "~[flink-dist-1.19.1.jar:1.19.1]"
)


def of(text: str) -> Failure | None:
    return failure_of(*_result(text))


def _result(text: str) -> tuple[Result, Incident]:
    evidence = Evidence("tm.log", 7, 300, None, "it failed", "v1:a")
    result = examples.ALL["undetermined"]()
    incident = replace(result.incidents[0], verdict="undetermined", first_fault=evidence)
    traces = {**result.stack_traces, "v1:a": text}
    return replace(result, incidents=(incident,), stack_traces=traces), incident


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(
            [
                "java.lang.RuntimeException: SplitFetcher thread 1 received an exception",
                TASK,
                RUN,
                "Caused by: java.lang.IllegalArgumentException",
                "\tat org.apache.flink.util.Preconditions.checkArgument(Preconditions.java:122)",
                "\tat org.apache.flink.connector.file.src.impl.StreamFormatAdapter.open"
                "(StreamFormatAdapter.java:264) ~[flink-connector-files-1.17.1.jar:1.17.1]",
                "\t... 6 more",
            ],
            {
                "thrown": "java.lang.IllegalArgumentException, without a message",
                "wrapped in": "java.lang.RuntimeException: SplitFetcher thread 1 received an"
                " exception",
                "at": "org.apache.flink.connector.file.src.impl.StreamFormatAdapter.open"
                " (StreamFormatAdapter.java:264, flink-connector-files-1.17.1.jar)",
                "belongs to": "the file connector",
                "search for": "IllegalArgumentException StreamFormatAdapter.open",
            },
            id="the caller of a check is the location, and an outer message provides the text",
        ),
        pytest.param(
            [
                "java.lang.NullPointerException: field 'ts' of order 4711 is not set here",
                "\tat java.base/java.util.Objects.requireNonNull(Objects.java:233)",
                "\tat com.fasterxml.jackson.databind.JsonNode.required(JsonNode.java:9)",
                "\tat com.acme.Orders.map(Orders.java:31)",
                RECORDS,
                TASK,
                RUN,
            ],
            {
                "thrown": "java.lang.NullPointerException: field 'ts' of order 4711 is not set"
                " here",
                "at": "com.fasterxml.jackson.databind.JsonNode.required (JsonNode.java:9)",
                "in the job's code": "com.acme.Orders.map (Orders.java:31)",
                "belongs to": "Jackson, called by the job's own code",
                "search for": 'NullPointerException "is not set here"',
            },
            id="a library called by user code",
        ),
        pytest.param(
            ["java.io.IOException: unable to open the writer", RECORDS],
            {
                "thrown": "java.io.IOException: unable to open the writer",
                "at": "org.apache.flink.connector.kafka.source.reader.KafkaRecordEmitter"
                ".emitRecord (KafkaRecordEmitter.java:53, flink-connector-kafka-3.2.0-1.19.jar)",
                "belongs to": "the Kafka connector",
                "cut off": 'the trace ends in the middle of its frames: search for "Caused by"'
                " below them in the original log",
                "search for": 'IOException "unable to open the writer"',
            },
            id="frames that end abruptly were truncated",
        ),
        pytest.param(
            [
                "java.lang.RuntimeException: Unable to instantiate the client",
                RUN,
                "Caused by: java.lang.reflect.InvocationTargetException",
                "\tat jdk.internal.reflect.Native.newInstance(Native.java:77) ~[?:?]",
            ],
            {
                "thrown": "java.lang.RuntimeException: Unable to instantiate the client",
                "at": "jdk.internal.reflect.Native.newInstance (Native.java:77)",
                "cut off": "java.lang.reflect.InvocationTargetException only wraps its cause:"
                " search for it below this in the original log",
                "search for": 'RuntimeException "Unable to instantiate the client"',
            },
            id="an exception that only wraps a cause is not the thrown exception",
        ),
        pytest.param(
            ["java.lang.NullPointerException"],
            {
                "thrown": "java.lang.NullPointerException, without a message",
                "cut off": "the JVM omits the frames of exceptions that are thrown often: see the"
                " first ones in the log, or run with -XX:-OmitStackTraceInFastThrow",
            },
            id="frames that the JVM omitted",
        ),
        pytest.param(
            [
                "org.apache.flink.client.program.ProgramInvocationException: The main method"
                " caused an error.",
                "\tat com.acme.Starter.main(Starter.java:3)",
                "Caused by: java.lang.IllegalStateException: no cluster is known",
                TASK,
                "\t... 3 more",
            ],
            {
                "thrown": "java.lang.IllegalStateException: no cluster is known",
                "wrapped in": "org.apache.flink.client.program.ProgramInvocationException: The"
                " main method caused an error.",
                "at": "org.apache.flink.runtime.taskmanager.Task.run (Task.java:562,"
                " flink-dist-1.19.1.jar)",
                "belongs to": "Flink",
                "search for": 'IllegalStateException "no cluster is known"',
            },
            id="client frames of the job submission are not the location of the failure",
        ),
    ],
)
def test_failure_lines_of_a_stack_trace(lines: list[str], expected: dict[str, str]) -> None:
    failure = of("\n".join(lines))
    assert failure is not None
    assert dict(failure.lines()) == expected


def test_trace_without_its_beginning_still_has_a_location() -> None:
    failure = of(f"{RECORDS}\n{RUN}")
    assert failure is not None
    lines = dict(failure.lines())
    assert list(lines) == ["at", "belongs to", "cut off", "search for"]
    assert lines["belongs to"] == "the Kafka connector"
    assert lines["cut off"].startswith("the trace begins in the middle of its frames")
    assert lines["search for"] == "KafkaRecordEmitter.emitRecord"


@pytest.mark.parametrize("text", ["", "nothing was thrown"])
def test_text_without_a_trace_has_no_failure_lines(text: str) -> None:
    assert of(text) is None


def test_only_an_undetermined_incident_has_one() -> None:
    result, incident = _result("java.io.IOException: x\n" + RUN)
    assert failure_of(result, replace(incident, verdict="diagnosed")) is None


@pytest.mark.parametrize("format", ["text", "markdown", "html"])
def test_a_report_shows_place_part_and_cut(format: str) -> None:
    result, _ = _result(f"java.io.IOException: unable to open the writer\n{RECORDS}")
    page = " ".join(render(result, format, width=400).split())
    assert "KafkaRecordEmitter.emitRecord (KafkaRecordEmitter.java:53" in page
    assert "the Kafka connector" in page
    assert "trace ends in the middle of its frames" in page
