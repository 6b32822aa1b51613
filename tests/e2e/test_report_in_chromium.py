"""The HTML report in a browser: its content and its script. Nothing else is run or loaded."""

from __future__ import annotations

import random
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

import flink_triage as ft
from flink_triage.model import Incident, Result
from flink_triage.report import render
from tests.unit.report import examples, hostile

LOGS = Path(__file__).resolve().parents[1] / "logs"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
AXE_BYTES = 1_000_000
DEMO = (
    "checkpoint/tolerable-threshold-exceeded/disk-full-1.16.0",
    "healthy/orders-2.1.1",
    "kafka/offset-commit-failed/broker-frozen-1.20.1",
    "rocksdb/bad-table-magic/flip-2.1.1",
)
# The structure of the page: elements, their classes, and the names of their attributes. Text and
# other attribute values, such as element IDs, differ.
OUTLINE = """() => [...document.querySelectorAll('*')].map((element) =>
  [element.tagName, element.className.baseVal ?? element.className,
   ...element.getAttributeNames()].join(' '))"""

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


class Watched:
    """A page, and a record of all events that must not occur on it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.events: list[str] = []
        page.on("dialog", lambda dialog: (self.events.append("dialog"), dialog.dismiss()))
        page.on("console", lambda message: self.events.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: self.events.append(f"error: {error}"))
        page.on("popup", lambda _: self.events.append("popup"))
        page.on("download", lambda _: self.events.append("download"))
        page.on("framenavigated", lambda frame: self._navigated(frame.url))
        page.on("request", lambda request: self._requested(request.url))
        self._opened = ""

    def _navigated(self, url: str) -> None:
        if url.partition("#")[0] not in (self._opened, "about:blank"):
            self.events.append(f"navigated: {url}")

    def _requested(self, url: str) -> None:
        if url.partition("#")[0] != self._opened:
            self.events.append(f"request: {url}")

    def open(self, file: Path, anchor: str = "") -> Page:
        self._opened = file.as_uri()
        self.page.goto(self._opened + anchor)
        return self.page


@pytest.fixture(params=[True, False], ids=["with JavaScript", "without JavaScript"], scope="module")
def watched(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Watched]:
    context = browser.new_context(java_script_enabled=request.param)
    if request.param:
        context.add_init_script(
            "addEventListener('securitypolicyviolation', (e) => console.error(e.violatedDirective))"
        )
    yield Watched(context.new_page())
    context.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Watched]:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    watched = Watched(context.new_page())
    yield watched
    assert watched.events == []
    context.close()


# --- the five reports --------------------------------------------------------------------------


def diagnosed(*folders: str) -> Result:
    return ft.diagnose([LOGS / folder / "logs" for folder in folders])


@pytest.fixture(scope="module")
def everything() -> Result:
    return ft.diagnose([*LOGS.glob("*/*/*/logs"), *LOGS.glob("healthy/*/logs")])


def fleet(real: Result, deployments: int, incidents: int) -> Result:
    """Copies real incidents under other names and times, up to ``incidents`` per deployment."""
    dice = random.Random(7)
    healthy = [i for i in real.incidents if i.verdict == "healthy"]
    failed = [i for i in real.incidents if i.verdict != "healthy"]
    found: list[Incident] = []
    for number in range(deployments):
        some = (
            healthy[:1] if number % 4 == 3 else dice.choices(failed, k=dice.randint(1, incidents))
        )
        for copy, incident in enumerate(some):
            back = timedelta(minutes=dice.randrange(43_200))
            found.append(
                moved(incident, f"team-{number % 12}/job-{number}", f"{number}-{copy}", back)
            )
    config = next(iter(real.effective_config.values()))
    return replace(
        real,
        incidents=tuple(found),
        effective_config={incident.deployment: config for incident in found},
    )


def moved(incident: Incident, deployment: str, name: str, back: timedelta) -> Incident:
    def at(moment: datetime | None) -> datetime | None:
        return moment - back if moment is not None else None

    fault = incident.first_fault
    return replace(
        incident,
        deployment=deployment,
        incident_id=name,
        started_at=at(incident.started_at),
        ended_at=at(incident.ended_at),
        first_fault=replace(fault, at=at(fault.at)) if fault is not None else None,
        timeline=tuple(replace(entry, at=at(entry.at)) for entry in incident.timeline),
    )


REPORTS = {
    "the demo": lambda _: diagnosed(*DEMO),
    "a healthy deployment": lambda _: diagnosed("healthy/orders-2.1.1"),
    "an unknown failure": lambda _: examples.undetermined(),
    "a fleet of five": lambda real: fleet(real, 5, 1),
    "a fleet of two hundred": lambda real: fleet(real, 200, 30),
}


@pytest.fixture(params=REPORTS, scope="module")
def report(request, everything: Result, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_text(render(REPORTS[request.param](everything), "html"), encoding="utf-8")
    return file


def test_no_report_is_beyond_five_megabytes_and_its_times_are_printed(
    report: Path, page: Watched, record_property
) -> None:
    began = time.perf_counter()
    page.open(report)
    page.page.locator("main").wait_for()
    seconds = time.perf_counter() - began
    size = report.stat().st_size
    record_property("seconds", round(seconds, 2))
    print(f"{size:,} bytes, opened in {seconds:.2f} s")
    assert size < 5_000_000


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_a_report_fits_its_window_and_axe_finds_nothing_serious(
    report: Path, page: Watched, width: int, scheme: Any
) -> None:
    page.page.set_viewport_size({"width": width, "height": 800})
    page.page.emulate_media(color_scheme=scheme)
    opened = page.open(report)
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    if report.stat().st_size < AXE_BYTES:
        # Collapsed sections are part of the page. For those of a fleet, axe would take minutes.
        opened.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        assert opened.evaluate("document.documentElement.scrollWidth") <= width
        found = Axe().run(opened).response["violations"]
        serious = [
            (problem["id"], [node["html"][:160] for node in problem["nodes"][:3]])
            for problem in found
            if problem["impact"] in ("serious", "critical")
        ]
        assert serious == []


# --- what the first screen shows ---------------------------------------------------------------


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("demo") / "report.html"
    file.write_text(render(diagnosed(*DEMO), "html"), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def with_options(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with an incident whose remediation changes an option."""
    page = tmp_path_factory.mktemp("options") / "report.html"
    found = diagnosed("memory/oom-metaspace/unlogged-1.17.2")
    page.write_text(ft.render(found, "html"), encoding="utf-8")
    return page


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("single") / "report.html"
    file.write_text(render(diagnosed(DEMO[0]), "html"), encoding="utf-8")
    return file


