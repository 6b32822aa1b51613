"""The YAML reader rejects unsafe documents and keeps scalars as written."""

from __future__ import annotations

from pathlib import Path

import pytest

from flink_triage.yaml_documents import (
    MAX_FILE_BYTES,
    MappingNode,
    Scalar,
    SequenceNode,
    parse_document,
    read_document,
)

REFUSED = {
    "an anchor": ("a: &x 1", "f:1: yaml: anchors are not allowed, got &x; write out the value"),
    "an alias": ("a: 1\nb: *x", "f:2: yaml: aliases are not allowed, got *x; write out the value"),
    "a sequence that holds itself": (
        "a: 1\nb: &x [*x]",
        "f:2: yaml: anchors are not allowed, got &x; write out the value",
    ),
    "a merge key": (
        "a:\n  <<: {b: 1}",
        "f:2: yaml: merge keys are not allowed; write out the merged keys",
    ),
    "a tag that would run code": (
        "a: !!python/object/apply:os.system [ls]",
        "f:1: yaml: tags are not allowed, got tag:yaml.org,2002:python/object/apply:os.system",
    ),
    "a key that is a list": ("[a, b]: 1", "f:1: yaml: a key must be a scalar"),
    "a second document": (
        "a: 1\n---\nb: 2",
        "f:2: yaml: contains a second document, allowed: one",
    ),
    "an empty file": ("", "f:1: yaml: is empty"),
    "only a comment": ("# nothing\n", "f:1: yaml: is empty"),
    "brackets nested a hundred deep": ("a: " + "[" * 100, "f:1: yaml: is nested deeper than 20"),
    "brackets beyond the parser's limit": (
        "a: " + "[" * 2000,
        "f:1: yaml: is nested deeper than 20",
    ),
    "dashes beyond the parser's limit": ("- " * 2000 + "a", "f:1: yaml: is nested deeper than 20"),
    "a key given twice": ("a: 1\nb: 2\na: 3", "f:3: a: is a duplicate key, first on line 1"),
}


@pytest.mark.parametrize(("text", "problem"), REFUSED.values(), ids=REFUSED.keys())
def test_unsupported_yaml_features_are_refused_with_a_line(text: str, problem: str) -> None:
    _, problems = parse_document(text, "f")
    assert [str(found) for found in problems] == [problem]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param("a: 1\n\tb: 2", 2, id="a tab as indentation"),
        pytest.param("a: 1\nb: 'open", 2, id="an unterminated quotation"),
        pytest.param("a: 1\nb: \x07", 2, id="a control character"),
        pytest.param("a: 1\nb: c: d", 2, id="two colons on one line"),
    ],
)
def test_invalid_yaml_is_a_problem_with_a_line(text: str, line: int) -> None:
    node, problems = parse_document(text, "f")
    assert node is None
    assert [(problem.line, problem.field) for problem in problems] == [(line, "yaml")]


def test_scalars_stay_the_text_that_was_written() -> None:
    node, problems = parse_document("[no, 1.10, 12:30:45, 1e3, 0x1F, null, 2026-01-01]", "f")
    assert problems == ()
    assert isinstance(node, SequenceNode)
    texts = [item.text for item in node.items if isinstance(item, Scalar)]
    assert texts == ["no", "1.10", "12:30:45", "1e3", "0x1F", "null", "2026-01-01"]


def test_byte_order_mark_and_windows_line_ends_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: |\r\n  one\r\n  two\r\nb: c\r\n")
    node, problems = read_document(path, "f")
    assert problems == ()
    assert isinstance(node, MappingNode)
    assert node.get("a") == Scalar("one\ntwo\n", 1)
    assert node.get("b") == Scalar("c", 4, is_plain=True)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        pytest.param(b"a: 1\nb: \xff", "f:2: file: is not UTF-8 at byte 8", id="invalid UTF-8"),
        pytest.param(
            b"#" * (MAX_FILE_BYTES + 1),
            "f:1: file: is larger than 256 KiB, the maximum file size",
            id="too large",
        ),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, data: bytes, problem: str) -> None:
    path = tmp_path / "s.yaml"
    path.write_bytes(data)
    assert [str(found) for found in read_document(path, "f")[1]] == [problem]


def test_a_file_that_is_gone_is_a_problem_not_an_exception(tmp_path: Path) -> None:
    _, problems = read_document(tmp_path / "none.yaml", "f")
    assert [str(p) for p in problems] == ["f:1: file: cannot be read: No such file or directory"]
