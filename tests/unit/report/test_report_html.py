"""The HTML format: one file, escaped text, and no active content except for its own script."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser

import jinja2
import pytest

from flink_triage.model import ConfigChange
from flink_triage.report import render
from flink_triage.report.formats.html import _environment, render_html
from flink_triage.report.formats.html_page import Limits, link_of
from tests.unit.report import examples, hostile

VOID = {"meta", "br", "img", "link", "input", "hr"}


class _Page(HTMLParser):
    """Collects the elements, attributes, and text of a page. All elements must be closed."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        assert len(dict(attrs)) == len(attrs)
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts.setdefault(self._open[-1], []).append(data)

    @property
    def outline(self) -> list[tuple[str, tuple[str, ...], str | None]]:
        return [(tag, tuple(attrs), attrs.get("class")) for tag, attrs in self.elements]


@cache
def _harmless(name: str) -> _Page:
    return _Page(render(hostile.filled(examples.ALL[name](), hostile.HARMLESS), "html"))


@pytest.mark.parametrize("text", hostile.STRINGS.values(), ids=hostile.STRINGS)
@pytest.mark.parametrize("name", ["diagnosed", "undetermined", "healthy"])
def test_hostile_text_leaves_the_elements_of_harmless_text(name: str, text: str) -> None:
    shown = _Page(render(hostile.filled(examples.ALL[name](), text), "html"))
    harmless = _harmless(name)
    assert shown.outline == harmless.outline
    assert shown.texts["script"] == harmless.texts["script"]
    assert shown.texts["style"] == harmless.texts["style"]


@pytest.mark.parametrize("text", hostile.STRINGS.values(), ids=hostile.STRINGS)
def test_hostile_text_reaches_no_link_handler_or_style(text: str) -> None:
    page = render(hostile.filled(examples.diagnosed(), text), "html")
    for _, attributes in _Page(page).elements:
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        assert (attributes.get("href") or "#").startswith(("#", "https://"))
        assert "src" not in attributes
    assert not re.search(
        r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]", page
    )
    page.encode("utf-8")


def test_log_text_is_shown_unchanged() -> None:
    text = "a <b> & 'c' \"d\" {{ e }}"
    shown = _Page(render(hostile.filled(examples.diagnosed(), text), "html"))
    assert text in shown.texts["pre"]


def test_only_our_own_style_and_script_may_run() -> None:
    page = _Page(render(examples.diagnosed(), "html"))
    policies = [a["content"] for t, a in page.elements if a.get("http-equiv")]
    hashes = {
        tag: base64.b64encode(hashlib.sha256("".join(page.texts[tag]).encode()).digest()).decode()
        for tag in ("style", "script")
    }
    assert policies == [
        f"default-src 'none'; style-src 'sha256-{hashes['style']}'; "
        f"script-src 'sha256-{hashes['script']}'; base-uri 'none'; form-action 'none'"
    ]


@pytest.mark.parametrize("name", examples.ALL)
def test_the_page_needs_nothing_from_anywhere(name: str) -> None:
    page = _Page(render(examples.ALL[name](), "html"))
    loading = {"link", "img", "iframe", "object", "embed", "video", "audio", "source", "base"}
    assert not loading & {tag for tag, _ in page.elements}
    style = "".join(page.texts["style"])
    assert "url(" not in style
    assert "@import" not in style


@pytest.mark.parametrize("name", examples.ALL)
def test_anchors_are_unique_and_every_inner_link_leads_somewhere(name: str) -> None:
    elements = _Page(render(examples.ALL[name](), "html")).elements
    anchors = [attributes["id"] for _, attributes in elements if "id" in attributes]
    assert len(set(anchors)) == len(anchors)
    targets = {str(a["href"])[1:] for _, a in elements if str(a.get("href")).startswith("#")}
    assert targets <= set(anchors)
    labels = {a["aria-labelledby"] for _, a in elements if "aria-labelledby" in a}
    assert labels <= set(anchors)


def test_anchors_stay_unique_when_incident_ids_do_not() -> None:
    incident = examples.diagnosed_incident()
    page = render(replace(examples.diagnosed(), incidents=(incident,) * 3), "html")
    anchors = [str(a["id"]) for tag, a in _Page(page).elements if tag == "article"]
    assert len(set(anchors)) == 3


