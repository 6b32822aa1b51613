"""``make closest``: measures how often the closest known failures contain the correct one.

Each example of a signature that may be an answer, except generic ones, is searched as if no
signature that may be an answer matched it. Three indexes are searched: without the example, without
the example and all conditions of its signature, and without all examples of its signature. The
benchmark also counts the failures in a job's own code for which similar failures are found. There
should be none.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from flink_triage.analyzer import Analyzer
from flink_triage.model import ByteRange, FileProfile, Observation, SimilarFailure
from flink_triage.signatures import Signature, SignaturePack, builtin_pack_directory, load_pack
from flink_triage.signatures.samples import event_from_text
from flink_triage.signatures.similar import SimilarIndex, similar_failures, terms_of_pack
from flink_triage.signatures.terms import Terms, terms_of_signature

_OWN_FAILURES = Path(__file__).with_name("own_failures.tsv")
_FAILED = "Enrich (1/2)#0 (5d41402abc4b2a76b9719d911017c592) switched from RUNNING to FAILED."
_IN_A_TASK = """
\tat com.acme.jobs.Enrich.map(Enrich.java:41)
\tat org.apache.flink.streaming.api.operators.StreamMap.processElement(StreamMap.java:38)
\tat org.apache.flink.streaming.runtime.tasks.StreamTask.processInput(StreamTask.java:562)
\tat org.apache.flink.streaming.runtime.tasks.mailbox.MailboxProcessor.runMailboxLoop\
(MailboxProcessor.java:231)
\tat org.apache.flink.runtime.taskmanager.Task.run(Task.java:575)
\tat java.base/java.lang.Thread.run(Thread.java:840)"""
_IN_MAIN = "\n\tat com.acme.jobs.Main.main(Main.java:12)"
_CHAINED = """\
org.apache.flink.streaming.runtime.tasks.ExceptionInChainedOperatorException: \
Could not forward element to next operator
\tat org.apache.flink.streaming.runtime.tasks.CopyingChainingOutput.pushToOperator\
(CopyingChainingOutput.java:92)
Caused by: """
_SUPPRESSED = """\
org.apache.flink.runtime.JobException: Recovery is suppressed by NoRestartBackoffTimeStrategy
\tat org.apache.flink.runtime.executiongraph.failover.ExecutionFailureHandler.handleFailure\
(ExecutionFailureHandler.java:180)
Caused by: """
# The text before the throwable, and its frames.
_FORMS = (
    ("", _IN_A_TASK),
    ("", _IN_MAIN),
    (_CHAINED, _IN_A_TASK),
    (_SUPPRESSED, _IN_A_TASK),
)


@dataclass(frozen=True, slots=True)
class Looked:
    """An example, and the failures found for it."""

    signature: str
    example: int
    found: tuple[str, ...]

    @property
    def is_right(self) -> bool:
        return self.signature in self.found


def without_example(signature: Signature, text: str) -> Signature:
    """The signature without one of its examples."""
    left = tuple(example for example in signature.examples.match if example != text)
    return replace(signature, examples=replace(signature.examples, match=left))


def without_example_and_conditions(signature: Signature, text: str) -> Signature:
    """The signature without one of its examples, and without its conditions."""
    return replace(without_example(signature, text), alternatives=())


def without_examples(signature: Signature, text: str) -> Signature:
    """The signature without its examples."""
    return replace(signature, examples=replace(signature.examples, match=()))


LEFT_OUT = {
    "the example itself": without_example,
    "the example and all conditions": without_example_and_conditions,
    "all examples of the signature": without_examples,
}


def look(pack: SignaturePack, left_out: str, every: int = 1) -> Iterator[Looked]:
    """The failures found for each ``every``-th example."""
    terms = terms_of_pack(pack)
    samples = [
        (signature, number, text)
        for signature in pack.signatures.values()
        if signature.is_answer and signature.id in terms
        for number, text in enumerate(signature.examples.match)
    ]
    for signature, number, text in samples[::every]:
        rest = LEFT_OUT[left_out](signature, text)
        index = SimilarIndex({**terms, signature.id: terms_of_signature(rest)})
        found = nearest(observe(text), pack, index)
        yield Looked(signature.id, number, tuple(one.signature for one in found))


def observe(text: str) -> Observation:
    """The observation that the earlier stages produce from one log event."""
    return _analyzer().observe(event_from_text(text), ByteRange(FileProfile("example", 0), "d"))


def nearest(
    observation: Observation, pack: SignaturePack, index: SimilarIndex
) -> tuple[SimilarFailure, ...]:
    """Known failures similar to an event, as if no signature that may be an answer matched it."""
    left = [m for m in observation.matches if not pack.signatures[m.signature].is_answer]
    return similar_failures(replace(observation, matches=tuple(left)), pack, index=index)


def own_failures() -> Iterator[str]:
    """Log events of failures in a job's own code, each in four forms in which Flink logs them."""
    for row in _OWN_FAILURES.read_text(encoding="utf-8").splitlines():
        if not row.startswith("#"):
            thrown = ": ".join(filter(None, row.split("\t")))
            yield from (f"{_FAILED}\n{before}{thrown}{frames}" for before, frames in _FORMS)


def neighbours_of_own_failures(pack: SignaturePack) -> Mapping[str, tuple[SimilarFailure, ...]]:
    """The similar failures found for failures in a job's own code; there should be none."""
    index = SimilarIndex(terms_of_pack(pack))
    found = {text: nearest(observe(text), pack, index) for text in own_failures()}
    return {text: similar for text, similar in found.items() if similar}


def print_times(pack: SignaturePack) -> None:
    """Print the CPU time for building an index, and the mean for searching it for one failure."""
    began = time.process_time()
    terms: Mapping[str, Terms] = terms_of_pack(pack)
    index = SimilarIndex(terms)
    built = time.process_time()
    examples = [text for s in pack.signatures.values() for text in s.examples.match]
    observations = [observe(text) for text in examples]
    parsed = time.process_time()
    for observation in observations:
        nearest(observation, pack, index)
    each = (time.process_time() - parsed) / len(observations)
    print(f"index of {len(terms)} signatures: {1000 * (built - began):.0f} ms, ", end="")
    print(f"search for one failure: {1000 * each:.2f} ms")


@cache
def _analyzer() -> Analyzer:
    return Analyzer((builtin_pack_directory(),))


@cache
def _pack() -> SignaturePack:
    return load_pack([builtin_pack_directory()])


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--every", type=int, default=1, help="search only each n-th example")
    parser.add_argument("--misses", action="store_true", help="print the failures found instead")
    arguments = parser.parse_args(argv)
    print("left out of the index               first   in three   nothing shown")
    for left_out in LEFT_OUT:
        looked = list(look(_pack(), left_out, arguments.every))
        first = sum(one.found[:1] == (one.signature,) for one in looked)
        right = sum(one.is_right for one in looked)
        silent = sum(not one.found for one in looked)
        shares = "   ".join(f"{100 * n / len(looked):5.1f} %" for n in (first, right, silent))
        print(f"{left_out:<34} {shares}   of {len(looked)}")
        for one in looked if arguments.misses else ():
            if not one.is_right:
                print(f"  {one.signature}[{one.example}]: {', '.join(one.found) or 'nothing'}")
    found = neighbours_of_own_failures(_pack())
    total = len(list(own_failures()))
    print(f"failures of a job's own code with similar failures: {len(found)} of {total}")
    for text, similar in found.items():
        print(f"  {text.splitlines()[1]}: {', '.join(one.signature for one in similar)}")
    print_times(_pack())
    return 0


if __name__ == "__main__":
    sys.exit(main())
