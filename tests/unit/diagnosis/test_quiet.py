"""Logs without a failure are healthy, unless an error is all that they tell of."""

from __future__ import annotations

import pytest

from flink_triage.diagnosis import diagnose_on
from flink_triage.remediation import OptionTable
from tests.unit.diagnosis.test_incidents import JOB, completed, line, state

ERROR = line(
    7, "Uncaught problem in the sink: java.io.IOException: no route", "ERROR", "com.acme.Sink"
)
WARNED = ERROR.replace("ERROR", "WARN")


def test_an_error_that_is_all_that_is_told_is_not_called_healthy(diagnose) -> None:
    (incident,) = diagnose(jobmanager=line(1, "Starting the rest endpoint.") + ERROR).incidents
    assert (incident.verdict, incident.outcome) == ("undetermined", "unknown")
    assert incident.summary.endswith("IOException: no route")
    assert (incident.first_fault.line, incident.first_fault.at) == (2, incident.started_at)


def test_a_throwable_in_a_sentence_without_a_level_is_an_error(diagnose) -> None:
    text = "Could not load service provider. java.util.MissingResourceException: no bundle\n"
    (incident,) = diagnose(pasted=text).incidents
    assert (incident.verdict, incident.first_fault.excerpt) == ("undetermined", text.rstrip())


@pytest.mark.parametrize("sign", [completed(9, 4), state(9, "CREATED", "RUNNING")])
def test_where_a_job_is_seen_to_run_errors_of_its_code_are_no_failure(diagnose, sign: str) -> None:
    for text in (ERROR + sign, sign + ERROR):
        assert [i.verdict for i in diagnose(jobmanager=text).incidents] == ["healthy"]


@pytest.mark.parametrize("text", [WARNED, line(1, "Starting the rest endpoint."), ""])
def test_without_an_error_logs_are_healthy(diagnose, text: str) -> None:
    assert [i.verdict for i in diagnose(jobmanager=text).incidents] == ["healthy"]


@pytest.mark.parametrize("later", [WARNED.replace("05:07", "05:40"), completed(9, 4)])
def test_an_error_of_an_earlier_run_is_remembered(diagnose, observe, pack, later: str) -> None:
    options = OptionTable.load()
    read = observe(jobmanager=state(1, "INITIALIZING", "CREATED") + ERROR + later)
    first = diagnose_on("d", None, read[:2], pack, options)
    assert first is not None
    then = diagnose_on("d", first.carried, read[2:], pack, options)
    assert then is not None
    assert then.open.incidents == diagnose(read).incidents


def test_an_error_with_a_known_meaning_is_not_told_by_the_run_after(observe, pack) -> None:
    known = line(
        1,
        f"Exception occurred in REST handler: Job {JOB} not found",
        "ERROR",
        "org.apache.flink.runtime.rest.handler.job.JobDetailsHandler",
    )
    read = observe(jobmanager=known + WARNED.replace("05:07", "05:40"))
    first = diagnose_on("d", None, read[:1], pack, OptionTable.load())
    assert first is not None
    then = diagnose_on("d", first.carried, read[1:], pack, OptionTable.load())
    assert then is not None
    assert [i.verdict for i in (*first.open.incidents, *then.open.incidents)] == 2 * ["healthy"]
