"""Similar failures usually include the correct one. Failures in user code have none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.closest import look, neighbours_of_own_failures, observe
from flink_triage.model import SimilarFailure
from flink_triage.signatures import SignaturePack
from flink_triage.signatures import similar as similar_module
from flink_triage.signatures.similar import SimilarIndex, similar_failures, terms_of_pack
from flink_triage.signatures.terms import terms_of_failure

SENDER = """
\tat org.apache.kafka.clients.producer.internals.Sender.completeBatch(Sender.java:1)
\tat org.apache.kafka.clients.producer.internals.Sender.run(Sender.java:1)"""
NOT_LEADER = (
    "org.apache.kafka.common.errors.ReplicaElectionException: "
    f"This server is no leader for that topic-partition, the leader has moved{SENDER}"
)
CHAINED = """\
org.apache.flink.streaming.runtime.tasks.ExceptionInChainedOperatorException: \
Could not forward element to next operator
\tat org.apache.flink.streaming.runtime.tasks.CopyingChainingOutput.pushToOperator(C.java:92)
Caused by: """


def similar(pack: SignaturePack, trace: str) -> tuple[SimilarFailure, ...]:
    text = f"Sink (1/2)#0 switched from RUNNING to FAILED.\n{trace}"
    return similar_failures(observe(text), pack)


@pytest.fixture
def other_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Returns a function that forgets what this process remembers, but not the files."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    yield similar_module._index_of.cache_clear
    similar_module._index_of.cache_clear()


def test_the_next_process_does_not_parse_the_examples_again(
    pack: SignaturePack, monkeypatch: pytest.MonkeyPatch, other_process: Callable[[], None]
) -> None:
    other_process()
    found = similar(pack, NOT_LEADER)
    assert found
    monkeypatch.setattr(similar_module, "terms_of_pack", lambda _pack: {})
    other_process()
    assert similar(pack, NOT_LEADER) == found
    other_process()
    assert similar(replace(pack, digest="of other signatures"), NOT_LEADER) == ()


@pytest.mark.parametrize("left_out", ["the example itself", "all examples of the signature"])
def test_correct_signature_is_in_the_top_three_without_its_own_examples(
    pack: SignaturePack, left_out: str
) -> None:
    looked = list(look(pack, left_out, every=31))
    assert len(looked) > 25
    assert sum(one.is_right for one in looked) >= 0.6 * len(looked)


def test_user_code_failures_have_no_similar_failures(pack: SignaturePack) -> None:
    assert neighbours_of_own_failures(pack) == {}


def test_similarities_and_differences_are_listed(pack: SignaturePack) -> None:
    first, *others = similar(pack, NOT_LEADER)
    assert len(others) <= 2
    assert first.signature == "kafka/not-leader"
    assert first.title == pack.signatures["kafka/not-leader"].title
    assert any("leader" in agrees for agrees in first.agrees)
    assert any("is expected" in differs for differs in first.differs)
    assert any("is not in the message" in differs for differs in first.differs)


def test_failure_of_another_component_names_both_components(pack: SignaturePack) -> None:
    found = similar(pack, NOT_LEADER.replace("org.apache.kafka.common.errors", "io.grpc"))
    differences = [differs for one in found for differs in one.differs]
    assert "it is a failure of the Kafka client, but this one is of gRPC" in differences


def test_wrapper_does_not_change_the_similar_failures(pack: SignaturePack) -> None:
    bare = similar(pack, NOT_LEADER)
    wrapped = similar(pack, CHAINED + NOT_LEADER)
    assert [one.signature for one in wrapped] == [one.signature for one in bare]
    assert similar(pack, CHAINED.removesuffix("\nCaused by: ")) == ()


def test_signatures_already_shown_are_not_suggested(pack: SignaturePack) -> None:
    observation = observe(f"failed\n{NOT_LEADER}")
    first = similar_failures(observation, pack)[0].signature
    without = similar_failures(observation, pack, without={first})
    assert without
    assert first not in {one.signature for one in without}


def test_ignored_signatures_are_not_suggested(pack: SignaturePack) -> None:
    observation = observe(f"failed\n{NOT_LEADER}")
    first = similar_failures(observation, pack)[0].signature
    ignored = replace(pack.signatures[first], role="benign")
    heard = replace(pack, signatures={**pack.signatures, first: ignored})
    found = {one.signature for one in similar_failures(observation, heard)}
    assert found
    assert first not in found


def test_the_order_of_the_signatures_does_not_matter(pack: SignaturePack) -> None:
    terms = terms_of_pack(pack)
    failure = terms_of_failure(observe(f"failed\n{NOT_LEADER}"))
    turned = dict(reversed(terms.items()))
    assert SimilarIndex(terms).nearest(failure) == SimilarIndex(turned).nearest(failure)


def test_only_the_beginning_of_a_huge_message_counts(pack: SignaturePack) -> None:
    observation = observe(f"failed\n{NOT_LEADER}")
    message = f"{observation.root_cause_message} " + " checksum mismatch of a block" * 10**5
    padded = replace(observation, root_cause_message=message[:3000])
    assert terms_of_failure(replace(padded, root_cause_message=message)) == terms_of_failure(padded)