def seen(page: Page, words: str) -> bool:
    """Whether the first element with this text is in the window without scrolling."""
    box = page.get_by_text(words).first.bounding_box()
    size = page.viewport_size
    assert size is not None
    return box is not None and 0 <= box["y"] < size["height"] and box["height"] > 0


def test_first_screen_shows_failure_time_scope_confidence_and_remedy(
    single: Path, page: Watched
) -> None:
    page.page.set_viewport_size({"width": 1280, "height": 800})
    opened = page.open(single)
    for words in (
        "Disk, volume or quota is full",
        "2026-11-21 05:52:20 UTC",
        "both subtasks of",
        "% sure: almost certain",
        "No space left on device",
        "Risk: restart.",
    ):
        assert seen(opened, words), words


def test_first_screen_of_a_phone_shows_failure_time_and_confidence(
    single: Path, page: Watched
) -> None:
    page.page.set_viewport_size({"width": 390, "height": 800})
    opened = page.open(single)
    for words in (
        "Disk, volume or quota is full",
        "2026-11-21 05:52:20 UTC",
        "% sure: almost certain",
    ):
        assert seen(opened, words), words


def test_the_first_screen_of_many_has_a_verdict_for_each(demo: Path, page: Watched) -> None:
    page.page.set_viewport_size({"width": 1280, "height": 800})
    opened = page.open(demo)
    for words in ("3 diagnosed (2 critical)", "disk-full-1.16.0", "flip-2.1.1", "1 healthy"):
        assert seen(opened, words), words


# --- what the script adds ----------------------------------------------------------------------


def test_a_button_copies_the_options_and_nothing_else(with_options: Path, page: Watched) -> None:
    opened = page.open(with_options)
    opened.get_by_role("button", name="Copy the options").first.click()
    opened.get_by_text("Copied").first.wait_for()
    copied = opened.evaluate("navigator.clipboard.readText()")
    shown = opened.locator("pre[data-copy=options]").first.text_content()
    assert copied == shown
    assert copied.startswith("taskmanager.memory.jvm-metaspace.size: 512 mb")


def test_a_trace_is_copied_as_it_was_logged(single: Path, page: Watched) -> None:
    opened = page.open(single)
    trace = opened.locator("details.trace", has_text="standalonesession").first
    trace.locator("summary").first.click()
    trace.get_by_role("button", name="Copy the stack trace").click()
    trace.get_by_text("Copied").wait_for()
    copied = opened.evaluate("navigator.clipboard.readText()")
    log = next((LOGS / DEMO[0] / "logs").glob("*standalonesession*.log")).read_text("utf-8")
    assert copied.count("\n") > 20
    assert copied in log


