"""Failure enrichers receive conditions that can be checked on a throwable, in Java syntax."""

from __future__ import annotations

from pathlib import Path

import pytest
from signature_builders import SMALL_PACK, pack_of, signature

from flink_triage.signatures import Alternative, build_pack, builtin_pack_directory, load_pack
from flink_triage.signatures.export import (
    EXPORT_KINDS,
    LABEL_MAPPER_FILE,
    RULES_FILE,
    ExportKind,
    Untranslatable,
    export,
    failure_enricher,
    render_rules,
    to_java,
)

TEXT = Alternative(literals=("lost it",))
LOGGED = Alternative(literals=("lost it",), loggers=("org.x",))


# --- which part of a pack ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("alternative", "reason"),
    [
        pytest.param(LOGGED, "requires a logger", id="a logger"),
        pytest.param(
            Alternative(literals=("lost it",), levels=("INFO",)),
            "requires a level at which failures are not logged",
            id="a level at which no failure is logged",
        ),
        pytest.param(
            Alternative("message", literals=("lost it",)),
            "requires the message of a log line",
            id="the header line",
        ),
        pytest.param(
            Alternative(literals=("lost it",), regex=r"lost \m it"),
            "\\m has no Java equivalent",
            id="a regex without a Java equivalent",
        ),
    ],
)
def test_conditions_not_visible_in_a_throwable_are_left_out_with_a_reason(
    alternative: Alternative, reason: str
) -> None:
    beside = failure_enricher(pack_of(TEXT, alternative))
    assert beside.left_out == {"a/b: match.any[1]": reason}
    assert beside.pack.signatures["a/b"].alternatives == (TEXT,)
    alone = failure_enricher(pack_of(alternative))
    assert (alone.left_out, dict(alone.pack.signatures)) == ({"a/b": reason}, {})
    needed = failure_enricher(pack_of(TEXT, alternative, mode="all"))
    assert (needed.left_out, dict(needed.pack.signatures)) == ({"a/b": reason}, {})


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        pytest.param({"count": 3}, "requires several events", id="repetition"),
        pytest.param({"mode": "sequence"}, "requires several events", id="an order of events"),
        pytest.param(
            {"vetoes": (Alternative(literals=("on purpose",), regex=r"on \m"),)},
            "its veto cannot be checked: \\m has no Java equivalent",
            id="a veto that Java cannot check",
        ),
    ],
)
def test_a_signature_that_one_throwable_cannot_show_is_left_out(
    fields: dict[str, object], reason: str
) -> None:
    rules = failure_enricher(build_pack([signature(alternatives=(TEXT, TEXT), **fields)]))
    assert (rules.left_out, dict(rules.pack.signatures)) == ({"a/b": reason}, {})


def test_levels_processes_and_loggers_are_dropped_on_export() -> None:
    warned = Alternative(literals=("lost it",), levels=("INFO", "WARN"), process="jobmanager")
    asked = failure_enricher(pack_of(warned, vetoes=(LOGGED,))).pack.signatures["a/b"]
    assert (asked.alternatives, asked.vetoes) == ((TEXT,), (TEXT,))


def test_a_veto_on_the_header_line_never_holds() -> None:
    veto = Alternative("message", literals=("on purpose",))
    assert failure_enricher(pack_of(TEXT, vetoes=(veto,))).pack.signatures["a/b"].vetoes == ()


def test_nearly_the_whole_pack_is_exported() -> None:
    pack = load_pack([builtin_pack_directory()])
    rules = failure_enricher(pack)
    assert len(rules.pack.signatures) > len(pack.signatures) * 0.95
    assert not [reason for reason in rules.left_out.values() if "Java" in reason]


# --- the file ----------------------------------------------------------------------------------


def records(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.removesuffix("\n").split("\n")]


@pytest.mark.parametrize(("precedence", "kind"), [("normal", "named"), ("fallback", "fallback")])
def test_the_file_distinguishes_fallbacks_from_named_signatures(precedence: str, kind: str) -> None:
    pack = pack_of(Alternative(literals=("lost it",)), precedence=precedence)
    rows = records(render_rules(failure_enricher(pack)))
    assert ["signature", "a/b", "major", "trigger", "any", kind] in rows


