from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flink_triage.remediation.units import ValueProblem, parse_duration, parse_size, unit_of
from flink_triage.remediation.values import (
    adapt,
    explain,
    format_amount,
    is_placeholder,
    measure,
    parse_value,
    split_escaped,
)

S, MIB = 10**9, 1024**2
WEIGHTS = (("A", "1"), ("B", "2"))
MODE = "Enum:CheckpointingMode(EXACTLY_ONCE|AT_LEAST_ONCE)"

ACCEPTED = [
    ("minutes with a space", "Duration", "10 min", 600 * S),
    ("no space", "Duration", "30s", 30 * S),
    ("a day", "Duration", "1 d", 86400 * S),
    ("a bare number is milliseconds", "Duration", "1500", 1500 * 10**6),
    ("long names have a plural", "Duration", "2 hours", 7200 * S),
    ("labels have no case", "Duration", "5 MIN", 300 * S),
    ("micro sign", "Duration", "5 µs", 5000),
    ("blanks around", "Duration", "  7 ms ", 7 * 10**6),
    ("megabytes are of 1024", "MemorySize", "512 mb", 512 * MIB),
    ("one letter", "MemorySize", "1g", 1024 * MIB),
    ("a bare number is bytes", "MemorySize", "4096", 4096),
    ("the long name", "MemorySize", "2 kibibytes", 2048),
    ("bytes", "MemorySize", "0 bytes", 0),
    ("switches have no case", "Boolean", "TRUE", True),
    ("a sign", "Integer", "-1", -1),
    ("the largest integer", "Integer", "2147483647", 2**31 - 1),
    ("a long", "Long", "2147483648", 2**31),
    ("a number of milliseconds", "Long(ms)", "30000", 30000),
    ("a decimal", "Double", "0.4", 0.4),
    ("Java's float suffix", "Float", "0.5f", 0.5),
    ("an exponent", "Double", "1e-3", 0.001),
    ("a constant in any case", MODE, "exactly_once", "EXACTLY_ONCE"),
    ("a constant that prints with a dash", "Enum:G(at-least-once|none)", "NONE", "NONE"),
    ("a list", "List<String>", "a;b", ("a", "b")),
    ("a list with a quoted part", "List<String>", "'a;b';c", ("a;b", "c")),
    ("a YAML list", "List<String>", "[a, b]", ("a", "b")),
    ("a list of constants", "List<Enum:C(LZ4|NONE)>", "lz4;none", ("LZ4", "NONE")),
    ("a map", "Map", "A:1,B:2", WEIGHTS),
    ("a YAML map", "Map", "{B: 2, A: 1}", WEIGHTS),
    ("any text", "String", "*:x # y", "*:x # y"),
]


@pytest.mark.parametrize(
    ("type_", "text", "value"), [case[1:] for case in ACCEPTED], ids=[c[0] for c in ACCEPTED]
)
def test_a_value_is_read_as_flink_reads_it(type_: str, text: str, value: object) -> None:
    assert parse_value(type_, text) == value


REFUSED = [
    ("an unknown unit", "Duration", "10 minz"),
    ("short labels have no plural", "Duration", "10 mins"),
    ("a fraction", "Duration", "1.5 s"),
    ("a negative duration", "Duration", "-1 s"),
    ("no number", "Duration", "min"),
    ("an ISO 8601 duration without a number", "Duration", "PT"),
    ("a negative ISO 8601 duration", "Duration", "PT-5M"),
    ("more than 64 bits", "Duration", "9223372036854775808"),
    ("a time unit for a size", "MemorySize", "10 min"),
    ("a size that overflows", "MemorySize", "9223372036854775807 kb"),
    ("yes is no switch", "Boolean", "yes"),
    ("blanks are no part of a number", "Integer", "3 "),
    ("an underscore", "Integer", "1_000"),
    ("an integer that overflows", "Integer", "2147483648"),
    ("Arabic digits", "Integer", "٣"),
    ("a duration for a number", "Long(ms)", "30 s"),
    ("words for a decimal", "Double", "half"),
    ("a dash for an underscore", MODE, "exactly-once"),
    ("a quote inside a part", "List<String>", "a'b;c"),
    ("an open quote", "List<String>", "'a;b"),
    ("an element that is no constant", "List<Enum:C(LZ4|NONE)>", "lz4;zip"),
    ("a pair without a colon", "Map", "A:1,B"),
]


