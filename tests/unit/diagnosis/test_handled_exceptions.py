"""Exceptions that user code logs and handles are not failures of the job."""

from __future__ import annotations

import pytest

from tests.unit.diagnosis.test_incidents import (
    JOB,
    NPE,
    STRANGE,
    completed,
    failed,
    line,
    signatures,
    state,
)

OTHER = "fedcba9876543210fedcba9876543210"
LOGGED = line(10, "Falling back to the default profile", "ERROR", "com.acme.Enricher") + NPE
TWO_JOBS = state(1, "CREATED", "RUNNING") + state(1, "CREATED", "RUNNING", OTHER)


@pytest.mark.parametrize(
    "then",
    [
        completed(20, 5),
        state(20, "RUNNING", "FINISHED"),
        state(20, "RUNNING", "CANCELLING"),
        # An unrelated fault fails the job much later.
        completed(20, 5) + failed(400, STRANGE) + state(400, "RUNNING", "FAILED"),
    ],
)
@pytest.mark.parametrize("jobs", ["", TWO_JOBS])
def test_exception_that_the_job_survived_is_listed_without_an_incident(
    diagnose, then: str, jobs: str
) -> None:
    found = diagnose(jobmanager=jobs + then, taskmanager=LOGGED)
    assert all("operator/user-code-exception" not in signatures(i) for i in found.incidents)
    assert [o.root_cause_type for o, _ in found.unknown_faults][:1] == [
        "java.lang.NullPointerException"
    ]


def test_a_bare_class_name_as_logger_may_be_own_code(diagnose) -> None:
    logged = line(10, "Keeping the previous rate", "ERROR", "RateClient") + NPE
    found = diagnose(jobmanager=completed(20, 5), taskmanager=logged)
    assert all("operator/user-code-exception" not in signatures(i) for i in found.incidents)


def test_exception_that_the_job_survived_before_is_not_its_failure(diagnose) -> None:
    again = line(390, "Falling back to the default profile", "ERROR", "com.acme.Enricher") + NPE
    fails = failed(400, STRANGE) + state(400, "RUNNING", "FAILED")
    found = diagnose(jobmanager=completed(20, 5) + fails, taskmanager=LOGGED + again)
    assert all("operator/user-code-exception" not in signatures(i) for i in found.incidents)
    thrown = failed(400, NPE) + state(400, "RUNNING", "FAILED")
    found = diagnose(jobmanager=completed(20, 5) + thrown, taskmanager=LOGGED + again)
    assert [signatures(i)[0] for i in found.incidents] == ["operator/user-code-exception"]


@pytest.mark.parametrize(
    "then",
    [
        # No later event shows whether the job continued.
        "",
        # The exception failed the task.
        failed(11, NPE) + state(11, "RUNNING", "RESTARTING") + completed(30, 5),
    ],
)
def test_exception_that_may_have_failed_the_job_is_an_incident(diagnose, then: str) -> None:
    (incident,) = diagnose(jobmanager=then, taskmanager=LOGGED).incidents
    assert signatures(incident)[0] == "operator/user-code-exception"


def test_survived_exception_is_not_the_first_fault_of_a_later_incident(diagnose) -> None:
    """It also does not merge two otherwise unrelated incidents."""
    again = line(398, "Falling back to the default profile", "ERROR", "com.acme.Enricher") + NPE
    fails = failed(400, STRANGE) + state(400, "RUNNING", "FAILED")
    found = diagnose(jobmanager=completed(20, 5) + fails, taskmanager=LOGGED + again)
    (incident,) = found.incidents
    assert "frobnicator" in incident.summary
    assert incident.started_at.minute * 60 + incident.started_at.second == 400
    assert {o.root_cause_type: o.occurrences for o, _ in found.unknown_faults} == {
        "java.lang.NullPointerException": 1,
        "org.apache.flink.util.FlinkException": 1,
    }


QUOTED = "dead-lettered record 7: payload was 'FATAL: java.lang.OutOfMemoryError: Java heap space'"


@pytest.mark.parametrize(
    ("logger", "then", "is_incident"),
    [
        ("com.acme.RiskClient", completed(20, 5), False),
        ("com.acme.RiskClient", line(20, "RECEIVED SIGNAL 15: SIGTERM."), False),
        ("com.acme.RiskClient", "", True),
        ("org.apache.flink.runtime.taskmanager.Task", completed(20, 5), True),
        ("o.a.f.r.taskmanager.Task", completed(20, 5), True),
        ("org.apache.kafka.clients.NetworkClient", completed(20, 5), True),
    ],
)
def test_failure_quoted_by_user_code_is_not_one_if_the_job_continues(
    diagnose, logger: str, then: str, is_incident: bool
) -> None:
    found = diagnose(
        **{
            "standalonesession-0-n": state(1, "CREATED", "RUNNING") + then,
            "taskexecutor-0-n": line(10, QUOTED, "ERROR", logger),
        }
    )
    found_signatures = [d.signature for i in found.incidents for d in i.diagnoses]
    assert found_signatures == (["memory/oom-java-heap"] if is_incident else [])


def test_user_code_exception_logged_by_flink_is_an_incident(diagnose) -> None:
    by_flink = LOGGED.replace(
        "com.acme.Enricher []", "org.apache.flink.runtime.taskmanager.Task []"
    )
    (incident,) = diagnose(jobmanager=completed(20, 5), taskmanager=by_flink).incidents
    assert signatures(incident)[0] == "operator/user-code-exception"


def test_up_to_1_15_the_next_state_change_gives_the_job_of_a_failed_task(diagnose) -> None:
    def failed_task(second: float, attempt: str, trace: str, job: str) -> str:
        task = f"Map (1/2) ({attempt}) switched from RUNNING to FAILED on host:1 @ host."
        return line(second, task) + trace + state(second + 0.01, "RUNNING", "FAILING", job)

    text = failed_task(10, "a" * 32, NPE, JOB) + failed_task(300, "b" * 32, STRANGE, OTHER)
    first, second = sorted(diagnose(jobmanager=text).incidents, key=lambda i: i.started_at)
    assert (first.job_id, signatures(first)) == (JOB, ["operator/user-code-exception"])
    assert (second.job_id, second.verdict) == (OTHER, "undetermined")
    assert second.first_fault is not None
    assert second.first_fault.excerpt.endswith("out of phase")
