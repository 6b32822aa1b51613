"""SARIF output is valid, and logs cannot forge workflow commands."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from flink_triage.report import render
from tests.unit.report import examples, hostile

# The SARIF 2.1.0 schema from the npm package @microsoft/jest-sarif 1.0.0-beta.0 (MIT).
SCHEMA = json.loads(
    (Path(__file__).parent / "data" / "sarif-2.1.0-rtm.5.json").read_text(encoding="utf-8")
)
VALIDATOR = jsonschema.Draft4Validator(SCHEMA)


def problems(document: object) -> list[str]:
    return [f"{'/'.join(map(str, e.path))}: {e.message}" for e in VALIDATOR.iter_errors(document)]


@pytest.mark.parametrize("name", examples.ALL)
def test_sarif_is_valid_by_the_published_schema(name: str) -> None:
    assert problems(json.loads(render(examples.ALL[name](), "sarif"))) == []


@pytest.mark.parametrize("text", hostile.STRINGS.values(), ids=hostile.STRINGS)
def test_sarif_with_hostile_text_is_valid_and_ascii(text: str) -> None:
    rendered = render(hostile.filled(examples.diagnosed(), text), "sarif")
    assert rendered.isascii()
    assert problems(json.loads(rendered)) == []


def test_schema_rejects_invalid_sarif() -> None:
    document = json.loads(render(examples.diagnosed(), "sarif"))
    document["runs"][0]["results"][0]["level"] = "critical"
    assert problems(document) != []


def test_the_root_cause_is_an_error_at_its_line_and_what_followed_is_a_note() -> None:
    run = json.loads(render(examples.diagnosed(), "sarif"))["runs"][0]
    cause, *others, unknown = run["results"]
    place = cause["locations"][0]["physicalLocation"]
    assert (cause["ruleId"], cause["level"], cause["rank"]) == ("disk/full", "error", 97.0)
    assert place["artifactLocation"]["uri"] == examples.JOBMANAGER
    assert place["region"]["startLine"] == 253
    assert "No space left on device" in place["region"]["snippet"]["text"]
    assert len(cause["relatedLocations"]) == 1
    assert {other["level"] for other in others} == {"note"}
    assert unknown["ruleId"] == "flink-triage/unknown-failure"


def test_fingerprints_are_the_same_in_the_next_run_of_the_same_logs() -> None:
    def identities(run_id: str) -> list[object]:
        result = examples.diagnosed()
        result = replace(result, run=replace(result.run, run_id=run_id))
        found = json.loads(render(result, "sarif"))["runs"][0]["results"]
        return [item["partialFingerprints"] for item in found]

    assert identities("one") == identities("two")
    assert len({json.dumps(identity) for identity in identities("one")}) == 4


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("logs/job manager.log", "logs/job%20manager.log"),
        ("/var/log/flink/a.log", "file:///var/log/flink/a.log"),
        ("a#b?c%d:e.log", "a%23b%3Fc%25d%3Ae.log"),
        ("s3a://logs/job manager.log", "s3a://logs/job%20manager.log"),
        ("a b://c.log", "a%20b%3A//c.log"),
    ],
)
def test_a_path_becomes_a_uri_that_leads_back_to_it(path: str, uri: str) -> None:
    fault = replace(examples.disk_full().evidence[0], path=path)
    cause = replace(examples.disk_full(), evidence=(fault,))
    incident = replace(examples.diagnosed_incident(), diagnoses=(cause,))
    result = replace(examples.diagnosed(), incidents=(incident,))
    found = json.loads(render(result, "sarif"))["runs"][0]["results"][0]
    assert found["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri


def test_a_log_makes_no_link_and_no_placeholder_of_a_message() -> None:
    result = hostile.filled(examples.diagnosed(), "[a](http://x.example) {0} {1}")
    for found in json.loads(render(result, "sarif"))["runs"][0]["results"]:
        text = found["message"]["text"]
        assert text.count("[") == text.count("\\[") > 0
        assert re.findall(r"\{+\d\}+", text) == ["{{0}}", "{{1}}"] * (text.count("{{0}}"))


# A workflow command as parsed by the runner: name, properties, and message.
COMMAND = re.compile(r"::(error|warning|notice) \w+=[^,:]*(?:,\w+=[^,:]*)*::.*")


@pytest.mark.parametrize("text", hostile.STRINGS.values(), ids=hostile.STRINGS)
def test_hostile_text_creates_no_workflow_command(text: str) -> None:
    lines = render(hostile.filled(examples.diagnosed(), text), "github").split("\n")
    harmless = render(hostile.filled(examples.diagnosed(), hostile.HARMLESS), "github").split("\n")
    assert len(lines) == len(harmless)
    assert lines.pop() == ""
    assert [line for line in lines if not COMMAND.fullmatch(line)] == []
    assert [line.split(" ")[0] for line in lines] == [line.split(" ")[0] for line in harmless[:-1]]


def test_annotations_have_a_line_and_escaped_text() -> None:
    first = render(examples.diagnosed(), "github").split("\n")[0]
    assert first.startswith(
        f"::error file={examples.JOBMANAGER},line=253,"
        "title=orders-prod%3A 1. Checkpoint storage is full::disk/full, 97 %25 sure, 28 events. "
    )
