"""Every format lists known failures that resemble an unknown one, never as diagnoses."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from flink_triage.model import Incident, Result
from flink_triage.report import from_json, render, to_json
from flink_triage.report.formats.notebook import html_of
from tests.unit.report import examples

NOT_DIAGNOSES = "losest known failures, not diagnoses"


def shown(result: Result, name: str) -> str:
    """Renders a format without line wrapping, escape sequences, and markup."""
    text = html_of(result.incidents[0]) if name == "notebook" else render(result, name)
    return re.sub(
        r"\s+", " ", re.sub(r"<(?!https:)[^>]+>", "", text).replace("\\", "").replace("**", "")
    )


@pytest.mark.parametrize("name", ["text", "markdown", "html", "github", "notebook"])
def test_similar_failures_are_listed_under_a_disclaimer_heading(name: str) -> None:
    text = shown(examples.unnamed(), name)
    assert NOT_DIAGNOSES in text
    for one in examples.similar_failures():
        assert text.index(NOT_DIAGNOSES) < text.index(one.title)
        assert one.signature in text


@pytest.mark.parametrize("name", ["text", "markdown", "html", "notebook"])
def test_similarities_differences_and_references_are_shown(name: str) -> None:
    text = shown(examples.unnamed(), name)
    assert "NotLeaderException; the words broker, partition" in text
    assert "is not the leader" in text
    assert "kafka.apache.org/documentation" in text
    assert "flink-triage signatures show kafka/record-too-large" in text


@pytest.mark.parametrize("name", ["text", "markdown", "html", "github", "notebook", "sarif"])
def test_section_is_left_out_without_similar_failures(name: str) -> None:
    (incident,) = examples.unnamed().incidents
    bare = replace(examples.unnamed(), incidents=(replace(incident, similar=()),), unknown=())
    text = shown(bare, name)
    assert NOT_DIAGNOSES not in text
    assert "kafka/" not in text


@pytest.mark.parametrize("name", ["text", "markdown", "html", "github"])
def test_similar_failures_of_an_unknown_failure_are_shown(name: str) -> None:
    (failure,) = examples.unnamed().unknown
    beside = replace(examples.diagnosed(), unknown=(failure,))
    text = shown(beside, name)
    assert NOT_DIAGNOSES in text
    assert failure.similar[0].title in text


def test_sarif_has_them_as_properties_and_not_as_results() -> None:
    run = json.loads(render(examples.unnamed(), "sarif"))["runs"][0]
    assert [found["ruleId"] for found in run["results"]] == [
        "flink-triage/undetermined",
        "flink-triage/unknown-failure",
    ]
    similar = run["results"][0]["properties"]["similar"]
    assert [one["signature"] for one in similar] == ["kafka/not-leader", "kafka/record-too-large"]


def test_json_keeps_them_and_reads_documents_from_before() -> None:
    result = examples.unnamed()
    document = to_json(result)
    assert from_json(document) == result
    del document["incidents"][0]["similar"]
    read: Incident = from_json(document).incidents[0]
    assert read == replace(result.incidents[0], similar=())


def test_no_format_gives_one_a_confidence_a_rank_or_an_option() -> None:
    (similar, *_) = to_json(examples.unnamed())["incidents"][0]["similar"]
    assert set(similar) == {"signature", "title", "agrees", "differs", "reference"}
