"""A regex needs no timeout for a short text if the number of its steps is small."""

from __future__ import annotations

import time
from math import inf

import pytest
import regex

from flink_triage.logs.text.regex_steps import SHORT_CHARS, is_quick, max_steps
from flink_triage.settings import DEFAULT_SETTINGS


@pytest.mark.parametrize(
    ("pattern", "choices"),
    [
        ("abc", 1),
        (r"\(a\{[)*+?]{2}", 1),
        ("a+", 100),
        ("a{3,12}?", 10),
        ("a{3,}", 98),
        ("(?i)(?P<one>a?)", 2),
        ("(?:a|b|cd)e|f", 6),
        ("(?<=x)a*(?!y)b*", 10_000),
        ("(?:ab)*", 100),
        ("(?:ab){2}(?:c+)?", 200),
        ("(?:a+)+", inf),
        ("(?:a|ab)*", inf),
        ("(?:a?b){2,3}", inf),
        (r"(?P<one>a) (?P=one)", inf),
        ("(?:abc){e<=1}", inf),
        ("(a", inf),
    ],
)
def test_steps_are_the_product_of_all_choices(pattern: str, choices: float) -> None:
    assert max_steps(pattern, 100) == 100 * choices


@pytest.mark.parametrize(
    "pattern",
    ["(?P<file>/[^\\s:]{1,400}): Input", "x*y{1,4}", "(?:a|aa)b{0,900}c?d", "[^,]*,"],
)
@pytest.mark.parametrize("text", ["x" * SHORT_CHARS, "/a" * 512, "ab" * 512])
def test_quick_regexes_do_not_reach_the_timeout(pattern: str, text: str) -> None:
    assert is_quick(pattern)
    started = time.thread_time()
    regex.search(pattern, text)
    assert time.thread_time() - started < DEFAULT_SETTINGS.regex_timeout_seconds
