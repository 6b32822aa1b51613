"""Every format reports observed changes before a failure as facts, never as diagnoses."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from flink_triage.model import Incident, ObservedChange, Result, StartOf
from flink_triage.report import from_json, render, to_json
from tests.unit.report import examples
from tests.unit.report.test_report_similar import shown

HEADING = "hanged since the last healthy start (JobManager, 05:40:12 -> 05:52:02)"
EXPECTED_LINES = (
    "version of Flink: 1.16.0 -> 1.17.1",
    "option rest.flamegraph.enabled: removed, was true",
    "option state.backend.type: added, rocksdb",
    "jar job.jar: removed",
    "jar udf.jar: added",
    "parallelism of orders: 2 -> 8",
)


def changes() -> tuple[ObservedChange, ...]:
    banners = (
        StartOf("jobmanager", "orders-prod/jobmanager.log.1", 2, examples.at("05:40:12")),
        StartOf("jobmanager", "orders-prod/jobmanager.log", 2, examples.at("05:52:02")),
    )
    submitted = (
        StartOf(None, "orders-prod/jobmanager.log.1", 99, examples.at("05:40:30")),
        StartOf(None, "orders-prod/jobmanager.log", 98, examples.at("05:52:20")),
    )
    return (
        ObservedChange("flink-version", "Flink", "1.16.0", "1.17.1", *banners),
        ObservedChange("configuration", "rest.flamegraph.enabled", "true", None, *banners),
        ObservedChange("configuration", "state.backend.type", None, "rocksdb", *banners),
        ObservedChange("jar", "job.jar", "job.jar", None, *banners),
        ObservedChange("jar", "udf.jar", None, "udf.jar", *banners),
        ObservedChange("parallelism", "orders", "2", "8", *submitted),
    )


def changed(result: Result, number: int = 99, left_out: int = 0) -> Result:
    incident = replace(result.incidents[0], changes=changes()[:number], changes_left_out=left_out)
    return replace(result, incidents=(incident,))


def unescaped(text: str) -> str:
    for escape, character in (("&gt;", ">"), ("\u200b", ""), ("%3A", ":"), ("%2C", ",")):
        text = text.replace(escape, character)
    return text


@pytest.mark.parametrize("name", ["text", "markdown", "html", "github", "notebook"])
@pytest.mark.parametrize("example", [examples.diagnosed, examples.undetermined])
def test_changes_are_listed_under_the_starts_they_lie_between(name: str, example) -> None:
    text = unescaped(shown(changed(example()), name))
    assert HEADING in text
    assert "(job submitted, 05:40:30 -> 05:52:20)" in text
    at = text.index(HEADING)
    for line in EXPECTED_LINES:
        assert line in text
        assert text.index(line) > at
        at = text.index(line)


@pytest.mark.parametrize("name", ["text", "markdown", "html", "github", "notebook", "sarif"])
def test_section_is_left_out_without_changes(name: str) -> None:
    text = shown(changed(examples.diagnosed(), 0), name)
    assert "hanged since" not in text


@pytest.mark.parametrize("name", ["markdown", "html"])
def test_omitted_changes_are_counted(name: str) -> None:
    text = shown(changed(examples.diagnosed(), left_out=13), name)
    assert "13 more changes" in text
    assert "not necessarily the cause" in text


def test_a_terminal_shows_the_first_ones() -> None:
    seven = changed(examples.diagnosed(), left_out=1)
    assert "1 more: -v" in render(seven, "text")
    assert "1 more: -v" not in render(seven, "text", verbose=True)


def test_sarif_has_them_as_properties_of_the_root_cause() -> None:
    run = json.loads(render(changed(examples.diagnosed()), "sarif"))["runs"][0]
    listed = [found["properties"].get("changes") for found in run["results"]]
    assert [one["name"] for one in listed[0]] == [change.name for change in changes()]
    assert not any(listed[1:])


def test_json_keeps_them_and_reads_documents_from_before() -> None:
    result = changed(examples.diagnosed(), left_out=2)
    document = to_json(result)
    assert from_json(document) == result
    del document["incidents"][0]["changes"]
    del document["incidents"][0]["changes_left_out"]
    read: Incident = from_json(document).incidents[0]
    assert read == examples.diagnosed().incidents[0]
