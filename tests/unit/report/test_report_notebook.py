"""The notebook display of a result, an incident, and a diagnosis."""

from __future__ import annotations

import re
from functools import cache

import pytest

import flink_triage as ft
from flink_triage.model import Diagnosis, Incident, Result
from flink_triage.report.formats.notebook import html_of
from tests.unit.report import examples, hostile

VALUES = {
    "a result": examples.fleet,
    "a diagnosed incident": examples.diagnosed_incident,
    "an undetermined incident": examples.undetermined_incident,
    "a healthy incident": examples.healthy_incident,
    "a diagnosis": examples.disk_full,
}


def tags(fragment: str) -> list[str]:
    return re.findall(r"<(/?\w+)", fragment)


def test_public_objects_have_notebook_representations() -> None:
    assert ft.Result is Result
    for kind in (Result, Incident, Diagnosis):
        assert callable(kind._repr_html_)  # type: ignore[attr-defined]
    shown = examples.diagnosed()._repr_html_()  # type: ignore[attr-defined]
    assert "1 deployment · 1 diagnosed (1 critical)" in shown
    text = examples.diagnosed()._repr_markdown_()  # type: ignore[attr-defined]
    assert text.startswith("# Flink triage: 1 deployment")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a result", ["40 deployments", "Checkpoint storage is full", "97 %", "service-35"]),
        ("a diagnosed incident", ["orders-prod", "97 %", "num-failed", "2 other diagnoses"]),
        ("an undetermined incident", ["cause undetermined", "these logs do not hold"]),
        ("a healthy incident", ["payments-prod", "healthy"]),
        ("a diagnosis", ["Checkpoint storage is full", "disk/full", "came first"]),
    ],
)
def test_notebook_shows_the_summary_of_the_report(name: str, words: list[str]) -> None:
    shown = html_of(VALUES[name]())
    words = [w.replace("num-failed", "tolerable-failed-checkpoints: 3   # now 0") for w in words]
    assert [word for word in words if word not in shown] == []


@cache
def tags_of_views(text: str) -> list[list[str]]:
    """Returns the tags of a result, its incident and its diagnosis, filled with the text."""
    result = hostile.filled(examples.diagnosed(), text)
    views = (result, result.incidents[0], result.incidents[0].diagnoses[0])
    return [tags(html_of(view)) for view in views]


@pytest.mark.parametrize("text", hostile.STRINGS.values(), ids=hostile.STRINGS)
def test_hostile_text_stays_inactive_text(text: str) -> None:
    shown = tags_of_views(text)
    assert shown == tags_of_views(hostile.HARMLESS)
    assert not {"script", "style", "img", "a", "iframe"} & {tag for view in shown for tag in view}


def test_a_large_fleet_shows_a_page_of_it_and_counts_the_rest() -> None:
    shown = html_of(examples.fleet(120))
    assert shown.count("<tr>") == 51
    assert "70 more in <code>.incidents</code>" in shown
