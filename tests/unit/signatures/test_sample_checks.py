"""Samples in any layout are read as events and matched in the same way as logs."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from signature_builders import SMALL_PACK, signature

from flink_triage.model import Event
from flink_triage.signatures import Alternative, Examples, Matcher, build_pack, load_pack
from flink_triage.signatures.samples import (
    Overlap,
    check_examples,
    event_from_text,
    explained_by,
    match_text,
    overlap_matrix,
    untested_alternatives,
)


def test_a_sample_with_header_becomes_an_event_with_its_parts() -> None:
    text = "2026-11-21 05:48:45,519 WARN  org.apache.flink.X [] - head\n\tat a.B.c(B.java:1)\n"
    assert event_from_text(text) == Event(
        path="sample",
        offset=0,
        size_bytes=len(text),
        line=1,
        logged_at=datetime(2026, 11, 21, 5, 48, 45, 519000, tzinfo=UTC),
        level="WARN",
        logger="org.apache.flink.X",
        thread=None,
        message="head",
        continuation="\tat a.B.c(B.java:1)",
    )


def test_a_sample_without_header_is_all_message() -> None:
    event = event_from_text("java.io.IOException: x\n\tat a.B.c(B.java:1)")
    assert (event.level, event.message) == (None, "java.io.IOException: x")
    assert event.continuation == "\tat a.B.c(B.java:1)"


def test_examples_of_the_small_pack_match() -> None:
    pack = load_pack([SMALL_PACK])
    assert check_examples(pack) == ()
    sample = pack.signatures["rocksdb/bad-table-magic"].examples.match[0]
    (match,) = match_text(Matcher(pack), sample)
    assert match.signature == "rocksdb/bad-table-magic"
    assert match.depth_from_root == 0
    assert match.captures == {
        "expected": "9863518390377041911",
        "found": "9863518390377041658",
        "file": "/tmp/tm/db/000012.sst",
    }


def test_missed_examples_and_matched_near_misses_are_reported() -> None:
    wrong = signature(examples=Examples(("we kept it", "we lost it"), ("they lost it",)))
    problems = [(problem.field, problem.reason) for problem in check_examples(build_pack([wrong]))]
    assert problems == [
        ("examples.match[0]", "does not match"),
        ("examples.no_match[0]", 'matches alternative 0: "they lost it"'),
    ]


def test_every_part_of_a_sequence_wants_an_example() -> None:
    two = (Alternative(literals=("lost it",)), Alternative(literals=("found it",)))
    poor = signature(mode="sequence", alternatives=two, examples=Examples(("lost it",)))
    (problem,) = check_examples(build_pack([poor]))
    assert problem.reason == "no example shows sequence[1]"


def test_alternatives_that_no_example_shows() -> None:
    two = (Alternative(literals=("lost it",)), Alternative(literals=("found it",)))
    poor = signature(alternatives=two, examples=Examples(("lost it",)))
    assert untested_alternatives(build_pack([poor])) == {"a/b": (1,)}


VAGUE = signature(
    "a/vague",
    alternatives=(Alternative(literals=("lost",)),),
    examples=Examples(("lost the file of today",)),
)
EXACT = signature(
    "b/exact",
    alternatives=(Alternative(literals=("lost the file",)),),
    examples=Examples(("lost the file of today",)),
)


def test_on_a_shared_sample_the_vague_owner_is_beaten_and_the_exact_one_is_not() -> None:
    assert overlap_matrix(build_pack([VAGUE, EXACT])) == (
        Overlap("a/vague", 0, ("b/exact",), ("b/exact",)),
        Overlap("b/exact", 0, ("a/vague",), ()),
    )


def test_a_symptom_beats_no_trigger() -> None:
    symptom = replace(EXACT, role="symptom")
    assert [overlap.beaten_by for overlap in overlap_matrix(build_pack([VAGUE, symptom]))] == [
        (),
        ("a/vague",),
    ]


def test_cause_of_the_owner_may_rank_before_it() -> None:
    cause = replace(EXACT, explains=("a/vague",))
    assert [overlap.beaten_by for overlap in overlap_matrix(build_pack([VAGUE, cause]))] == [(), ()]


def test_explanations_are_followed_to_their_end() -> None:
    pack = build_pack(
        [
            signature("a/a", explains=("a/b",)),
            signature("a/b", explains=("a/c", "a/none")),
            signature("a/c"),
        ]
    )
    assert explained_by(pack, "a/a") == {"a/b", "a/c", "a/none"}
