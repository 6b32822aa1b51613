"""The text format: verdict first, 80 columns by default, and no terminal control sequences."""

from __future__ import annotations

import io
import re
import unicodedata
from dataclasses import replace

import pytest

from flink_triage.cli.outputs import wants_color
from flink_triage.errors import UsageError
from flink_triage.model import ConfigChange, Quarantined
from flink_triage.report import Format, render
from flink_triage.report.facts.patches import already
from flink_triage.report.facts.sanitize import columns_of
from flink_triage.report.formats.text import render_text
from tests.unit.report import examples, hostile

OPTION = "execution.checkpointing.tolerable-failed-checkpoints"


def _too_wide(text: str, width: int = 80) -> list[str]:
    """Returns lines that are too wide, except for options to copy, which must not be wrapped."""
    options = re.compile(r" {10,}\S.*(?:: |: \S+   # |# ).*")
    return [
        line for line in text.split("\n") if columns_of(line) > width and not options.match(line)
    ]


@pytest.mark.parametrize("verbose", [False, True], ids=["short", "verbose"])
@pytest.mark.parametrize("name", examples.ALL)
def test_examples_fit_80_columns(name: str, verbose: bool) -> None:
    text = render(examples.ALL[name](), "text", verbose=verbose)
    assert [line for line in text.split("\n") if columns_of(line) > 80] == []


@pytest.mark.parametrize("text", hostile.STRINGS.values(), ids=hostile.STRINGS)
@pytest.mark.parametrize("name", ["diagnosed", "undetermined", "healthy"])
def test_hostile_text_stays_inert_and_folded(name: str, text: str) -> None:
    shown = render(hostile.filled(examples.ALL[name](), text), "text", verbose=True)
    kinds = {unicodedata.category(character) for character in shown if character != "\n"}
    assert not kinds & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert _too_wide(shown) == []


@pytest.mark.parametrize("text", hostile.STRINGS.values(), ids=hostile.STRINGS)
def test_hostile_text_adds_no_line_start_of_its_own(text: str) -> None:
    """No string can forge a line that looks like a deployment or a rank at the start of a line."""

    def starts(result_text: str) -> list[str]:
        lines = render(hostile.filled(examples.diagnosed(), result_text), "text").split("\n")
        return [line[:5] for line in lines if re.match(r" {0,2}\d+  ", line)]

    assert starts(f"{text}\n  1  forged") == starts(hostile.HARMLESS)


def test_the_verdict_comes_first() -> None:
    lines = render(examples.diagnosed(), "text").split("\n")
    assert lines[0].startswith('orders-prod · job "orders-totals" 9b1a51e4 · Flink 1.16.0')
    assert lines[1].strip() == "failed, first fault at 2026-11-21 05:52:20 UTC"
    assert lines[2] == (
        "  1  Checkpoint storage is full                        trigger · critical · 0.97"
    )


def test_option_can_be_pasted_and_shows_the_current_value() -> None:
    text = render(examples.diagnosed(), "text")
    assert f"{OPTION}: 3   # now 0" in [line.strip() for line in text.split("\n")]
    assert "state.checkpoints.num-retained is already 1" in text


def test_a_long_option_is_never_folded() -> None:
    cause = examples.disk_full()
    change = replace(cause.remediation.config[0], key="connector.option." + "x" * 90)
    cause = replace(cause, remediation=replace(cause.remediation, config=(change,)))
    incident = replace(examples.diagnosed_incident(), diagnoses=(cause,))
    text = render(replace(examples.diagnosed(), incidents=(incident,)), "text")
    assert f"{change.key}: 3   # now 0" in [line.strip() for line in text.split("\n")]


def test_verbose_adds_reasons_advice_and_references() -> None:
    short, verbose = (
        render(examples.diagnosed(), "text", verbose=is_verbose) for is_verbose in (False, True)
    )
    for words in ("stands at the root of the cause chain", "but: Hides the failure", "FLINK-18856"):
        assert words not in short
        assert words in verbose