def test_the_first_section_is_the_answer() -> None:
    page = render(examples.diagnosed(), "html")
    expected = [
        "Checkpoint storage is full",
        "97 % sure",
        "2026-11-21 05:52:20 UTC",
        "both subtasks of",
        "3 restarts in 12 s",
        "No space left on device",
        "Do this first",
        "tolerable-failed-checkpoints: 3   # now 0",
    ]
    body = page[page.index("<main") :]
    places = [body.index(words) for words in expected]
    assert places == sorted(places)
    assert places[-1] < body.index(">Timeline<")


def test_fleet_report_starts_with_a_table_of_incidents() -> None:
    page = _Page(render(examples.fleet(), "html"))
    rows = [a for tag, a in page.elements if tag == "tr" and "data-row" in a]
    assert len(rows) == 4
    assert len([tag for tag, _ in page.elements if tag == "article"]) == 4
    assert "36 healthy" in page.texts["span"]


def test_oversized_page_is_shortened_and_counts_omitted_incidents() -> None:
    incident = examples.diagnosed_incident()
    incidents = tuple(replace(incident, deployment=f"d{n}", incident_id=str(n)) for n in range(400))
    result = replace(examples.diagnosed(), incidents=incidents)
    page = render_html(result, max_bytes=600_000)
    assert len(page.encode()) <= 600_000
    assert re.search(r"3\d\d more incidents without a section", page)


def test_entries_beyond_the_limits_are_counted() -> None:
    limits = Limits(diagnoses=1, evidence=1, excerpt_chars=40, entries=2, options=3, marks=2)
    page = render_html(examples.diagnosed(), limits=limits)
    for words in (
        "2 more: see the JSON output (--format json).",
        "1 more piece of evidence",
        "characters omitted",
        "11 more: see the JSON output (--format json).",
        "4 more: see the JSON output (--format json).",
        "11 not drawn",
    ):
        assert words in page


def test_the_patch_of_an_injected_renderer_is_shown() -> None:
    def upper(changes: object, version: str | None, form: str) -> str:
        assert [change.key for change in changes if isinstance(change, ConfigChange)]  # type: ignore[attr-defined]
        return f"<{version} {form}>"

    assert "&lt;1.16.0 flink-conf.yaml&gt;" in render_html(examples.diagnosed(), patch=upper)


def test_options_of_other_places_do_not_land_in_flinks_file() -> None:
    cause = examples.disk_full()
    change = replace(cause.remediation.config[0], key="dfs.replication", scope="platform")
    remediation = replace(cause.remediation, config=(cause.remediation.config[0], change))
    incident = replace(
        examples.diagnosed_incident(), diagnoses=(replace(cause, remediation=remediation),)
    )
    page = _Page(render(replace(examples.diagnosed(), incidents=(incident,)), "html"))
    flink, platform = (text for text in page.texts["pre"] if "# now 0" in text)
    assert "dfs.replication" not in flink
    assert platform == "dfs.replication: 3   # now 0"


@pytest.mark.parametrize(
    ("reference", "link"),
    [
        ("FLINK-36421", "https://issues.apache.org/jira/browse/FLINK-36421"),
        ("https://nightlies.apache.org/flink/a-b_c/#d", "https://nightlies.apache.org/flink/a-b_c/#d"),
        ("http://a.example/", None),
        ("javascript:alert(1)", None),
        ("https://a.example/\" onclick=\"x", None),
        ("https://user@a.example/", None),
        ("CheckpointFailureManager.java", None),
    ],
)  # fmt: skip
def test_references_link_only_to_plain_pages(reference: str, link: str | None) -> None:
    assert link_of(reference) == link


def test_templates_trust_nothing() -> None:
    environment = _environment()
    assert environment.autoescape is True
    assert environment.undefined is jinja2.StrictUndefined
    assert environment.loader is not None
    for name in environment.list_templates(extensions=["j2"]):
        source, _, _ = environment.loader.get_source(environment, name)
        assert "safe" not in re.findall(r"\|\s*(\w+)", source)
        assert not re.search(r"=\{\{|\son\w+=|style=", source)
        assert not re.search(r"href=\"\{\{ (?!link_of\()", source)
