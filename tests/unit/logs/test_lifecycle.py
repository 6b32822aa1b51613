"""Lines of a job's life in the wordings of several releases."""

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
            id="a client, with its time",
        ),
    ],
)
def test_a_failed_task_is_told(
    message: str, task: str, subtask: int, from_state: str | None
) -> None:
    told = parse_lifecycle(message)
    assert told is not None
    assert (told.kind, told.task, told.subtask) == ("task-failed", task, subtask)
    assert (told.from_state, told.to_state) == (from_state, "FAILED")


def test_clients_tell_the_state_of_the_job() -> None:
    told = parse_lifecycle("04/12/2017 09:08:07\tJob execution switched to status FAILING.")
    assert told is not None
    assert (told.kind, told.to_state) == ("job-state", "FAILING")


def test_other_states_of_a_task_are_no_failure() -> None:
    assert parse_lifecycle("04/12/2017 09:08:07\tMap(1/1) switched to RUNNING ") is None


def test_a_task_is_named_in_a_text() -> None:
    told = (
        "Task name with subtask : Source: Orders (1/2)#3 Failure reason: Checkpoint was declined."
    )
    assert task_in_text(told) == ("Source: Orders", 1, 2, 3)
    assert task_in_text("Could not complete snapshot 7 for operator Totals -> Sink (1/2)#0") == (
        "Totals -> Sink",
        1,
        2,
        0,
    )
