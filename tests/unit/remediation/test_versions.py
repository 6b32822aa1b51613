from __future__ import annotations

import pytest

from flink_triage.remediation.versions import LINES, flink_line, line_note, lines_in, version_in

VERSIONS = [
    ("a release names its line", "1.16.0", "1.16"),
    ("a two-digit minor is not cut", "1.20.1", "1.20"),
    ("a snapshot", "2.1-SNAPSHOT", "2.1"),
    ("a vendor suffix", "1.17-vvr-8.0.1", "1.17"),
    ("a vendor prefix with a version of its own", "vvr-8.0.1-flink-1.17", "1.17"),
    ("an EMR build", "1.16.0-amzn-1", "1.16"),
    ("a leading v", "v1.18.1", "1.18"),
    ("words around it", "Version: 1.15.2, Scala: 2.12", "1.15"),
    ("a release candidate", "2.0-preview1", "2.0"),
    ("newer than known", "2.9.0", "2.3"),
    ("a new major", "3.0", "2.3"),
    ("between two known lines", "1.21.0", "1.20"),
    ("older than known", "1.9.3", "1.13"),
    ("no number", "<unknown>", None),
    ("a bare number", "1", None),
    ("empty", "", None),
    ("none", None, None),
]


@pytest.mark.parametrize(
    ("version", "line"), [case[1:] for case in VERSIONS], ids=[case[0] for case in VERSIONS]
)
def test_a_version_string_answers_with_the_line_whose_options_are_known(
    version: str | None, line: str | None
) -> None:
    assert flink_line(version) == line


@pytest.mark.parametrize(
    ("version", "words"),
    [("2.9.0", "newer"), ("1.12.7", "1.12"), ("1.21", "keys are those of 1.20")],
)
def test_substituted_release_line_has_a_note(version: str, words: str) -> None:
    note = line_note(version)
    assert note is not None
    assert words in note


@pytest.mark.parametrize("version", ["1.13.6", "2.3.0", "2.0-SNAPSHOT", None, "weekly"])
def test_a_known_line_needs_no_note(version: str | None) -> None:
    assert line_note(version) is None


RANGES = [
    ("a bare line is that line", "1.16", ("1.16",)),
    ("an upper bound leaves itself out", ">=1.19,<2.0", ("1.19", "1.20")),
    ("spaces do not matter", " >= 2.1 , <= 2.2 ", ("2.1", "2.2")),
    ("a patch bound lets its line through from below", "<1.13.2", ("1.13",)),
    ("no patch release is below the first one", "<1.14.0", ("1.13",)),
    ("a patch bound lets its line through from above", ">=2.3.1", ("2.3",)),
    ("a patch bound that is left out lets its line through", ">2.2.0", ("2.2", "2.3")),
    ("1.2 is older than 1.13", "<1.2", ()),
    ("a line can be left out", "!=1.13,<1.15", ("1.14",)),
    ("no range is every line", None, LINES),
]


@pytest.mark.parametrize(
    ("text", "lines"), [case[1:] for case in RANGES], ids=[case[0] for case in RANGES]
)
def test_a_range_lets_lines_through(text: str | None, lines: tuple[str, ...]) -> None:
    assert lines_in(text) == lines


@pytest.mark.parametrize(
    ("text", "version", "holds"),
    [
        (">=1.19.2", (1, 19, 1), False),
        (">=1.19.2", (1, 19, 2), True),
        ("<1.19.2", (1, 19, 1), True),
        ("<1.19.2", (1, 19, 2), False),
        ("<=1.15", (1, 15, 4), True),
        ("<1.15", (1, 15, 0), False),
        (">1.15", (1, 15, 4), False),
        (">=2", (2, 0, 0), True),
        ("<2", (1, 20, 0), True),
    ],
)
def test_patch_releases_are_distinguished(text: str, version: tuple[int, ...], holds: bool) -> None:
    assert version_in(text, version) is holds


@pytest.mark.parametrize("text", ["newest", ">=", "1.15 or so", "~1.15", ""])
def test_invalid_version_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not like"):
        version_in(text, (1, 15))
