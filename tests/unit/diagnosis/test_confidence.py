"""The confidence is a logistic regression on properties of labeled answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.calibrate import (
    TABLE,
    Sample,
    answers_of,
    brier,
    cross_validated,
    fit,
    read_samples,
    render_table,
    stated,
    wilson,
)
from flink_triage.diagnosis.ranking.confidence import FIRST, HIGHEST, PROPERTIES
from flink_triage.local import Options, scan_inputs
from flink_triage.remediation import OptionTable

TASK_FAILED = (
    "2026-03-04 05:06:07,890 WARN  org.apache.flink.runtime.taskmanager.Task [] - Map (1/2)#0 "
    "(32fc10f46b0a3c65bf1cf2a35ab2e73e_cbc357ccb763df2852fee8c4fc7d55f2_0_0) switched from RUNNING "
    "to FAILED with failure cause: "
)
USER_FRAME = "\n\tat com.acme.jobs.Enrich.map(Enrich.java:41)"
ANSWERS = {
    "generic": TASK_FAILED + "java.lang.NoClassDefFoundError: com/acme/Order" + USER_FRAME,
    "any-exception": TASK_FAILED + "java.lang.IllegalStateException: no such tier" + USER_FRAME,
    "symptom": "Caused by: org.apache.flink.util.FlinkException: An OperatorEvent from an "
    "OperatorCoordinator to a task was lost.",
    "symptom-of-job": "2026-03-04 05:06:07,890 INFO  "
    "org.apache.flink.runtime.executiongraph.ExecutionGraph [] - Job orders "
    "(0123456789abcdef0123456789abcdef) switched from state FAILING to FAILED.\n"
    "org.apache.flink.util.FlinkException: An OperatorEvent from an OperatorCoordinator to a task "
    "was lost.",
    "wraps": "Caused by: org.apache.flink.util.DynamicCodeLoadingException: Cannot find configured "
    "state backend factory class: rocksdbb\n\tat "
    "org.apache.flink.runtime.state.StateBackendLoader.loadStateBackendFromConfig"
    "(StateBackendLoader.java:197)\nCaused by: java.lang.ClassNotFoundException: rocksdbb",
    "no-trace": "2025-12-12T08:04:12.100418Z main ERROR Unable to write to stream "
    "/var/log/flink/tm-1.log for appender MainAppender",
    "prose": "Could not restore keyed state backend: FileNotFoundException: No such file or "
    "directory: s3a://b/7a1e/shared/0d44b4f7",
    "error-code": "Caused by: java.sql.SQLException: ORA-01325: archive log mode must be enabled "
    "to build into the logstream",
    "class-only": 'java.text.ParseException: Unparseable date: "24.03.2026"',
    "short-text": "Caused by: org.postgresql.util.PSQLException: FATAL: too many connections for "
    'role "flink"',
    "rival": "[ERROR] Could not execute SQL statement. Reason:\n"
    "org.apache.flink.table.api.ValidationException: OPTIONS hint is allowed only when "
    "table.dynamic-table-options.enabled is set to true",
}


def test_the_table_that_ships_is_the_one_fitted_to_the_samples():
    assert TABLE.read_text(encoding="utf-8") == render_table(read_samples())


def properties_of_first(log: Path, text: str) -> tuple[str, ...]:
    log.write_text(text + "\n")
    scanned = scan_inputs([str(log)], Options(), lambda done, total: None)
    observations = list(scanned.observations())
    return answers_of(observations, scanned.pack, OptionTable.load())[0][1]


@pytest.mark.parametrize("name", [each.id for each in PROPERTIES])
def test_an_answer_has_the_property(name: str, tmp_path: Path) -> None:
    assert name in properties_of_first(tmp_path / "jobmanager.log", ANSWERS[name])
    plain = ANSWERS["wraps"].partition("\nCaused by: ")[0]
    assert properties_of_first(tmp_path / "jobmanager.log", plain) == (FIRST,)


def samples(properties: tuple[str, ...], right: int, wrong: int, source: str = "one") -> Sample:
    return Sample("logs", source, (FIRST, *properties), right, wrong)


MANY = samples((), 90, 10)


@pytest.mark.parametrize(
    ("right", "wrong", "low", "high"),
    [
        pytest.param(1, 0, 0.88, 0.95, id="one correct answer: as without the property"),
        pytest.param(0, 1, 0.70, 0.90, id="one wrong answer: only slightly lower"),
        pytest.param(0, 60, 0.02, 0.15, id="many wrong answers: determined by its own share"),
        pytest.param(600, 0, 0.97, 0.98, id="no wrong answer: never certain"),
    ],
)
def test_property_of_few_answers_has_little_effect(right, wrong, low, high):
    seen = samples(("symptom",), right, wrong)
    (confidence,) = stated([seen], fit([MANY, seen]))
    assert low <= confidence <= high
    assert confidence <= HIGHEST


def test_effects_of_properties_add_up() -> None:
    first, second = samples(("wraps",), 40, 60), samples(("prose",), 50, 50)
    both = samples(("wraps", "prose"), 0, 0)
    log_odds = fit([MANY, first, second])
    (one,), (other,), (together,) = (stated([each], log_odds) for each in (first, second, both))
    assert together < min(one, other)


def test_a_source_is_judged_by_a_fit_that_never_saw_it():
    other = samples(("symptom",), 0, 9, source="other")
    judged = {sample.source: share for share, sample in cross_validated([MANY, other])}
    assert judged["other"] == pytest.approx(float(stated([other], fit([MANY]))[0]))
    assert judged["other"] > float(stated([other], fit([MANY, other]))[0])


def test_the_confidence_predicts_better_than_a_constant_and_is_right_on_blind_answers() -> None:
    judged = [(p, s) for p, s in cross_validated(read_samples()) if FIRST in s.properties]
    right, total = sum(s.right for _, s in judged), sum(s.weight for _, s in judged)
    assert brier(judged) < brier((right / total, s) for _, s in judged)
    blind = [(p, s) for p, s in judged if s.origin == "blind"]
    mean = np.average([p for p, _ in blind], weights=[s.weight for _, s in blind])
    share = sum(s.right for _, s in blind) / sum(s.weight for _, s in blind)
    assert mean == pytest.approx(share, abs=0.05)


def test_the_interval_contains_the_share_and_narrows() -> None:
    few, many = wilson(0.9, 10), wilson(0.9, 1000)
    assert few[0] < many[0] < 0.9 < many[1] < few[1]
    # Newcombe, Statistics in Medicine 17 (1998) 857: 81 of 263.
    assert wilson(81 / 263, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)
