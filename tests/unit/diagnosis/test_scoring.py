"""A scoring rule changes the score, adds a reason, and can be disabled by its ID."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from flink_triage.diagnosis import diagnose_episodes
from flink_triage.diagnosis.ranking.rank import BEHIND_CAUSE
from flink_triage.diagnosis.ranking.scoring import SCORING
from flink_triage.remediation import OptionTable
from flink_triage.settings import DEFAULT_SETTINGS
from tests.unit.diagnosis.test_incidents import FULL, NPE, failed, line, loop, state

PORT_IN_USE = (
    "Error while instantiating the metrics reporter prom\n"
    "java.lang.RuntimeException: Could not start PrometheusReporter HTTP server on any configured"
    " port. Ports: 9249\n"
    "\tat org.apache.flink.metrics.prometheus.PrometheusReporter.<init>(PrometheusReporter.java:79)"
    "\n"
)
REGISTRY = "org.apache.flink.runtime.metrics.ReporterSetup"
AGAIN = "".join(line(second, "x", "ERROR") + FULL for second in range(10, 40, 10))
ONCE = line(50, "y", "ERROR") + NPE
FAILED_TWICE = loop(FULL, 2)
FAILED_FOR_ONE = failed(10, NPE) + state(10, "RUNNING", "FAILED")
MINOR_BESIDE = line(1, PORT_IN_USE.rstrip("\n"), "WARN", REGISTRY) + FAILED_FOR_ONE


@pytest.mark.parametrize(
    ("rule", "logs", "signature", "reason"),
    [
        ("role", FAILED_FOR_ONE, "operator/user-code-exception", "(+60)"),
        ("generic", FAILED_FOR_ONE, "operator/user-code-exception", "(-30)"),
        ("root-cause", FAILED_TWICE, "disk/full", "root cause of its stack trace (+15)"),
        ("frequency", AGAIN + ONCE, "disk/full", "seen 3 times (+14)"),
        ("persistence", FAILED_TWICE, "disk/full", "seen in all 2 failures (+14)"),
        ("last-failure", FAILED_TWICE, "disk/full", "(+10)"),
        ("first-fault", FAILED_TWICE, "disk/full", "(+8)"),
        ("severity", FAILED_TWICE, "disk/full", "critical (+6)"),
        ("minor", MINOR_BESIDE, "metrics/reporter-port-in-use", "(-40)"),
    ],
)
def test_a_rule_gives_its_points_and_can_be_left_out(
    rule, logs, signature, reason, observe, pack
) -> None:
    observed = observe(jobmanager=logs)

    def scored(settings=DEFAULT_SETTINGS):
        ((_, candidates),) = diagnose_episodes("d", observed, pack, OptionTable.load(), settings)
        (found,) = [one for one in candidates if one.id == signature]
        given = [text for text in found.reasons if text.startswith(f"{rule}: ")]
        return found.score, given

    score, (given,) = scored()
    assert given.endswith(reason)
    without, none = scored(replace(DEFAULT_SETTINGS, rules_left_out=frozenset({rule})))
    assert none == []
    assert score != without


def test_the_page_lists_every_rule_in_order() -> None:
    page = (Path(__file__).parents[3] / "docs" / "diagnosis.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"\| rule \| points .*?\n\n", page, re.DOTALL)
    ids = [rule.id for rule in SCORING]
    assert re.findall(r"^\| `([a-z-]+)`", table, re.MULTILINE) == [*ids, BEHIND_CAUSE]


def test_every_rule_has_a_unique_id_and_a_basis() -> None:
    assert len({rule.id for rule in SCORING}) == len(SCORING)
    assert all(rule.basis for rule in SCORING)
