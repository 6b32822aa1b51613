"""The confidence is the share of correct diagnoses on labeled logs. Small samples count little."""

from __future__ import annotations

import pytest

from benchmarks.calibrate import TABLE, Sample, cross_validated, fit, read_samples, render_table


def test_the_table_that_ships_is_the_one_fitted_to_the_samples():
    assert TABLE.read_text(encoding="utf-8") == render_table(read_samples())


def samples(kind: str, right: int, wrong: int) -> list[Sample]:
    told = [True] * right + [False] * wrong
    return [Sample(f"{kind}-{n}", "whole", kind, is_right) for n, is_right in enumerate(told)]


MANY = samples("leading/trigger/root/alone", 90, 10)


@pytest.mark.parametrize(
    ("right", "wrong", "low", "high"),
    [
        pytest.param(1, 0, 0.85, 0.95, id="one correct sample: close to the broader category"),
        pytest.param(0, 1, 0.65, 0.80, id="one wrong sample: only slightly lower"),
        pytest.param(0, 60, 0.02, 0.10, id="many wrong samples: determined by its own share"),
        pytest.param(60, 0, 0.95, 0.98, id="no wrong sample: never certain"),
    ],
)
def test_a_kind_is_pulled_to_the_wider_one_by_how_little_was_seen(right, wrong, low, high):
    seen = samples("leading/symptom/root/alone", right, wrong)
    *_, confidence = fit([*MANY, *seen])["leading/symptom"]
    assert low <= confidence <= high


def test_many_views_of_one_label_count_once():
    views = Sample("one", "file", "leading/symptom/root/alone", True, 500)
    right, seen, _ = fit([*MANY, views])["leading/symptom"]
    assert (right, seen) == (1, 1)


def test_a_label_is_judged_by_a_table_that_never_saw_it():
    alone = Sample("only", "whole", "leading/symptom/root/alone", False, 9)
    stated = {sample.group: p for p, sample in cross_validated([*MANY, alone])}
    assert stated["only"] == pytest.approx(fit(MANY)["leading"][2])
