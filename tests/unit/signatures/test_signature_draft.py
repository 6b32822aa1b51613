"""A drafted signature loads and matches its failure. Its literals contain only constant words."""

from __future__ import annotations

import pytest
from signature_builders import SCHEMA

from flink_triage.model import StackTrace
from flink_triage.signatures import Examples, build_pack
from flink_triage.signatures.draft import constant_parts, draft, masked_regex
from flink_triage.signatures.loader import parse_signature
from flink_triage.signatures.samples import check_examples
from flink_triage.traces import extract

FAILURES = {
    "numbers and a path": "org.x.StoreException: chunk 17 of /data/a-1/f.bin has 99 bytes",
    "no message": "org.x.StoreException",
    "only a number": "org.x.StoreException: 42",
    "quotes, backslashes and a colon": 'org.x.StoreException: key: "a\\b" isn\'t a [valid] {name}',
    "a message with emoji and a line separator": "org.x.StoreException: boom \U0001f600 a\u2028b",
    "a bell and a lone surrogate": "org.x.StoreException: ring the bell \x07 \ud83d twice",
    "a message of two lines": "org.x.StoreException: first words here\n  second words here",
    "a very long message": "org.x.StoreException: " + "long words without end " * 500,
}


def trace_of(text: str) -> tuple[str, StackTrace]:
    exemplar = (
        "2026-11-21 05:48:45,519 WARN  org.apache.flink.X [] - Map (1/2)#1 failed.\n"
        f"java.lang.RuntimeException: outer\n\tat org.x.A.b(A.java:1)\nCaused by: {text}\n"
        "\tat org.x.Store.read(Store.java:7)\n\t... 1 more"
    )
    head, _, rest = exemplar.partition("\n")
    _, trace = extract(head, rest)
    assert trace is not None
    return exemplar, trace


@pytest.mark.parametrize("text", FAILURES.values(), ids=FAILURES.keys())
def test_a_draft_loads_and_matches_where_it_came_from(text: str) -> None:
    exemplar, trace = trace_of(text)
    signature, problems = parse_signature(draft(trace, exemplar, "my/new"), "my/new", SCHEMA)
    assert problems == ()
    assert signature is not None
    assert check_examples(build_pack([signature])) == ()
    assert signature.examples != Examples()


def test_literals_are_the_constant_parts() -> None:
    message = "chunk 17 of /data/a-1/f.bin has 99 bytes"
    assert constant_parts(message) == ["chunk", "bytes"]


def test_regex_captures_the_variable_parts() -> None:
    assert masked_regex("chunk 17 of /data/f.bin is bad") == (
        r"chunk (?P<value1>\S+?) of (?P<value2>\S+?) is bad"
    )
    assert masked_regex("nothing varies here") is None
