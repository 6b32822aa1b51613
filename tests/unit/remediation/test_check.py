from __future__ import annotations

from dataclasses import dataclass

import pytest

from flink_triage.remediation import check_pack
from flink_triage.remediation.check import kafka_client_options
from flink_triage.signatures.signature import (
    Alternative,
    ComputedValue,
    ConfigSpec,
    RemediationSpec,
    Signature,
    When,
)

TIMEOUT = "execution.checkpointing.timeout"
WORKING_DIR = "process.taskmanager.working-dir"


@dataclass(frozen=True)
class _Pack:
    signatures: dict[str, Signature]


def _problems(entry: ConfigSpec) -> list[str]:
    signature = Signature(
        id="a/b",
        title="t",
        severity="info",
        role="benign",
        mode="any",
        alternatives=(Alternative(literals=("text",)),),
        cause="c",
        remediation=RemediationSpec("s", config=(entry,)),
        path="a/b.yaml",
        lines={"remediation.config[0].value": 7, "remediation.config[0]": 5},
    )
    return list(check_pack(_Pack({"a/b": signature})))


GOOD = [
    ConfigSpec(TIMEOUT, "20 min", "raise"),
    ConfigSpec(TIMEOUT, ComputedValue(2, "20 min", "1 h"), "raise"),
    ConfigSpec("heartbeat.timeout", "2 min", "raise"),
    ConfigSpec("heartbeat.timeout", "120000", "raise"),
    ConfigSpec("pekko.framesize", "52428800b", "raise"),
    ConfigSpec("execution.state-recovery.from-local", "true"),
    ConfigSpec(WORKING_DIR, "<unique per TM>"),
    ConfigSpec(WORKING_DIR, "/x", when=When(">=1.15")),
    ConfigSpec(TIMEOUT, "", "remove"),
    ConfigSpec("s3.connection.maximum", "500", "raise"),
    ConfigSpec("restart-strategy.type", "exponential-delay"),
    ConfigSpec("dfs.datanode.max.transfer.threads", "8192", scope="platform"),
    ConfigSpec("env.enableCheckpointing", "60 s", scope="code"),
    ConfigSpec("properties.transaction.timeout.ms", "900000", scope="connector"),
    ConfigSpec("request.timeout.ms", ComputedValue(2, "60000"), scope="connector"),
    ConfigSpec("sink.semantic", "any text", scope="connector"),
    ConfigSpec(TIMEOUT, "1 h", when=When(options={"state.backend.type": "rocksdb"})),
    ConfigSpec(TIMEOUT, "2 h", when=When(options={"taskmanager.memory.process.size": ".+"})),
    ConfigSpec("yarn.application-attempts", "4", "raise"),
]


@pytest.mark.parametrize("entry", GOOD, ids=lambda entry: f"{entry.key} {entry.value}")
def test_an_entry_that_works_has_no_problem(entry: ConfigSpec) -> None:
    assert _problems(entry) == []


BAD = [
    ("a key that no line has", ConfigSpec("no.such.key", "1"), "key", "no Flink line"),
    ("a key that the offered lines lack", ConfigSpec(WORKING_DIR, "/x", when=When("<1.15")), "key",
     "no Flink line from 1.13 to 1.14"),
    ("a key that some offered lines lack", ConfigSpec(WORKING_DIR, "/x", when=When(">=1.14")),
     "key", "offered for Flink 1.14,"),
    ("a value of another type", ConfigSpec(TIMEOUT, "20 minz"), "value", '"20 minz"'),
    ("an enum constant with a dash", ConfigSpec("execution.checkpointing.mode", "at-least-once"),
     "value", "not one of EXACTLY_ONCE, AT_LEAST_ONCE"),
    ("a bound of another type", ConfigSpec(TIMEOUT, ComputedValue(2, "a lot"), "raise"),
     "value.at-least", '"a lot"'),
    ("a factor on a switch", ConfigSpec("state.backend.incremental", ComputedValue(2)), "value",
     "not a quantity"),
    ("a switch cannot be raised", ConfigSpec("state.backend.incremental", "true", "raise"),
     "action", "cannot be raised"),
    ("a range that is none", ConfigSpec(TIMEOUT, "1 h", when=When("new")), "when.flink", '"new"'),
    ("a range without lines", ConfigSpec(TIMEOUT, "1 h", when=When(">2.3")), "when.flink",
     "no known Flink line"),
    ("a condition on a key that is none", ConfigSpec(TIMEOUT, "1 h", when=When(options={"x": "1"})),
     "when.option", '"x"'),
    ("a condition on a value that is none",
     ConfigSpec(TIMEOUT, "1 h", when=When(options={"state.backend.incremental": "maybe"})),
     "when.option", '"maybe"'),
    ("a Kafka option of another type",
     ConfigSpec("properties.transaction.timeout.ms", "15 min", scope="connector"), "value",
     "15 min"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("entry", "field", "words"), [case[1:] for case in BAD], ids=[case[0] for case in BAD]
)
def test_an_entry_that_would_not_work_is_a_problem_with_its_place(
    entry: ConfigSpec, field: str, words: str
) -> None:
    problems = _problems(entry)
    line = 7 if field == "value" else 5
    assert problems
    assert {problem.split(": ")[0] for problem in problems} == {f"a/b.yaml:{line}"}
    assert {problem.split(": ")[1] for problem in problems} == {f"remediation.config[0].{field}"}
    assert all(words in problem for problem in problems)


def test_kafka_options_have_the_types_of_all_clients() -> None:
    options = kafka_client_options()
    assert options["transaction.timeout.ms"] == ("INT",)
    assert "max.poll.interval.ms" in options
