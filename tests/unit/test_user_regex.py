"""A user's regex is compiled with little memory, or rejected with a reason."""

from __future__ import annotations

import pytest

from flink_triage.signatures import builtin_pack_directory, load_pack
from flink_triage.user_regex import problem_of_regex

TOO_LONG = "is longer than 100000 characters after its repetitions are expanded"


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        pytest.param("a{20000000}", TOO_LONG, id="one repetition"),
        pytest.param("(?:(?:a{1000}){1000}){20}", TOO_LONG, id="nested repetitions"),
        pytest.param(r"(?:(?:\d{1000}){1000}){20}", TOO_LONG, id="nested repetitions of a class"),
        pytest.param("(?:[a)]{1000}){1000}", TOO_LONG, id="a parenthesis in a character class"),
        pytest.param("a{1000}{1000}", TOO_LONG, id="a repeated repetition"),
        pytest.param("a" * 5_000, "has 5000 characters, allowed: 4096", id="too long"),
        pytest.param(
            "(" * 2_000,
            "is not a regex: nested too deeply or repeated too often",
            id="too deeply nested",
        ),
        pytest.param("(x", "is not a regex: missing ) at position 2", id="unclosed group"),
        pytest.param(
            "(?:[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12} ){20}", None, id="identifiers"
        ),
        pytest.param("(?:(?:a{1,1000}){1,1000}){1,20}", None, id="ranges that start at one"),
        pytest.param(r"\({30000}", None, id="an escaped parenthesis"),
    ],
)
def test_a_regex(pattern: str, problem: str | None) -> None:
    assert problem_of_regex(pattern) == problem


def test_every_regex_that_is_shipped_can_be_used() -> None:
    pack = load_pack((builtin_pack_directory(),))
    patterns = [a.regex for s in pack.signatures.values() for a in s.alternatives if a.regex]
    assert len(patterns) > 300
    assert [problem for problem in map(problem_of_regex, patterns) if problem] == []