def test_more_frames_unfold_without_a_script(single: Path, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    opened = context.new_page()
    opened.goto(single.as_uri())
    trace = opened.locator("details.trace", has_text="standalonesession").first
    trace.locator("summary").first.click()
    more = trace.locator("details.fold", has_text="... 3 more").first
    hidden = more.locator(".frame").first
    assert not hidden.is_visible()
    more.locator("summary").click()
    assert hidden.is_visible()
    assert opened.locator("#filter-place").count() == 0
    context.close()


def shown_rows(page: Page) -> list[str]:
    names = page.locator("#fleet tr[data-row] th").all()
    return [(name.text_content() or "").strip() for name in names if name.is_visible()]


def test_rows_and_sections_are_filtered_by_words_state_and_signature(
    demo: Path, page: Watched
) -> None:
    opened = page.open(demo)
    assert len(shown_rows(opened)) == 3
    opened.keyboard.press("/")
    opened.keyboard.type("rocksdb corrupt")
    assert shown_rows(opened) == ["flip-2.1.1"]
    assert [a.is_visible() for a in opened.locator("article").all()].count(True) == 1
    assert opened.locator("#filter-count").text_content() == "1 of 4 deployments"
    opened.keyboard.press("Escape")
    assert len(shown_rows(opened)) == 3
    opened.get_by_role("checkbox", name="minor").check()
    assert shown_rows(opened) == ["broker-frozen-1.20.1"]
    opened.get_by_role("checkbox", name="minor").uncheck()
    opened.get_by_role("combobox", name="Signature").select_option("disk/full")
    assert shown_rows(opened) == ["disk-full-1.16.0"]


def test_a_filter_can_be_sent_as_a_link(demo: Path, page: Watched) -> None:
    opened = page.open(demo)
    opened.get_by_role("checkbox", name="critical").check()
    anchor = "#" + opened.url.partition("#")[2]
    opened.goto("about:blank")
    page.open(demo, anchor)
    assert shown_rows(opened) == ["disk-full-1.16.0", "flip-2.1.1"] or len(shown_rows(opened)) == 2
    assert opened.get_by_role("checkbox", name="critical").is_checked()


def test_a_link_to_a_folded_diagnosis_unfolds_it(single: Path, page: Watched) -> None:
    opened = page.open(single)
    link = opened.locator(".chain a").first
    anchor = link.get_attribute("href")
    assert anchor is not None
    target = opened.locator(f"details{anchor}")
    assert target.get_attribute("open") is None
    opened.goto("about:blank")
    page.open(single, anchor)
    assert target.get_attribute("open") is not None
    assert target.locator("h4").first.is_visible()


def test_everything_is_unfolded_on_paper(single: Path, page: Watched) -> None:
    opened = page.open(single)
    opened.evaluate("dispatchEvent(new Event('beforeprint'))")
    opened.emulate_media(media="print")
    assert opened.locator("details:not([open])").count() == 0
    assert not opened.get_by_role("button", name="Unfold all").is_visible()
    opened.evaluate("dispatchEvent(new Event('afterprint'))")
    assert opened.locator("details:not([open])").count() > 5


def test_the_keyboard_reaches_the_remedy_and_the_evidence(
    with_options: Path, page: Watched
) -> None:
    opened = page.open(with_options)
    reached = []
    for _ in range(14):
        opened.keyboard.press("Tab")
        reached.append(opened.evaluate("document.activeElement.textContent.trim().slice(0, 40)"))
    assert reached[0] == "Skip to the verdicts"
    assert "Unfold all" in reached
    assert "Copy" in reached
    assert any(words.startswith("Reasons and current value") for words in reached)
    assert any("logs/flink-flink-" in words for words in reached)


# --- hostile words -----------------------------------------------------------------------------


def hostile_result(text: str) -> Result:
    """A result that fills every part of the page, with ``text`` in every free-text field."""
    result = examples.diagnosed()
    names = ("b2", "c3", "d4", "e5")
    kinds = (examples.undetermined_incident(), examples.healthy_incident())
    more = tuple(replace(kind, incident_id=name) for name, kind in zip(names, kinds, strict=False))
    return hostile.filled(replace(result, incidents=(*result.incidents, *more)), text)


@pytest.fixture(scope="module")
def harmless(watched: Watched, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    file = tmp_path_factory.mktemp("harmless") / "report.html"
    file.write_text(render(hostile_result(hostile.HARMLESS), "html"), encoding="utf-8")
    return outline(watched.open(file))


def outline(page: Page) -> list[str]:
    found: list[str] = page.evaluate(OUTLINE)
    return found


@pytest.mark.parametrize("text", hostile.STRINGS.values(), ids=hostile.STRINGS)
def test_hostile_text_in_every_field_stays_text(
    watched: Watched, harmless: list[str], tmp_path: Path, text: str
) -> None:
    watched.events.clear()
    file = tmp_path / "report.html"
    file.write_text(render(hostile_result(text), "html"), encoding="utf-8")
    opened = watched.open(file)
    for scheme in ("light", "dark"):
        opened.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        assert outline(opened) == harmless
    opened.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    opened.evaluate("document.querySelectorAll('button, input').forEach((e) => e.focus())")
    assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert watched.events == []
    assert re.fullmatch(r"file://.*/report\.html(#.*)?", opened.url)


def test_injected_script_is_blocked_and_detected(browser: Browser, tmp_path: Path) -> None:
    """If escaping fails, the content security policy blocks a script, and the checks detect it."""
    page = render(examples.diagnosed(), "html")
    for number, active in enumerate(
        (
            "<script>alert(1)</script>",
            "<img src=https://x.example/>",
            "<p onclick=x style=color:red>",
        )
    ):
        file = tmp_path / f"{number}.html"
        file.write_text(page.replace("<main", f"{active}<main"), encoding="utf-8")
        context = browser.new_context()
        watched = Watched(context.new_page())
        watched.open(file)
        watched.page.wait_for_timeout(100)
        assert any("Content Security Policy" in event for event in watched.events), active
        assert "dialog" not in watched.events
        context.close()
