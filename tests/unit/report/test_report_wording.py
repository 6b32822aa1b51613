"""The wording for an incident: start time, location, and consequences."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flink_triage.model import Evidence
from flink_triage.report.facts import wording
from tests.unit.report import examples


@pytest.mark.parametrize(
    ("subtasks", "hosts", "places"),
    [
        (("Map (1/2)#0", "Map (2/2)#3"), (), ('both subtasks of "Map"',)),
        (("Map (1/1)",), ("tm-1",), ('the only subtask of "Map"', "host tm-1")),
        (("Map (2/8)", "Map (3/8)"), (), ('subtasks 2, 3 of 8 of "Map"',)),
        (tuple(f"Map ({i}/3)" for i in (1, 2, 3)), (), ('all 3 subtasks of "Map"',)),
        (("no subtask named",), ("a", "b"), ("no subtask named", "hosts a, b")),
        ((), tuple("abcdef"), ("hosts a, b, c, d and 2 more",)),
        ((), (), ()),
    ],
)
def test_where(subtasks: tuple[str, ...], hosts: tuple[str, ...], places: tuple[str, ...]) -> None:
    diagnosis = replace(examples.disk_full(), subtasks=subtasks, hosts=hosts)
    assert wording.where(diagnosis) == places


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ("05:00:00", "05:00:34", "34 s"),
        ("05:00:00", "05:02:05", "2 min 5 s"),
        ("05:00:00", "05:02:00", "2 min"),
        ("05:00:00", "08:12:00", "3 h 12 min"),
        ("05:00:10", "05:00:00", "0 s"),
    ],
)
def test_duration(start: str, end: str, expected: str) -> None:
    assert wording.duration(examples.at(start), examples.at(end)) == expected


def test_duration_is_unknown_when_an_end_is() -> None:
    assert wording.duration(examples.at("05:00:00"), None) is None


def test_consequences_follow_the_chain_and_name_what_the_log_does_not_show() -> None:
    found = wording.consequences(examples.diagnosed_incident(), examples.disk_full())
    assert [(item.depth, item.signature, item.rank) for item in found] == [
        (1, "checkpoint/async-phase-failed", 2),
        (2, "checkpoint/tolerable-threshold-exceeded", 3),
        (3, "job/recovery-suppressed", None),
    ]


def test_cycle_of_explanations_terminates() -> None:
    first = replace(examples.disk_full(), explains=("checkpoint/async-phase-failed",))
    second = replace(examples.async_failed(), explains=("disk/full",))
    incident = replace(examples.diagnosed_incident(), diagnoses=(first, second))
    assert [item.rank for item in wording.consequences(incident, first)] == [2]


@pytest.mark.parametrize(
    ("excerpt", "lines"),
    [
        (examples.NO_SPACE_TRACE.split("\n", 1)[1], (
            "org.apache.flink.runtime.checkpoint.CheckpointException: "
            "Asynchronous task checkpoint failed.",
            "Caused by: ... java.io.IOException: No space left on device",
        )),
        ("\n  only line  \n", ("only line",)),
        ("", ()),
        ("Caused by: a.B: c", ("Caused by: a.B: c",)),
    ],
)  # fmt: skip
def test_key_lines(excerpt: str, lines: tuple[str, ...]) -> None:
    assert wording.key_lines(excerpt) == lines


@pytest.mark.parametrize(
    ("path", "width", "shown"),
    [
        ("a/b.log", 20, "a/b.log:7"),
        ("/very/long/folder/names/here/jobmanager.log", 24, "…/here/jobmanager.log:7"),
        ("/logs/" + "n" * 40 + ".log", 20, "…/" + "n" * 40 + ".log:7"),
    ],
)
def test_location_keeps_the_name_of_the_file(path: str, width: int, shown: str) -> None:
    assert wording.location(Evidence(path, 7, 0, None, ""), width) == shown


def test_since_is_the_first_fault_not_the_start_of_the_job() -> None:
    incident = examples.diagnosed_incident()
    assert wording.since(incident) == examples.at("05:52:20.754")
    assert wording.since(replace(incident, first_fault=None, diagnoses=())) == incident.started_at


def test_incidents_are_ordered_by_urgency() -> None:
    ordered = wording.by_urgency(reversed(examples.fleet(8).incidents))
    assert [incident.deployment for incident in ordered][:5] == [
        "orders-prod",
        "orders-eu",
        "invoices",
        "clicks-staging",
        "service-00",
    ]


def test_diagnosed_minor_failure_precedes_an_undetermined_critical_one() -> None:
    """A verdict is actionable, but a critical symptom without a known cause is not."""
    minor = replace(examples.diagnosed_incident(), diagnoses=(examples.async_failed(),))
    undetermined = replace(examples.undetermined_incident(), diagnoses=(examples.disk_full(),))
    assert wording.by_urgency((undetermined, minor)) == (minor, undetermined)


def test_the_overview_counts_deployments_and_verdicts() -> None:
    overview = "40 deployments · 3 diagnosed (2 critical) · 1 undetermined · 36 healthy"
    assert wording.overview(examples.fleet()) == overview