def test_the_file_holds_each_condition_in_its_own_record() -> None:
    alternative = Alternative(
        "throwable",
        throwables=("org.a.B", "org.a.C"),
        literals=("a\ttab", "a\nline", "back\\slash"),
        regex=r"(?P<n>\d+)",
        frames=("org.a.B.run",),
    )
    user = Alternative(frame_origin="user")
    pack = pack_of(alternative, user, vetoes=(Alternative("root-cause", ("x.Y",), ("x.Z",)),))
    head, _, rest = render_rules(failure_enricher(pack)).partition("signature\ta/b")
    assert records(head)[:2] == [["flink-triage-rules", "2"], ["signature-set", pack.digest]]
    assert records("signature\ta/b" + rest) == [
        ["signature", "a/b", "major", "trigger", "any", "generic"],
        ["alternative", "throwable", str(alternative.specificity), "any"],
        ["throwable", "org.a.B", "org.a.C"],
        ["literal", "a\\ttab", "a\\nline", "back\\\\slash"],
        ["frame", "org.a.B.run"],
        ["regex", "(?:\\\\d+)"],
        ["alternative", "event", "0", "user"],
        ["veto", "root-cause", "40", "any"],
        ["throwable", "x.Y"],
        ["root-cause", "x.Z"],
    ]


def test_file_maps_package_prefixes_to_origins() -> None:
    text = render_rules(failure_enricher(load_pack([SMALL_PACK])))
    origins = {fields[1]: fields[2:] for fields in records(text) if fields[0] == "origin"}
    assert set(origins) == {"jdk", "connector", "example", "library"}
    assert "java." in origins["jdk"]
    assert "org.apache.kafka." in origins["connector"]


@pytest.mark.parametrize("kind", EXPORT_KINDS)
def test_export_is_written_to_a_file_or_into_a_directory(kind: ExportKind, tmp_path: Path) -> None:
    pack = load_pack([SMALL_PACK])
    named = export(pack, kind, tmp_path / "new" / "file")
    placed = export(pack, kind, tmp_path)
    assert named.path == tmp_path / "new" / "file"
    assert placed.path == tmp_path / (
        RULES_FILE if kind == "failure-enricher" else LABEL_MAPPER_FILE
    )
    assert named.path.read_bytes() == placed.path.read_bytes()
    assert (named.signatures, named.left_out) == (placed.signatures, placed.left_out)
    assert named.signatures + len(named.left_out) == len(pack.signatures)


# --- regexes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("python", "java"),
    [
        pytest.param(r"a (?P<file_name>\S+)", r"a (?:\S+)", id="a capture becomes a plain group"),
        pytest.param(r"(?<n>a)", r"(?:a)", id="a capture in the other syntax"),
        pytest.param(
            r"(?P<x>a)(?P<my_class>\w+) (?P=my_class)",
            r"(?:a)(?<g2>\w+) \k<g2>",
            id="a referenced group is renamed for Java",
        ),
        pytest.param(r"[^\]#[]++", r"[^\]\x23\[]++", id="a bracket in a possessive class"),
        pytest.param(r"[]a]", r"[\]a]", id="a bracket as the first character of a class"),
        pytest.param(r"[a&&b]", r"[a\&\&b]", id="no intersection"),
        pytest.param(r"{a} ]", r"\{a\} \]", id="literal braces and brackets"),
        pytest.param(r"a{2}b{1,}c{0,4}?d{,3}", r"a{2}b{1,}c{0,4}?d{0,3}", id="counts"),
        pytest.param(
            r"'a' \"b\" # \#", r"\x27a\x27 \x22b\x22 \x23 \x23", id="safe in a config file"
        ),
        pytest.param(
            r"(?<!\S)(?:a|b)(?=c)$\Z", r"(?<!\S)(?:a|b)(?=c)$\z", id="anchors and lookarounds"
        ),
        pytest.param(r"(a(?i:b))\x41\u00e9", r"(a(?i:b))\x41\u00e9", id="unchanged"),
        pytest.param("é\U0001f600", r"\u00e9\x{1f600}", id="not ASCII"),
    ],
)
def test_a_regex_in_java(python: str, java: str) -> None:
    assert to_java(python) == java


@pytest.mark.parametrize(
    "pattern",
    [
        r"\p{Lu}",
        r"\Ga",
        r"(a)\1",
        r"[[:alpha:]]",
        r"(?|a|b)",
        r"(?#note)",
        r"[\b]",
        r"(?R)",
        r"(?P<a>x)|(?P<a>y)(?P=a)",
    ],
)
def test_a_regex_that_java_would_read_otherwise_is_refused(pattern: str) -> None:
    with pytest.raises(Untranslatable):
        to_java(pattern)


def test_hostile_pattern_is_translated_quickly() -> None:
    assert len(to_java("[" + "a" * 100_000 + "]" + "{" * 100_000)) == 300_002