def test_undetermined_incident_lists_missing_evidence() -> None:
    text = render(examples.undetermined(), "text")
    assert "cause undetermined" in text
    assert "?  A task failed with an exception whose cause these logs do not hold." in text
    assert "missing evidence: the TaskManager's log of 06:58:55 to 06:59:05" in text


def test_healthy_verdict_shows_the_amount_of_data_read() -> None:
    lines = render(examples.healthy(), "text").split("\n")
    assert lines[0].endswith("· healthy")
    assert lines[1].strip() == "no failure found · last checkpoint 58 at 06:20:00"
    assert "2 files (89 KiB) · 633 events" in lines[3]


def test_the_healthy_ones_of_a_fleet_take_one_paragraph() -> None:
    text = render(examples.fleet(), "text")
    assert text.split("\n")[0] == (
        "40 deployments · 3 diagnosed (2 critical) · 1 undetermined · 36 healthy"
    )
    assert "36 healthy: service-00, service-01" in text


def test_blind_spots_are_named() -> None:
    text = render(examples.diagnosed(), "text")
    assert "not read: orders-prod/core.4711: binary: 38 % NUL bytes" in text
    assert "not evaluated: kafka/auth-failed: regex ran out of time" in text
    assert "1 failure without a signature" in text


def test_result_without_incidents_has_a_message() -> None:
    text = render(replace(examples.healthy(), incidents=()), "text")
    assert text.startswith("nothing to diagnose")


def test_colour_adds_nothing_but_styles() -> None:
    plain = render(examples.diagnosed(), "text")
    colored = render(examples.diagnosed(), "text", color=True)
    assert "\x1b[1;31m  1  Checkpoint storage is full" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == plain


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environment", "wanted"),
    [
        (_Terminal(), {}, True),
        (_Terminal(), {"NO_COLOR": "1"}, False),
        (_Terminal(), {"NO_COLOR": ""}, True),
        (_Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
    ],
)
def test_colour_is_for_terminals_that_want_it(
    stream: io.StringIO, environment: dict[str, str], wanted: bool
) -> None:
    assert wants_color(stream, environment) is wanted


def test_a_narrow_terminal_gets_narrow_lines() -> None:
    assert _too_wide(render_text(examples.diagnosed(), width=60, verbose=True), 60) == []


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(UsageError, match="allowed: text, json, jsonl, markdown, html"):
        render(examples.healthy(), "pdf")  # type: ignore[arg-type]


def test_already_set_option_is_stated_once() -> None:
    done = ConfigChange(OPTION, "3", "already-set", f"{OPTION} is already 3: look elsewhere")
    assert already(done) == done.reason
    assert already(replace(done, reason="Not that.")) == f"{OPTION} is already 3: Not that."


@pytest.mark.parametrize(("verbose", "rest"), [(False, "-v"), (True, "see the JSON output")])
def test_left_out_gaps_are_counted_with_the_place_that_lists_them(verbose: bool, rest: str) -> None:
    gaps = tuple(Quarantined(f"logs/{number}", "binary") for number in range(120))
    result = examples.healthy()
    result = replace(result, coverage=replace(result.coverage, quarantined=gaps))
    text = render(result, "text", verbose=verbose)
    shown = text.count("not read: ")
    assert f"{len(gaps) - shown} more: {rest}" in text


@pytest.mark.parametrize("form", ["text", "markdown", "sarif", "github"])
def test_undiagnosed_deployment_is_not_called_unread(form: Format) -> None:
    gap = Quarantined("orders", "not diagnosed: it takes more than 300 s of CPU time")
    assert gap.is_undiagnosed
    result = examples.healthy()
    shown = render(replace(result, coverage=replace(result.coverage, quarantined=(gap,))), form)
    assert "not diagnosed" in shown
    assert "not read" not in shown
