"""All formats report the same diagnoses in the same order, with the same exit code."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from flink_triage.cli.main import build_parser
from flink_triage.cli.outputs import write_outputs
from flink_triage.model import Quarantined, Result
from flink_triage.report import FORMATS, render
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
    sarif = json.loads(render(result, "sarif"))["runs"][0]
    rules = sarif["tool"]["driver"]["rules"]
    from_sarif = sorted(
        (found["properties"]["rank"], rules[found["ruleIndex"]]["shortDescription"]["text"], name)
        for found in sarif["results"]
        if not (name := found["ruleId"]).startswith("flink-triage/")
    )
    assert from_sarif == expected
    line = re.compile(r"^::\w+ .*title=[^:]*%3A (\d)\. (.*?)::([a-z/-]+), ", re.MULTILINE)
    from_github = sorted(
        (int(rank), title, signature)
        for rank, title, signature in line.findall(render(result, "github"))
    )
    assert from_github == expected


@pytest.mark.parametrize("name", examples.ALL)
def test_all_formats_agree_on_what_is_undetermined_unknown_and_not_read(name: str) -> None:
    result = examples.ALL[name]()
    undetermined = [i for i in result.incidents if i.verdict == "undetermined"]
    paths = [gap.path for gap in result.coverage.quarantined]
    wanted = len(undetermined), len(result.unknown), len(paths)
    document = json.loads(render(result, "json"))
    lines = [json.loads(line) for line in render(result, "jsonl").split("\n") if line]
    sarif = json.loads(render(result, "sarif"))["runs"][0]
    rules = [found["ruleId"] for found in sarif["results"]]
    notices = [n["message"]["text"] for n in sarif["invocations"][0]["toolExecutionNotifications"]]
    github, page = render(result, "github"), render(result, "html")
    assert wanted == (
        sum(incident["verdict"] == "undetermined" for incident in document["incidents"]),
        len(document["unknown"]),
        len(document["coverage"]["quarantined"]),
    )
    assert wanted == (
        rules.count("flink-triage/undetermined"),
        rules.count("flink-triage/unknown-failure"),
        sum(notice.startswith("not read: ") for notice in notices),
    )
    assert wanted == (
        github.count("cause undetermined::"),
        github.count("title=no signature explains this::"),
        github.count("title=not read::"),
    )
    assert sum(line["verdict"] == "undetermined" for line in lines) == wanted[0]
    unnamed = page.count("No signature explains this failure</h2>")
    assert unnamed + page.count("The cause was not found in these logs</h2>") == wanted[0]
    words = [
        *paths,
        *(str(failure.root_cause_type) for failure in result.unknown),
        *(i.deployment for i in result.incidents if i.verdict != "healthy"),
    ]
    for rendered in (
        github,
        page,
        render(result, "text", verbose=True),
        render(result, "markdown"),
    ):
        assert [word for word in words if word not in rendered] == []


def with_gap(result: Result) -> Result:
    gap = Quarantined("core.4711", "binary")
    return replace(result, coverage=replace(result.coverage, quarantined=(gap,)))


OUTCOMES = {
    "diagnosed": (examples.diagnosed, "major", 1),
    "diagnosed, nothing asked": (examples.diagnosed, "none", 3),
    "undetermined counts as major": (examples.undetermined, "major", 1),
    "undetermined is not critical": (examples.undetermined, "critical", 0),
    "healthy": (examples.healthy, "info", 0),
    "healthy, with a gap": (lambda: with_gap(examples.healthy()), "info", 3),
    "a fleet": (examples.fleet, "critical", 1),
}


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_the_exit_code_is_that_of_the_result_in_every_format(
    tmp_path: Path, format_: str, outcome: str
) -> None:
    make, fail_on, code = OUTCOMES[outcome]
    output = tmp_path / "out"
    words = ["--format", format_, "--output", str(output), "--fail-on", fail_on, "--strict", "-q"]
    arguments = build_parser().parse_args(["diagnose", "logs", *words])
    assert write_outputs(make(), arguments) == code
    assert output.stat().st_size > 50
