"""All formats tell the same diagnoses in the same order."""

from __future__ import annotations

import json
import re

import pytest

from flink_triage.report import render
from tests.unit.report import examples


@pytest.mark.parametrize("name", examples.ALL)
def test_all_formats_agree_on_ranks_titles_and_signatures(name: str) -> None:
    result = examples.ALL[name]()
    expected = sorted(
        (diagnosis.rank, diagnosis.title, diagnosis.signature)
        for incident in result.incidents
        for diagnosis in incident.diagnoses
    )
    document = json.loads(render(result, "json"))
    from_json = sorted(
        (diagnosis["rank"], diagnosis["title"], diagnosis["signature"])
        for incident in document["incidents"]
        for diagnosis in incident["diagnoses"]
    )
    text = render(result, "text", verbose=True)
    from_text = sorted(
        (int(rank), title, signature)
        for rank, title, signature in re.findall(
            r"^ {2}(\d)  (.*?) {2,}\S+ · .*?signature: (\S+)$", text, re.MULTILINE | re.DOTALL
        )
    )
    from_markdown = sorted(
        (int(rank), title, signature)
        for rank, title, signature in re.findall(
            r"^### (\d)\\\. (.*)\n\n.* · `([a-z/-]+)`$", render(result, "markdown"), re.MULTILINE
        )
    )
    assert from_json == expected
    assert from_text == expected
    assert from_markdown == expected
    page = render(result, "html")
    signatures = re.findall(r"signature <code>(.*?)</code>", page)
    assert sorted(signatures) == sorted(signature for _, _, signature in expected)
    others = re.findall(
        r'id="i-[^"]+-d(\d)"><summary><span class="rank">(\d)</span> <b>(.*?)<', page
    )
    assert all(anchor == rank for anchor, rank, _ in others)
    assert sorted((int(rank), title) for _, rank, title in others) == sorted(
        (rank, title) for rank, title, _ in expected if rank > 1
    )
