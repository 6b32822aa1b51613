"""Exports use the syntax of the target tool and contain only conditions that it can check."""

from __future__ import annotations

import re

import yaml
from signature_builders import SMALL_PACK, pack_of, signature

from flink_triage.signatures import Alternative, build_pack, load_pack
from flink_triage.signatures.export import (
    LABEL_MAPPER_KEY,
    escape_java,
    label_mapper,
    render_label_mapper,
)


def split_escaped(text: str, delimiter: str) -> list[str]:
    """Splits like Flink's StructuredOptionsSplitter: bare or quoted parts with doubled quotes."""
    parts: list[str] = []
    rest = text
    while rest:
        if rest[0] == "'":
            match = re.match(r"'((?:[^']|'')*)'", rest)
            assert match is not None
            parts.append(match.group(1).replace("''", "'"))
            rest = rest[match.end() :]
            assert not rest or rest[0] == delimiter
            rest = rest[1:]
        else:
            part, _, rest = rest.partition(delimiter)
            parts.append(part.strip())
    return parts


def test_flink_reads_back_the_labels_that_were_written() -> None:
    labels = {
        "plain words here": "a/b",
        r"a colon: a comma, a quote\x27s end": "a/c",
        r"\A(?=[\s\S]*one, two)(?![\s\S]*three: four)": "a/d",
        "a real ' quote": "a/e",
    }
    line = render_label_mapper(labels, "flink-conf.yaml")
    key, _, value = line.rstrip("\n").partition(": ")
    assert key == LABEL_MAPPER_KEY
    pairs = [split_escaped(entry, ":") for entry in split_escaped(value, ",")]
    assert dict(pairs) == labels


def test_both_configuration_files_hold_the_same_labels() -> None:
    labels = {r"a \[colon\]: and, comma": "a/b"}
    new = yaml.safe_load(render_label_mapper(labels, "config.yaml"))
    old = render_label_mapper(labels, "flink-conf.yaml").rstrip("\n").partition(": ")[2]
    assert new == {LABEL_MAPPER_KEY: old}


def test_an_escaped_text_matches_itself_and_begins_no_comment() -> None:
    text = 'a.b*c (d) [e] {f} $^ #1 it\'s "so" \\ end|?+'
    escaped = escape_java(text)
    assert re.fullmatch(escaped, text)
    assert not set("#'\"") & set(escaped)


def test_fallbacks_are_left_out_because_every_matching_entry_adds_a_label() -> None:
    refused = Alternative(literals=("Connection refused",))
    pack = pack_of(refused, precedence="fallback")
    mapper = label_mapper(pack)
    assert mapper.labels == {}
    assert mapper.left_out == {"a/b": "applies only if no other signature does"}


def test_signatures_that_a_message_alone_shows_become_labels() -> None:
    mapper = label_mapper(load_pack([SMALL_PACK]))
    anywhere = r"(?=[\s\S]*"
    numbers = r"(?:expected (?:\d+), found (?:\d+) in (?:\S+\.sst))"
    table = rf"(?dU)\A{anywhere}Bad table magic number){anywhere}{numbers})"
    assert mapper.labels == {
        "Exceeded checkpoint tolerable failure threshold": "checkpoint/threshold-exceeded",
        table: "rocksdb/bad-table-magic",
    }
    assert mapper.left_out == {"operator/user-code": "cannot be recognized by a message alone"}


def test_several_literals_may_come_in_any_order_and_a_veto_is_kept() -> None:
    pack = pack_of(
        Alternative(literals=("first long words", "second words")),
        vetoes=(Alternative(literals=("on purpose",)),),
    )
    (pattern,) = label_mapper(pack).labels
    assert re.search(pattern, "second words\nfirst long words")
    assert not re.search(pattern, "first long words")
    assert not re.search(pattern, "second words, first long words, on purpose")


def test_signatures_that_need_repetition_or_a_logger_are_left_out() -> None:
    text = Alternative(literals=("a long enough text",))
    pack = build_pack(
        [
            signature("a/often", alternatives=(text,), count=3),
            signature(
                "a/logged", alternatives=(Alternative(literals=text.literals, loggers=("org.x",)),)
            ),
        ]
    )
    mapper = label_mapper(pack)
    assert mapper.labels == {}
    assert set(mapper.left_out) == {"a/often", "a/logged"}


def test_a_signature_is_one_entry_whatever_its_alternatives() -> None:
    """The operator adds a label for each matching entry."""
    pack = pack_of(
        Alternative(literals=("first long words",)),
        Alternative(literals=("second long words",)),
        Alternative(literals=("third long words", "more")),
    )
    (pattern,) = label_mapper(pack).labels
    assert [
        bool(re.search(pattern, text))
        for text in ("the first long words", "second long words", "more third long words", "third")
    ] == [True, True, True, False]


def test_regex_is_combined_with_its_literal() -> None:
    pack = pack_of(Alternative(literals=("long enough words",), regex=r"words (?P<count>\d+)"))
    (pattern,) = label_mapper(pack).labels
    flags, pattern = pattern[:5], pattern[5:]
    assert flags == "(?dU)"
    assert re.search(pattern, "some\nlong enough words 12")
    assert not re.search(pattern, "long enough words twelve")


def test_regex_without_a_java_form_is_left_out() -> None:
    pack = pack_of(Alternative(literals=("long enough words",), regex=r"\m(?:words)"))
    assert label_mapper(pack).left_out == {"a/b": "cannot be recognized by a message alone"}
