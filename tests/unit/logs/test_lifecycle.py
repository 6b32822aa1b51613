"""Lifecycle messages of jobs and tasks in several Flink releases, and startup banners."""

from __future__ import annotations

import pytest

from flink_triage.logs.lifecycle import parse_lifecycle, task_in_text

_ID = "0515f4b78c443e06ea1d8be626fa474c"


@pytest.mark.parametrize(
    ("message", "task", "subtask", "from_state"),
    [
        pytest.param(
            f"Map -> Sink (2/4)#1 ({_ID}) switched from RUNNING to FAILED.",
            "Map -> Sink",
            2,
            "RUNNING",
            id="1.9 and later",
        ),
        pytest.param("Map(2/4) switched to FAILED", "Map", 2, None, id="1.0 to 1.4"),
        pytest.param(
            "04/12/2017 09:08:07\tSource: Custom Source -> Map(1/1) switched to FAILED ",
            "Source: Custom Source -> Map",
            1,
            None,
            id="a client message with a time",
        ),
    ],
)
def test_failed_task_is_recognized(
    message: str, task: str, subtask: int, from_state: str | None
) -> None:
    found = parse_lifecycle(message)
    assert found is not None
    assert (found.kind, found.task, found.subtask) == ("task-failed", task, subtask)
    assert (found.from_state, found.to_state) == (from_state, "FAILED")


def test_job_state_is_read_from_client_output() -> None:
    found = parse_lifecycle("04/12/2017 09:08:07\tJob execution switched to status FAILING.")
    assert found is not None
    assert (found.kind, found.to_state) == ("job-state", "FAILING")


def test_other_states_of_a_task_are_no_failure() -> None:
    assert parse_lifecycle("04/12/2017 09:08:07\tMap(1/1) switched to RUNNING ") is None


def test_a_task_is_named_in_a_text() -> None:
    text = (
        "Task name with subtask : Source: Orders (1/2)#3 Failure reason: Checkpoint was declined."
    )
    assert task_in_text(text) == ("Source: Orders", 1, 2, 3)
    assert task_in_text("Could not complete snapshot 7 for operator Totals -> Sink (1/2)#0") == (
        "Totals -> Sink",
        1,
        2,
        0,
    )


@pytest.mark.parametrize(
    ("message", "kind", "value"),
    [
        pytest.param(
            " JVM: OpenJDK 64-Bit Server VM - Debian - 17/17.0.15+6-Debian-1deb12u1",
            "java-version",
            "OpenJDK 64-Bit Server VM - Debian - 17/17.0.15+6-Debian-1deb12u1",
            id="Java",
        ),
        pytest.param(
            " JVM: Java HotSpot(TM) 64-Bit Server VM - Oracle Corporation - 1.8/25.131-b11",
            "java-version",
            "Java HotSpot(TM) 64-Bit Server VM - Oracle Corporation - 1.8/25.131-b11",
            id="Java 8",
        ),
        pytest.param("    -Xmx549453824", "jvm-option", "-Xmx549453824", id="heap"),
        pytest.param(
            "    --add-opens=java.base/java.lang=ALL-UNNAMED",
            "jvm-option",
            "--add-opens=java.base/java.lang=ALL-UNNAMED",
            id="module",
        ),
        pytest.param("-Dlog.file=/log/a b.log", "jvm-option", "-Dlog.file=/log/a b.log", id="bare"),
        pytest.param(
            " Classpath: /a/flink-cep-1.18.1.jar:/a/job.jar:/b/job.jar::/conf:",
            "classpath",
            "flink-cep-1.18.1.jar:job.jar",
            id="classpath",
        ),
        pytest.param(
            r" Classpath: C:\flink\lib\a.jar;C:\flink\lib\b.jar",
            "classpath",
            "a.jar:b.jar",
            id="Windows classpath",
        ),
    ],
)
def test_jvm_details_are_read_from_the_banner(message: str, kind: str, value: str) -> None:
    found = parse_lifecycle(message)
    assert found is not None
    assert (found.kind, found.value) == (kind, value)


@pytest.mark.parametrize(
    "message",
    [
        "    -D",
        "    --configDir",
        " JVM Options:",
        " Program Arguments:",
        "Hadoop cannot be found in the Classpath.",
        "JVM Overhead:          192.000mb (201326592 bytes)",
    ],
)
def test_other_banner_lines_are_ignored(message: str) -> None:
    assert parse_lifecycle(message) is None


@pytest.mark.parametrize("attempt", ["", "#0"], ids=["JobManager", "TaskManager"])
def test_parallelism_is_read_from_the_first_running_subtask(attempt: str) -> None:
    execution = f"{_ID}_bc764cd8ddf7a0cff126f51c16239658"
    message = "Source: Orders (1/4){} ({}_{}) switched from INITIALIZING to RUNNING."
    found = parse_lifecycle(message.format(attempt, execution, "0_0"))
    assert found is not None
    assert (found.kind, found.value, found.key) == (
        "task-running",
        "Source: Orders (1/4)",
        f"{execution}_0_0",
    )
    for other in ("1_0", "0_1", "10_0"):
        assert parse_lifecycle(message.format(attempt, execution, other)) is None
