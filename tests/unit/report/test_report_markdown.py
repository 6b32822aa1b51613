"""The Markdown format: log text cannot escape its fence, mention users, or add links."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flink_triage.report import render
from flink_triage.report.formats.markdown import MAX_CHARS, code, fenced, prose
from tests.unit.report import examples, hostile

_FENCE = re.compile(r"(`{3,})([a-z]*)")
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")


def _outline(markdown: str) -> list[str]:
    """Returns the start of each line: the block structure of the page without the text."""
    outline, fence = [], ""
    for line in markdown.split("\n"):
        found = _FENCE.fullmatch(line)
        if fence:
            if found and len(found[1]) >= len(fence) and not found[2]:
                fence = ""
                outline.append("end of fence")
        elif found:
            fence = found[1]
            outline.append(f"fence {found[2]}")
        else:
            outline.append(re.match(r" *(#+ |- |\d+\. |</?[a-z]+>|)", line)[0])  # type: ignore[index]
    return [*outline, "still in a fence"] if fence else outline


def _outside_code(markdown: str) -> str:
    kept, fence = [], ""
    for line in markdown.split("\n"):
        found = _FENCE.fullmatch(line)
        if fence:
            fence = "" if found and len(found[1]) >= len(fence) and not found[2] else fence
        elif found:
            fence = found[1]
        else:
            kept.append(_SPAN.sub("", line))
    return "\n".join(kept)


@cache
def _filled_outline(name: str, text: str) -> list[str]:
    return _outline(render(hostile.filled(examples.ALL[name](), text), "markdown"))


@pytest.mark.parametrize("text", hostile.STRINGS.values(), ids=hostile.STRINGS)
@pytest.mark.parametrize("name", ["diagnosed", "undetermined", "healthy"])
def test_hostile_text_changes_no_block(name: str, text: str) -> None:
    assert _filled_outline(name, text) == _filled_outline(name, hostile.HARMLESS)


@pytest.mark.parametrize("text", hostile.STRINGS.values(), ids=hostile.STRINGS)
def test_hostile_text_outside_of_code_is_neither_markup_nor_mention(text: str) -> None:
    shown = _outside_code(render(hostile.filled(examples.diagnosed(), text), "markdown"))
    shown = shown.replace("<details>", "").replace("</details>", "")
    shown = re.sub(r"</?summary>|\*\*(Do:|Undetermined\.)\*\*", "", shown)
    assert not re.search(r"(?<!\\)[<\[|*~]", shown)
    assert not re.search(r"@\w|\w#\d|://|GH-\d", shown)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("plain words", "plain words"),
        ("# heading", r"\# heading"),
        ("- item", r"\- item"),
        ("12. item", r"12\. item"),
        ("2026-11-21", "2026-11-21"),
        ("a_b *c* <d>", r"a\_b \*c\* \<d\>"),
        ("[x](y)", r"\[x\](y)"),
        ("@team", "@\u200bteam"),
        ("see #12", "see #\u200b12"),
        ("https://x.example", "https:\u200b//x.example"),
    ],
)
def test_prose(text: str, written: str) -> None:
    assert prose(text) == written


@given(st.text(st.sampled_from("`a \\|")))
def test_a_code_span_ends_only_at_its_end(text: str) -> None:
    span = code(text)
    fence = span[: len(span) - len(span.lstrip("`"))]
    assert span.endswith(fence)
    assert not re.search(rf"(?<!`){fence}(?!`)", span[len(fence) : -len(fence)])


@given(st.text(st.sampled_from("`~a\n ")))
def test_a_fence_ends_only_at_its_end(text: str) -> None:
    first, *_, last = block = fenced(text).split("\n")
    assert first == f"{last}text"
    assert all(len(line) < len(last) or set(line) != {"`"} for line in block[1:-1])


def test_huge_result_fits_into_an_issue_and_counts_omitted_incidents() -> None:
    incident = examples.diagnosed_incident()
    incidents = tuple(replace(incident, deployment=f"d{n}", incident_id=str(n)) for n in range(300))
    text = render(replace(examples.diagnosed(), incidents=incidents), "markdown")
    assert len(text) <= MAX_CHARS
    assert "292 more incidents with a failure: see the JSON output" in text


def test_one_endless_excerpt_is_cut_with_everything_closed() -> None:
    text = render(hostile.filled(examples.diagnosed(), "```` x\n" * 2_000), "markdown")
    assert len(text) <= MAX_CHARS
    assert "still in a fence" not in _outline(text)
    assert text.endswith("The JSON output contains the complete result.\n")


@pytest.mark.parametrize("run", ["```", "````", "`````````"])
def test_a_closing_fence_inside_of_the_log_closes_nothing(run: str) -> None:
    block = fenced(f"one\n{run}\n# two")
    assert _outline(block) == ["fence text", "end of fence"]


def test_a_page_cut_inside_a_fence_closes_it() -> None:
    """The first incident fills the page, and the page is truncated in the excerpt of the second."""
    incident = examples.undetermined_incident()
    assert incident.first_fault is not None
    long = replace(
        incident,
        summary="s" * 5_000,
        first_fault=replace(incident.first_fault, excerpt="line\n\n" * 2_000),
        missing_evidence=("m" * 5_000,) * 10,
    )
    result = replace(examples.undetermined(), incidents=(long, long))
    text = render(result, "markdown")
    assert len(text) <= MAX_CHARS
    assert _outline(text).count("fence text") == 2
    assert _outline(text).count("end of fence") == 2
    assert text.endswith("The JSON output contains the complete result.\n")


def test_a_page_cut_inside_a_folded_section_closes_it() -> None:
    cause = replace(examples.disk_full(), reasons=("r " * 3_000,) * 6, cause="c " * 3_000)
    incident = replace(
        examples.diagnosed_incident(),
        diagnoses=(cause,),
        missing_evidence=("m" * 5_000,) * 10,
    )
    text = render(replace(examples.diagnosed(), incidents=(incident,)), "markdown")
    assert len(text) <= MAX_CHARS
    assert "<details>" in text
    assert text.count("<details>") == text.count("</details>")
