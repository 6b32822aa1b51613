"""Why there is no incident: healthy is proven, and everything else is said as it is."""

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
    assert (incident.verdict, incident.first_fault.excerpt) == ("text-only", text.rstrip())
    (incident,) = diagnose(pasted=text + line(1, "Slow.", "WARN")).incidents
    assert (incident.verdict, incident.first_fault.excerpt) == ("undetermined", text.rstrip())


@pytest.mark.parametrize("sign", [completed(9, 4), state(9, "CREATED", "RUNNING")])
def test_an_error_is_explained_where_a_job_was_well_after_it(diagnose, sign: str) -> None:
    (incident,) = diagnose(jobmanager=ERROR + sign).incidents
    assert incident.verdict == "healthy"
    (incident,) = diagnose(jobmanager=sign + ERROR.replace("05:00:07", "05:00:17")).incidents
    assert (incident.verdict, incident.first_fault.line) == ("undetermined", 2)


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
def test_healthy_is_said_only_where_flink_was_read(diagnose, text: str, verdict: str) -> None:
    assert [i.verdict for i in diagnose(jobmanager=text).incidents] == [verdict]


def test_logs_of_a_program_that_never_speaks_of_flink_are_not_its(diagnose) -> None:
    text = WARNED.replace("com.acme.Sink", "com.acme.Shop")
    assert [i.verdict for i in diagnose(shop=text).incidents] == ["not-flink"]


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
