"""The loader reports all errors in a signature file at the same time, with their lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
from signature_builders import HEAD, SCHEMA, SMALL_PACK, problems_of

from flink_triage.model import TriedFix
from flink_triage.signatures import (
    Alternative,
    ComputedValue,
    ConfigSpec,
    RemediationSpec,
    Versions,
    When,
    build_pack,
)
from flink_triage.signatures.loader import load_signature, parse_seconds, parse_signature
from flink_triage.signatures.samples import check_examples

WRONG = {
    "regx is a slip of the hand": (
        "match: {any: [{literal: abcd, regx: x}]}",
        ["6: match.any[0].regx: is not a known field; did you mean regex?"],
    ),
    "no way to match": (
        "match: {none: [{literal: abcd}]}",
        ["6: match: must have exactly one of any, all, sequence; got none of them"],
    ),
    "two ways to match": (
        "match: {any: [{literal: abcd}], all: [{literal: abcd}]}",
        ["6: match: must have exactly one of any, all, sequence; got any and all"],
    ),
    "an alternative without literal": (
        "match:\n  any:\n    - throwable: java.io.IOException",
        ["8: match.any[0]: has no literal; one is required without error or frame-origin"],
    ),
    "a literal of three letters": (
        "match: {any: [{literal: [abcd, abc]}]}",
        ['6: match.any[0].literal[1]: "abc" is shorter than 4 characters'],
    ),
    "a regex that does not compile": (
        "match: {any: [{literal: abcd, regex: '(x'}]}",
        ["6: match.any[0].regex: is not a regex: missing ) at position 2"],
    ),
    "a regex that nests too deep": (
        f"match: {{any: [{{literal: abcd, regex: '{'(' * 2_000}'}}]}}",
        ["6: match.any[0].regex: is not a regex: nested too deeply or repeated too often"],
    ),
    "an unknown level": (
        "match: {any: [{literal: abcd, level: WARNING}]}",
        [
            '6: match.any[0].level: "WARNING" is not one of TRACE, DEBUG, INFO, WARN, ERROR, '
            "FATAL; did you mean WARN?"
        ],
    ),
    "type and root cause": (
        "match: {any: [{literal: abcd, throwable: A, root-cause: B}]}",
        ["6: match.any[0]: has throwable and root-cause; choose one"],
    ),
    "a scope that has nothing to look in": (
        "match: {any: [{literal: abcd, scope: throwable}]}",
        ["6: match.any[0].scope: requires throwable"],
    ),
    "within without anything to count": (
        "match: {any: [{literal: abcd}], within: 10 min}",
        ["6: match.within: requires count or sequence"],
    ),
    "within without unit": (
        "match: {any: [{literal: abcd}], count: 2, within: 10}",
        [
            '6: match.within: "10" is not valid; allowed: a number and a unit: ms, s, min, h or d '
            "(10 min)"
        ],
    ),
    "a count that is quoted": (
        "match: {any: [{literal: abcd}], count: '2'}",
        ['6: match.count: "2" is not a whole number without quotes, up to nine digits'],
    ),
    "a count of nothing": (
        "match: {any: [{literal: abcd}], count: 0}",
        ["6: match.count: 0 is below 1"],
    ),
    "an empty list": ("match: {any: []}", ["6: match.any: is empty"]),
    "a list where a mapping belongs": ("match: []", ["6: match: must be a mapping, got a list"]),
    "a mapping where a list belongs": (
        "match: {any: {literal: abcd}}",
        ["6: match.any: must be a list, got a mapping"],
    ),
    "three faults on three lines, all told": (
        "match:\n  any:\n    - literal: abc\n    - regex: x\n  cont: 2",
        [
            '8: match.any[0].literal: "abc" is shorter than 4 characters',
            "10: match.cont: is not a known field; did you mean count?",
        ],
    ),
}


@pytest.mark.parametrize(("match", "problems"), WRONG.values(), ids=WRONG.keys())
def test_wrong_match_clauses(match: str, problems: list[str]) -> None:
    assert problems_of(match) == problems


WRONG_HEADS = {
    "a severity of another tool": (
        ("severity: major", "severity: high"),
        ['2: severity: "high" is not one of critical, major, minor, info'],
    ),
    "a meaning that no rule uses": (
        ("severity: major", "severity: major\nmeaning: jobmanager-gone"),
        [
            '3: meaning: "jobmanager-gone" is not one of job-unknown, jobmanager-lost, '
            "system-exit, taskmanager-stopped; did you mean jobmanager-lost?"
        ],
    ),
    "a title of 81 characters": (
        ("Something went quite wrong", "x" * 81),
        ["1: title: is 81 characters, at most 80"],
    ),
    "no cause": (("cause: Eight words are needed here to say something useful.\n", ""), []),
    "an empty title": (("title: Something went quite wrong", "title:"), ["1: title: is empty"]),
}


@pytest.mark.parametrize(("change", "problems"), WRONG_HEADS.values(), ids=WRONG_HEADS.keys())
def test_wrong_heads(change: tuple[str, str], problems: list[str]) -> None:
    head = HEAD.replace(*change)
    expected = problems or ["1: cause: is missing"]
    assert problems_of("match: {any: [{literal: abcd}]}", head) == expected


def test_a_whole_file_becomes_one_signature() -> None:
    path = SMALL_PACK / "rocksdb" / "bad-table-magic.yaml"
    signature, problems = load_signature(path, "rocksdb/bad-table-magic", "f", SCHEMA)
    assert problems == ()
    assert signature is not None
    assert signature.alternatives == (
        Alternative(
            scope="throwable",
            throwables=("org.rocksdb.RocksDBException",),
            literals=("Bad table magic number",),
            regex=r"expected (?P<expected>\d+), found (?P<found>\d+) in (?P<file>\S+\.sst)",
        ),
    )
    assert signature.remediation == RemediationSpec(
        summary="Restore from an older checkpoint whose files are whole.",
        steps=("Start the job from the checkpoint before the damaged one.",),
        config=(
            ConfigSpec(
                "state.checkpoints.num-retained",
                "3",
                "raise",
                "An older checkpoint must exist to fall back to.",
                when=When(">=1.13,<2.0", {"state.backend.type": "rocksdb"}, {"file": r"\.sst$"}),
            ),
            ConfigSpec(
                "state.backend.rocksdb.checkpoint.transfer.thread.num",
                ComputedValue(2.0, "4", "16"),
                reason="Restoring reads many files.",
            ),
        ),
        verify="The next checkpoint completes.",
        commonly_tried=(
            TriedFix(
                "Delete the local directory.",
                "It only helps when the copy in checkpoint storage is whole.",
            ),
        ),
        references=("FLINK-36421",),
    )
    assert signature.versions == Versions(affected="1.10", fixed="no")
    assert signature.lines["remediation.config[1].value.factor"] == 27


@pytest.mark.parametrize(
    ("text", "seconds"), [("10 min", 600.0), ("1.5h", 5400.0), ("250 ms", 0.25), ("2 d", 172800.0)]
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_seconds(text) == seconds


def test_the_schema_file_is_a_json_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


PAGE = (Path(__file__).parents[3] / "docs" / "signature-format.md").read_text(encoding="utf-8")


def test_signature_on_the_format_page_loads_and_matches_its_examples() -> None:
    text = PAGE.split("```yaml\n")[2].partition("```")[0]
    signature, problems = parse_signature(text, "rocksdb/bad-table-magic", SCHEMA)
    assert problems == ()
    assert signature is not None
    assert check_examples(build_pack([signature])) == ()


def test_format_page_lists_every_field_and_allowed_value() -> None:
    words = set(_words(SCHEMA))
    shapes = ("`{}", "{}:", " {}`")
    missing = {w for w in words if not any(shape.format(w) in PAGE for shape in shapes)}
    assert missing == set()


def _words(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        yield from schema.get("enum", ())
        for part in schema.values():
            yield from _words(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _words(part)
