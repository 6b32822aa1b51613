"""Untrusted text is made safe to display and wrapped to a width."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flink_triage.report.facts.sanitize import clean, columns_of, fold, one_line


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain text\n\tat a.b.C", "plain text\n\tat a.b.C"),
        ("\x1b[31;1mred\x1b[0m", "red"),
        ("a\x1b]0;title\x07b\x1b]8;;http://x\x1b\\c", "abc"),
        ("a\x1b]0;no end", "a0;no end"),
        ("a\x1b]0;line one\nline two\x07", "a0;line one\nline two"),
        ("a\x1b(Bb\x1bcc", "abc"),
        ("\x9b31mred\x85", "red"),
        ("one\r\ntwo\rthree", "one\ntwothree"),
        ("nul\x00 bell\x07 del\x7f", "nul bell del"),
        ("a\u202eb\u2069", "a\\u202eb\\u2069"),
        ("a\u2028b\u2029c", "a\\u2028b\\u2029c"),
        ("\ufeffa\u200bb\ud800", "\\ufeffa\\u200bb\\ud800"),
        ("a\U000e0041", "a\\U000e0041"),
        ("Grüße, 磁盘, é, 🔥", "Grüße, 磁盘, é, 🔥"),
    ],
)
def test_clean(raw: str, shown: str) -> None:
    assert clean(raw) == shown


@given(st.text(st.characters()))
def test_cleaned_text_has_no_control_characters(raw: str) -> None:
    kinds = {unicodedata.category(character) for character in clean(raw) if character not in "\n\t"}
    assert not kinds & {"Cc", "Zl", "Zp", "Cs"}


@given(st.text())
def test_cleaning_twice_changes_nothing_more(raw: str) -> None:
    assert clean(clean(raw)) == clean(raw)


@pytest.mark.parametrize(
    "hostile", ["\x1b]" * 50_000, "\x1b[" + "0;" * 50_000, "\x1b" + " " * 100_000, "\x9d" * 100_000]
)
@pytest.mark.timing
def test_endless_escape_sequences_cost_little(hostile: str) -> None:
    began = time.perf_counter()
    clean(hostile)
    assert time.perf_counter() - began < 2


@given(st.text(), st.integers(2, 120))
def test_folded_lines_fit_and_lose_no_character(raw: str, width: int) -> None:
    text = one_line(raw)
    lines = fold(text, width)
    assert all(columns_of(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("one two three", 8, ["one two", "three"]),
        ("abcdefghij", 4, ["abcd", "efgh", "ij"]),
        ("磁盘空间", 4, ["磁盘", "空间"]),
        ("a b\u00a0c d", 5, ["a b c", "d"]),
        ("", 10, [""]),
    ],
)
def test_fold(text: str, width: int, lines: list[str]) -> None:
    assert fold(text, width) == lines
