"""Each context rule determines the result for its own log, and can be disabled by its ID."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from flink_triage.diagnosis import diagnose_deployment
from flink_triage.diagnosis.context.rules import CONTEXT
from flink_triage.remediation import OptionTable
from flink_triage.settings import DEFAULT_SETTINGS
from flink_triage.signatures import build_pack
from tests.unit.diagnosis.test_handled_exceptions import LOGGED
from tests.unit.diagnosis.test_incidents import (
    FULL,
    NPE,
    SEEKER,
    SOUGHT,
    completed,
    failed,
    line,
    loop,
    rescheduled,
    signatures,
    state,
)
from tests.unit.diagnosis.test_lost_jobmanager import RUNS
from tests.unit.diagnosis.test_orderly_shutdown import (
    ENDS,
    LOST,
    RUNNER,
    TASKMANAGER_ENDS,
    WELL,
    banner,
    sigterm,
    started,
)
from tests.unit.diagnosis.test_system_exit import HOOKS, JOBMANAGER, NAME
from tests.unit.diagnosis.test_unmet_slot_requests import REQUEST, refused, registered
from tests.unit.diagnosis.test_verdicts import ANSWER, ASKED

TEXT = "Our Flink job fails with java.lang.OutOfMemoryError: Java heap space\n"
BARE = "java.lang.NullPointerException: null\n"
CONNECTED = line(12, "Successful registration at resource manager pekko.tcp://flink@jm:6123/u.")
UNKNOWN_JOB = line(7, ANSWER.format("f" * 32), "WARN", ASKED)
LOST_TASKMANAGER = {"jobmanager": LOST, "taskmanager": started(0) + sigterm(60, RUNNER)}


@dataclass(frozen=True)
class Case:
    """Logs by file name, and a fact about the first incident with and without the rule."""

    logs: dict[str, str]
    fact: str
    with_rule: object
    without_rule: object


CASES = {
    "read-from-text": Case({"question": TEXT}, "is_from_text", True, False),
    "adaptive-restarts": Case(
        {"jobmanager": completed(5, 4) + failed(10, FULL) + rescheduled(10) + completed(30, 5)},
        "restarts",
        1,
        0,
    ),
    "registration-retries": Case(
        {"taskmanager": line(1, SOUGHT, logger=SEEKER) + CONNECTED},
        "signatures",
        [],
        ["taskmanager/registration-timeout"],
    ),
    "omitted-stacks": Case(
        {"jobmanager": loop(NPE, 1) + loop(BARE, 2, 14)},
        "occurrences",
        3,
        1,
    ),
    "orderly-shutdown": Case(
        {"jobmanager": WELL + ENDS, "taskmanager": TASKMANAGER_ENDS},
        "verdict",
        "healthy",
        "diagnosed",
    ),
    "unmet-slot-requests": Case(
        {"jobmanager": REQUEST + registered(20, "tm-1") + refused(40)},
        "signatures",
        ["resources/slots-unavailable"],
        ["resources/taskmanager-not-registered", "resources/slots-unavailable"],
    ),
    "handled-exceptions": Case(
        {"jobmanager": completed(20, 5), "taskmanager": LOGGED},
        "signatures",
        [],
        ["operator/user-code-exception"],
    ),
    "unknown-job-requests": Case(
        {"jobmanager": state(1, "CREATED", "RUNNING") + UNKNOWN_JOB},
        "signatures",
        [],
        ["rest/job-unknown"],
    ),
    "stopped-taskmanagers": Case(
        LOST_TASKMANAGER,
        "first",
        "taskmanager/shutdown-requested",
        "taskmanager/heartbeat-timeout",
    ),
    "lost-jobmanager": Case(
        {"jobmanager": RUNS + banner(75)}, "signatures", ["ha/jobmanager-lost"], []
    ),
    "system-exit": Case(
        {"jobmanager": JOBMANAGER, "taskmanager": started(0, NAME) + HOOKS},
        "first",
        "job/system-exit",
        "taskmanager/shutdown-requested",
    ),
}


@pytest.fixture
def first_incident(observe, pack):
    """Returns facts about the first incident, with the given rules disabled."""

    def facts(logs, without=(), of_pack=pack):
        settings = replace(DEFAULT_SETTINGS, rules_left_out=frozenset(without))
        found = diagnose_deployment("d", observe(**logs), of_pack, OptionTable.load(), settings)
        incident = found.incidents[0]
        diagnoses = incident.diagnoses
        return {
            "verdict": incident.verdict,
            "restarts": incident.restarts,
            "signatures": signatures(incident),
            "first": signatures(incident)[0] if diagnoses else None,
            "occurrences": diagnoses[0].occurrences if diagnoses else 0,
            "is_from_text": any("found in prose" in note for note in incident.notes),
        }

    return facts


def test_every_rule_has_an_id_a_sentence_a_source_and_a_case() -> None:
    assert [rule.id for rule in CONTEXT] == list(CASES)
    for rule in CONTEXT:
        assert rule.description.endswith(".")
        assert rule.source


@pytest.mark.parametrize("rule", CASES)
def test_a_rule_decides_its_log_and_can_be_left_out(rule: str, first_incident) -> None:
    case = CASES[rule]
    assert first_incident(case.logs)[case.fact] == case.with_rule
    assert first_incident(case.logs, [rule])[case.fact] == case.without_rule


@pytest.mark.parametrize("rule", CASES)
def test_the_other_rules_do_not_decide_it(rule: str, first_incident) -> None:
    case = CASES[rule]
    others = set(CASES) - {rule}
    assert first_incident(case.logs, others)[case.fact] == case.with_rule


@pytest.mark.parametrize(
    ("rule", "meaning"),
    [
        ("unknown-job-requests", "job-unknown"),
        ("stopped-taskmanagers", "taskmanager-stopped"),
        ("lost-jobmanager", "jobmanager-lost"),
        ("system-exit", "system-exit"),
    ],
)
def test_a_rule_does_not_apply_if_no_signature_has_its_meaning(
    rule: str, meaning: str, first_incident, pack
) -> None:
    signatures = pack.signatures.values()
    without = build_pack(
        replace(s, meaning=None) if s.meaning == meaning else s for s in signatures
    )
    case = CASES[rule]
    assert first_incident(case.logs, of_pack=without)[case.fact] == case.without_rule


def test_a_signature_of_the_user_may_have_the_meaning(first_incident, pack) -> None:
    own = replace(pack.signatures["ha/jobmanager-lost"], id="acme/jobmanager-gone", explains=())
    with_own = build_pack([*pack.signatures.values(), own])
    logs = CASES["lost-jobmanager"].logs
    assert sorted(first_incident(logs, of_pack=with_own)["signatures"]) == [
        "acme/jobmanager-gone",
        "ha/jobmanager-lost",
    ]


def test_the_page_lists_every_rule_in_order() -> None:
    page = Path(__file__).parents[3] / "docs" / "diagnosis.md"
    text = page.read_text(encoding="utf-8")
    rows = [f"| `{rule.id}` | {rule.description} | {rule.source} |" for rule in CONTEXT]
    assert "\n".join(rows) in text
