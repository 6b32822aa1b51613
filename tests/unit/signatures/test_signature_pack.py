"""Directories are loaded as packs: locations, overrides, cross-references, and the digest."""

from __future__ import annotations

import pickle
from datetime import date
from pathlib import Path

import pytest
from signature_builders import DATA, HEAD, SMALL_PACK, signature

from flink_triage.errors import SignaturePackError
from flink_triage.signatures import (
    Alternative,
    Ignored,
    build_pack,
    load_pack,
    load_usable_pack,
    read_pack,
)
from flink_triage.signatures.pack import find_cycle

GOOD = HEAD + "match: {any: [{literal: abcd}]}\n"


def write(directory: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return directory


def problems_of(directory: Path) -> list[str]:
    with pytest.raises(SignaturePackError) as raised:
        load_pack([directory])
    return [problem.removeprefix(f"{directory}/") for problem in raised.value.problems]


def test_a_pack_knows_its_signatures_literals_and_decisions() -> None:
    pack = load_pack([SMALL_PACK])
    assert list(pack.signatures) == [
        "checkpoint/threshold-exceeded",
        "operator/user-code",
        "rocksdb/bad-table-magic",
    ]
    assert pack.literals == (
        "Bad table magic number",
        "Exceeded checkpoint tolerable failure threshold",
    )
    decision = Ignored("checkpoint/threshold-exceeded", "Known, ticket is open.", date(2027, 1, 31))
    assert pack.ignored == (decision,)


def test_a_decision_to_ignore_holds_through_its_last_day() -> None:
    pack = load_pack([SMALL_PACK])
    assert pack.ignored_on(date(2027, 1, 31)) == {"checkpoint/threshold-exceeded"}
    assert pack.ignored_on(date(2027, 2, 1)) == frozenset()


def test_a_later_directory_replaces_a_signature_and_keeps_the_others() -> None:
    pack = load_pack([SMALL_PACK, DATA / "team"])
    assert len(pack.signatures) == 3
    assert pack.signatures["rocksdb/bad-table-magic"].title.startswith("Our own words")


def test_problems_of_all_files_are_reported_together(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "a/good.yaml": GOOD,
            "a/bad.yaml": GOOD.replace("major", "high"),
            "a/worse.yaml": "- a",
            "a/other.yml": GOOD,
            "top.yaml": GOOD,
            "a/Upper.yaml": GOOD,
        },
    )
    found = problems_of(tmp_path)
    assert [problem.partition(": ")[0] for problem in found] == [
        "a/Upper.yaml:1",
        "a/bad.yaml:2",
        "a/other.yml:1",
        "a/worse.yaml:1",
        "top.yaml:1",
    ]


def test_reading_keeps_valid_signatures(tmp_path: Path) -> None:
    write(tmp_path, {"a/good.yaml": GOOD, "a/bad.yaml": "title: ["})
    pack, problems = read_pack([tmp_path])
    assert list(pack.signatures) == ["a/good"]
    assert len(problems) == 1


def test_an_unknown_explained_signature_is_a_problem_with_a_hint(tmp_path: Path) -> None:
    write(tmp_path, {"a/one.yaml": GOOD + "explains: [a/tow]\n", "a/two.yaml": GOOD})
    assert problems_of(tmp_path) == [
        'a/one.yaml:7: explains[0]: "a/tow" is not a signature of this pack; did you mean a/two?'
    ]


def test_signature_of_a_broken_file_is_not_unknown(tmp_path: Path) -> None:
    write(tmp_path, {"a/one.yaml": GOOD + "explains: [a/two]\n", "a/two.yaml": "title: ["})
    assert [problem.partition(":")[0] for problem in problems_of(tmp_path)] == ["a/two.yaml"]


def test_cycle_of_explanations_is_printed(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "a/one.yaml": GOOD + "explains: [a/two]\n",
            "a/two.yaml": GOOD + "explains: [a/three]\n",
            "a/three.yaml": GOOD + "explains: [a/one]\n",
        },
    )
    assert problems_of(tmp_path) == [
        "a/one.yaml:7: explains: is cyclic: a/one -> a/two -> a/three -> a/one"
    ]


@pytest.mark.parametrize(
    ("edges", "cycle"),
    [
        pytest.param({"a": ["b"], "b": []}, (), id="a chain"),
        pytest.param({"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": []}, (), id="a diamond"),
        pytest.param({"a": ["a"]}, ("a", "a"), id="a self-reference"),
        pytest.param(
            {"a": ["b"], "b": ["c"], "c": ["b"]}, ("b", "c", "b"), id="a cycle after a chain"
        ),
        pytest.param({"a": ["nowhere"]}, (), id="an edge to a missing node"),
    ],
)
def test_cycles(edges: dict[str, list[str]], cycle: tuple[str, ...]) -> None:
    assert find_cycle(edges) == cycle


