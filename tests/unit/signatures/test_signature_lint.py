"""The linter reports fragile signatures and accepts sound ones."""

from __future__ import annotations

from dataclasses import replace

import pytest
from signature_builders import DATA, SMALL_PACK, signature

from flink_triage.remediation import check_pack
from flink_triage.signatures import (
    Alternative,
    ComputedValue,
    ConfigSpec,
    Examples,
    RemediationSpec,
    Signature,
    SignaturePack,
    When,
    load_pack,
)
from flink_triage.signatures.lint import lint, lint_signature, slowest_seconds

SOUND = signature(
    cause="Eight words are needed here to say something useful.",
    remediation=RemediationSpec("Do this.", steps=("Do that.",)),
    examples=Examples(("we lost it",), ("we kept it",)),
)


def with_regex(pattern: str, *literals: str) -> Signature:
    return replace(SOUND, alternatives=(Alternative(literals=literals, regex=pattern),))


POOR = {
    "a title of one word": (replace(SOUND, title="Failure"), "title"),
    "a title that ends in a full stop": (replace(SOUND, title="Something went wrong."), "title"),
    "a harmless trigger": (replace(SOUND, severity="info"), "severity"),
    "something critical and benign": (
        replace(SOUND, role="benign", severity="critical"),
        "severity",
    ),
    "something benign that explains": (
        replace(SOUND, role="benign", severity="info", explains=("a/c",)),
        "explains",
    ),
    "a cause of two words": (replace(SOUND, cause="It broke."), "cause"),
    "a draft whose cause nobody wrote": (
        replace(SOUND, cause="TODO what happened and why, in two to six plain sentences."),
        "cause",
    ),
    "a draft whose cure nobody wrote": (
        replace(SOUND, remediation=RemediationSpec("TODO what cures it", steps=("Do that.",))),
        "remediation.summary",
    ),
    "a missing class that is not captured": (
        replace(SOUND, remediation=RemediationSpec("x", ("y",), missing_class="class")),
        "remediation.missing_class",
    ),
    "no example": (replace(SOUND, examples=Examples((), ("x",))), "examples.match"),
    "no near miss": (replace(SOUND, examples=Examples(("x",), ())), "examples.no_match"),
    "a trigger without anything to do": (
        replace(SOUND, remediation=RemediationSpec("Do this.")),
        "remediation",
    ),
    "remedies of two causes": (
        replace(
            SOUND,
            alternatives=(Alternative(literals=("lost it",), regex="lost it (?P<code>\\w+)"),),
            remediation=RemediationSpec(
                "x",
                config=(
                    ConfigSpec("k", "v", when=When(captures={"code": "SlowDown"})),
                    ConfigSpec("l", "v", when=When(captures={"code": "Denied"})),
                ),
            ),
        ),
        "remediation.config[1].when.capture.code",
    ),
    "a value from what nothing captures": (
        replace(
            SOUND,
            remediation=RemediationSpec(
                "x", config=(ConfigSpec("k", ComputedValue(2, stated=("size_bytes * 2",))),)
            ),
        ),
        "remediation.config[0].value.stated",
    ),
    "a condition on what nothing captures": (
        replace(
            SOUND,
            remediation=RemediationSpec(
                "x", config=(ConfigSpec("k", "v", when=When(captures={"file": "x"})),)
            ),
        ),
        "remediation.config[0].when.capture.file",
    ),
    "a literal over two lines": (
        replace(SOUND, alternatives=(Alternative(literals=("lost\nit all",)),)),
        "match.any[0].literal",
    ),
    "a literal without letters": (
        replace(SOUND, alternatives=(Alternative(literals=("12345",)),)),
        "match.any[0].literal",
    ),
    "a literal that ends in a space": (
        replace(SOUND, alternatives=(Alternative(literals=("lost it ",)),)),
        "match.any[0].literal",
    ),
    "a regex that matches everything": (with_regex(".*", "lost it"), "match.any[0].regex"),
    "a number of one version": (
        with_regex(r"lost it at line 1234", "lost it"),
        "match.any[0].regex",
    ),
    "a repetition inside a repetition": (
        with_regex(r"lost it (?:\w+\s?)+$", "lost it"),
        "match.any[0].regex",
    ),
    "a veto that matches everything": (
        replace(SOUND, vetoes=(Alternative(literals=("okay",), regex="x?"),)),
        "match.none[0].regex",
    ),
}


@pytest.mark.parametrize(("poor", "field"), POOR.values(), ids=POOR.keys())
def test_poor_signatures(poor: Signature, field: str) -> None:
    assert {problem.field for problem in lint_signature(poor)} == {field}


FINE = {
    "a plain literal": SOUND,
    "digits that a literal demands too": with_regex(r"error 404 at (?P<url>\S+)", "error 404"),
    "digits in classes, counts and escapes": with_regex(
        r"lost (?P<n1>[0-9a-f]{8}) \x41[^1]\d{2,5}", "lost"
    ),
    "a bounded repetition of a repetition": with_regex(r"lost it(?: \w+){1,3}", "lost it"),
    "repetition beside repetition": with_regex(r"lost (?P<a>\w+) of (?P<b>\w+)", "lost"),
}


@pytest.mark.parametrize("fine", FINE.values(), ids=FINE.keys())
def test_sound_signatures_are_left_alone(fine: Signature) -> None:
    assert lint_signature(fine) == ()


def test_a_regex_is_timed_on_hostile_texts() -> None:
    assert slowest_seconds(r"lost (?P<file>\S+)", ["lost"]) < 0.05
    assert slowest_seconds(r"(?:a|aa)+$") > 0.25


def test_the_small_pack_has_no_problem() -> None:
    assert lint([SMALL_PACK], check_pack) == ()


def test_only_the_signatures_of_the_added_directories_are_checked() -> None:
    checked: list[str] = []

    def note(pack: SignaturePack) -> list[str]:
        checked.extend(pack.signatures)
        return []

    found = lint([SMALL_PACK, DATA / "team"], note)
    assert checked == ["rocksdb/bad-table-magic"]
    assert {problem.partition(":")[0] for problem in found} == {
        str(DATA / "team" / "rocksdb" / "bad-table-magic.yaml")
    }


def test_problems_of_loading_of_linting_and_of_options_come_in_one_list() -> None:
    def no_such_option(pack: SignaturePack) -> list[str]:
        return [f"{id}: no such option" for id in pack.signatures]

    problems = lint([DATA / "team"], no_such_option)
    path = DATA / "team" / "rocksdb" / "bad-table-magic.yaml"
    assert set(problems) == {
        f"{path}:1: examples.match: is missing: give at least one whole real event",
        f"{path}:1: examples.no_match: is missing: give at least one near miss",
        f"{path}:8: cause: is too short for an explanation: fewer than 8 words",
        f"{path}:9: remediation: has neither steps nor config",
        "rocksdb/bad-table-magic: no such option",
    }


def test_examples_keep_their_line_numbers() -> None:
    pack = load_pack([SMALL_PACK])
    threshold = pack.signatures["checkpoint/threshold-exceeded"]
    assert threshold.lines["examples.match[0]"] == 14
