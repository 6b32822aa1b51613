"""Steps for messages that are not in the log are omitted."""

from __future__ import annotations

import pytest

from flink_triage.remediation import OptionTable, resolve
from flink_triage.remediation.steps import applicable_steps
from flink_triage.signatures.signature import RemediationSpec

ANY = "Look at the log of the database."
SYNTAX = '"syntax error" (PostgreSQL), "Incorrect syntax near": quote the name.'
KEY = 'MySQL, "Duplicate entry" and "violates unique constraint": declare PRIMARY KEY.'
CLUSTER = '"Cluster authorization failed" in a sink: grant IdempotentWrite.'
PORT = '"Connection to node <id> ... refused": open the port.'
ELSEWHERE = '"out of memory" in the log of the database: add memory.'
STEPS = (ANY, KEY, CLUSTER, PORT, ELSEWHERE)
LAST = (ANY, ELSEWHERE, KEY, CLUSTER, PORT)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("Duplicate entry '7'", (ANY, KEY, ELSEWHERE), id="one of two messages"),
        pytest.param("x\nviolates  UNIQUE\nconstraint", (ANY, KEY, ELSEWHERE), id="case, lines"),
        pytest.param("Cluster authorization failed.", (ANY, CLUSTER, ELSEWHERE), id="a qualifier"),
        pytest.param("Connection to node -1 was refused", (ANY, PORT, ELSEWHERE), id="omissions"),
        pytest.param("refused. Connection to node -1", LAST, id="parts in a different order"),
        pytest.param("Duplicate entryway", LAST, id="only part of a word"),
        pytest.param("something else", LAST, id="no message of any step"),
        pytest.param("", LAST, id="no text"),
    ],
)
def test_steps_for_other_messages_are_omitted_or_last(text: str, expected: tuple[str, ...]) -> None:
    assert applicable_steps(STEPS, text) == expected


def test_message_followed_by_a_product_is_a_condition() -> None:
    assert applicable_steps((SYNTAX, KEY), "Incorrect syntax near 'x'") == (SYNTAX,)
    assert applicable_steps((SYNTAX, KEY), "Duplicate entry") == (KEY,)


def test_steps_of_a_remediation_fit_the_log() -> None:
    spec = RemediationSpec(summary="Correct it.", steps=(SYNTAX, KEY), risk="live")
    of_log = {"flink_version": "1.20.0", "effective": {}, "captures": {}}
    found = resolve(spec, **of_log, text="ERROR: syntax error at 1", table=OptionTable.load())
    assert found.steps == (SYNTAX,)