def test_acyclic_graph_with_many_paths_is_checked_quickly() -> None:
    edges = {f"{row}{side}": [f"{row + 1}a", f"{row + 1}b"] for row in range(30) for side in "ab"}
    assert find_cycle(edges) == ()


IGNORE_FILES = {
    "an unknown signature": (
        "- {signature: a/bb, reason: r}",
        'ignore.yaml:1: signature: "a/bb" is not a signature of this pack; did you mean a/b?',
    ),
    "no reason": ("- signature: a/b", "ignore.yaml:1: [0].reason: is missing"),
    "a day that is none": (
        "- {signature: a/b, reason: r, expires: 2027-02-30}",
        'ignore.yaml:1: [0].expires: "2027-02-30" is not a valid date',
    ),
    "no list": ("a: b", "ignore.yaml:1: file: must be a list, got a mapping"),
}


@pytest.mark.parametrize(("text", "problem"), IGNORE_FILES.values(), ids=IGNORE_FILES.keys())
def test_wrong_decisions_to_ignore(tmp_path: Path, text: str, problem: str) -> None:
    assert problems_of(write(tmp_path, {"a/b.yaml": GOOD, "ignore.yaml": text})) == [problem]


def test_a_directory_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(SignaturePackError, match="is not a directory"):
        load_pack([tmp_path / "none"])


def test_the_digest_depends_on_content_alone(tmp_path: Path) -> None:
    one = load_pack([write(tmp_path / "one", {"a/b.yaml": GOOD, "a/c.yaml": GOOD})])
    same = load_pack([write(tmp_path / "two", {"a/c.yaml": GOOD, "a/b.yaml": "# word\n" + GOOD})])
    other = load_pack([write(tmp_path / "three", {"a/b.yaml": GOOD.replace("major", "minor")})])
    assert one.digest == same.digest
    assert one.digest != other.digest


def test_literals_of_vetoes_are_not_searched_for() -> None:
    pack = build_pack([signature(vetoes=(Alternative(literals=("but not",)),))])
    assert pack.literals == ("lost it",)


def test_a_pack_can_be_sent_to_another_process() -> None:
    pack = load_pack([SMALL_PACK])
    assert pickle.loads(pickle.dumps(pack)) == pack


@pytest.mark.parametrize(
    ("literals", "anchors"),
    [
        (("could not reach its shard",), ("could not reach its shard",)),
        (("/flink-dist-cach",), ("FileNotFoundException",)),
    ],
    ids=["a literal that says enough", "one that counts with its class only"],
)
def test_literals_that_the_scanner_searches_for(
    literals: tuple[str, ...], anchors: tuple[str, ...]
) -> None:
    alternative = Alternative(literals=literals, throwables=("java.io.FileNotFoundException",))
    assert alternative.anchors == anchors


def test_a_pack_is_used_without_the_files_that_have_problems(tmp_path: Path) -> None:
    home = write(
        tmp_path,
        {
            "a/good.yaml": GOOD + "explains: [a/bad]\n",
            "a/bad.yaml": "title: [",
            "a/loose.yaml": GOOD + "explains: [a/nothing]\n",
            # These override built-in signatures, which remain in use if an override is skipped.
            "rocksdb/bad-table-magic.yaml": GOOD + "explains: [a/nothing]\n",
            "operator/user-code.yaml": GOOD + "explains: [checkpoint/threshold-exceeded]\n",
            "checkpoint/threshold-exceeded.yaml": GOOD + "explains: [operator/user-code]\n",
            "ignore.yaml": "- signature: a/good\n",
        },
    )
    pack = load_usable_pack([SMALL_PACK, home])
    built_in = load_pack([SMALL_PACK])
    assert {skipped.signature for skipped in pack.skipped} == {
        *("a/bad", "a/loose", "ignore.yaml"),
        *("rocksdb/bad-table-magic", "checkpoint/threshold-exceeded"),
    }
    for name in ("rocksdb/bad-table-magic", "checkpoint/threshold-exceeded"):
        assert pack.signatures[name] == built_in.signatures[name]
    assert pack.signatures["operator/user-code"] != built_in.signatures["operator/user-code"]
    assert "a/good" in pack.signatures
    assert "a/loose" not in pack.signatures
    assert pack.ignored == built_in.ignored


def test_broken_first_directory_or_missing_directory_raises(tmp_path: Path) -> None:
    broken = write(tmp_path / "broken", {"a/bad.yaml": "title: ["})
    for directories in ([broken], [broken, SMALL_PACK], [SMALL_PACK, tmp_path / "none"]):
        with pytest.raises(SignaturePackError):
            load_usable_pack(directories)