@pytest.mark.parametrize(
    ("type_", "text"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_a_value_that_flink_refuses_is_refused(type_: str, text: str) -> None:
    with pytest.raises(ValueProblem, match=r'^"'):
        parse_value(type_, text)


def test_yaml_lists_are_read_from_1_19_on_only() -> None:
    assert parse_value("List<String>", "[a, b]", "1.18") == ("[a, b]",)


# Each text was parsed by TimeUtils in flink-core of every line.
DURATIONS_SINCE = [
    ("10 m", "1.14", "1.15", 600 * S),
    ("10M", "1.14", "1.15", 600 * S),
    ("PT10M", "2.0", "2.1", 600 * S),
    (" pt1.5s ", "2.0", "2.1", 15 * S // 10),
    ("P1DT1H", "2.0", "2.1", 25 * 3600 * S),
]


@pytest.mark.parametrize(("text", "last_without", "first_with", "nanos"), DURATIONS_SINCE)
def test_a_form_of_a_duration_is_accepted_from_its_first_line_on(
    text: str, last_without: str, first_with: str, nanos: int
) -> None:
    with pytest.raises(ValueProblem, match=r'^"'):
        parse_duration(text, last_without)
    assert parse_duration(text, first_with) == parse_duration(text) == nanos


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", [""]),
        ("a;", ["a", ""]),
        (";a", ["", "a"]),
        ('"AB\'D";B;C', ["AB'D", "B", "C"]),
        ("'it''s';x", ["it's", "x"]),
        ("'a'", ["a"]),
    ],
)
def test_quoted_parts_keep_the_delimiter(text: str, parts: list[str]) -> None:
    assert split_escaped(text, ";") == parts


EQUAL = [
    ("seconds and minutes", "Duration", "600 s", "10 min"),
    ("milliseconds and a unit", "Duration", "600000", "10 min"),
    ("a number of milliseconds and a duration", "Long(ms)", "120000", "2 min"),
    ("sizes", "MemorySize", "1g", "1024 mb"),
    ("numbers", "Double", "0.50", ".5"),
    ("constants", MODE, "EXACTLY_ONCE", "exactly_once"),
    ("maps in any order", "Map", "A:1,B:2", "B:2,A:1"),
    ("a map and its YAML", "Map", "A:1", "{A: 1}"),
]


@pytest.mark.parametrize(
    ("type_", "left", "right"), [case[1:] for case in EQUAL], ids=[case[0] for case in EQUAL]
)
def test_two_spellings_of_a_value_are_equal(type_: str, left: str, right: str) -> None:
    assert measure(type_, left) == measure(type_, right) is not None


def test_a_text_option_with_a_size_as_default_is_compared_as_a_size() -> None:
    assert measure("String", "52428800b", "10485760b") == 50 * MIB


@pytest.mark.parametrize(
    ("amount", "type_", "default", "text"),
    [
        (1200 * S, "Duration", None, "20 min"),
        (90 * S, "Duration", None, "90 s"),
        (86400 * S, "Duration", None, "1 d"),
        (S // 2, "Duration", None, "500 ms"),
        (1, "Duration", None, "1 ms"),
        (0, "Duration", None, "0 ms"),
        (120 * S, "Long(ms)", "50000", "120000"),
        (2048 * MIB, "MemorySize", None, "2 gb"),
        (1536 * MIB, "MemorySize", None, "1536 mb"),
        (200 * MIB + 1, "MemorySize", None, "201 mb"),
        (100 * 1024, "MemorySize", None, "100 kb"),
        (50 * MIB, "String", "10485760b", "52428800b"),
        (2.1, "Integer", "1", "3"),
        (0.1 + 0.2, "Double", "0.1", "0.3"),
    ],
)
def test_a_quantity_is_printed_as_a_person_would(
    amount: float, type_: str, default: str | None, text: str
) -> None:
    assert format_amount(amount, type_, default) == text


@given(st.integers(min_value=0, max_value=10**9))
def test_printed_durations_and_sizes_parse_back(number: int) -> None:
    assert parse_duration(format_amount(number * 10**6, "Duration")) == number * 10**6
    assert parse_size(format_amount(number, "MemorySize")) >= number


@pytest.mark.parametrize(
    ("type_", "text", "adapted"),
    [
        ("Long(ms)", "2 min", "120000"),
        ("Integer(s)", "2 min", "120"),
        ("Long(ms)", "120000", "120000"),
        ("Long(ms)", "<longer>", "<longer>"),
        ("Duration", "2 min", "2 min"),
    ],
)
def test_a_duration_is_turned_into_the_number_that_older_lines_want(
    type_: str, text: str, adapted: str
) -> None:
    assert adapt(type_, text) == adapted


@pytest.mark.parametrize(
    ("number", "duration", "unit"),
    [("30000", "30 s", "ms"), ("15", "15 s", "s"), ("0", "0 ms", None), ("x", "1 s", None)],
)
def test_unit_of_a_number_is_derived_from_two_defaults(
    number: str, duration: str, unit: str | None
) -> None:
    assert unit_of(number, duration) == unit


@pytest.mark.parametrize(
    ("type_", "text", "spoken"),
    [
        ("Long(ms)", "50000", "50000 (50 s)"),
        ("Duration", "600000", "600000 (10 min)"),
        ("Duration", "10 min", "10 min"),
        ("Integer", "50000", "50000"),
        ("MemorySize", "1073741824", "1073741824 (1 gb)"),
    ],
)
def test_bare_milliseconds_and_bytes_are_explained(type_: str, text: str, spoken: str) -> None:
    assert explain(type_, text) == spoken


@pytest.mark.parametrize(
    ("value", "expected"),
    [("<unique per TM>", True), ("s3://b/<job>", True), ("{needed}", True), ("3", False)],
)
def test_values_that_the_reader_must_choose_are_known(value: str, expected: bool) -> None:
    assert is_placeholder(value) is expected


@pytest.mark.parametrize("text", ["9" * 200_000, "'" * 200_001, "[" * 200_000, "a:" * 100_000])
@pytest.mark.parametrize("type_", ["Duration", "Integer", "Double", "List<String>", "Map"])
@pytest.mark.timing
def test_hostile_values_are_refused_or_read_quickly(type_: str, text: str) -> None:
    start = time.perf_counter()
    measure(type_, text)
    assert time.perf_counter() - start < 0.5
