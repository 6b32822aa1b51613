"""Compares text and Markdown reports with golden files, so that changes are visible in reviews.

Set ``FLINK_TRIAGE_UPDATE_GOLDEN=1`` to update the files. The JSON files are documents of schema
version 1, which must remain readable; they are never updated.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from flink_triage.report import Format, from_json, render
from tests.unit.report import examples

GOLDEN = Path(__file__).parents[2] / "golden"
SHORT = ("diagnosed", "undetermined", "healthy")
REPORTS: list[tuple[str, Format, str]] = [
    *((name, "text", "txt") for name in examples.ALL),
    *((name, "markdown", "md") for name in SHORT),
]


def _checked(path: Path, text: str) -> str:
    if os.environ.get("FLINK_TRIAGE_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8", newline="\n")
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "form", "extension"), REPORTS)
def test_report_matches_the_golden_file(name: str, form: Format, extension: str) -> None:
    text = render(examples.ALL[name](), form)
    assert text == _checked(GOLDEN / f"{name}.{extension}", text)


@pytest.mark.parametrize("name", SHORT)
def test_documents_of_version_1_stay_readable(name: str) -> None:
    written = (GOLDEN / f"result-v1-{name}.json").read_text(encoding="utf-8")
    assert from_json(json.loads(written)) == examples.ALL[name]()
