"""The order of durations that other modules rely on."""

from __future__ import annotations

import pytest

from flink_triage.diagnosis import durations as d
from flink_triage.diagnosis.context.orderly_shutdown import REACH


@pytest.mark.parametrize(
    ("shorter", "longer"),
    [
        # What a rule looks back on is kept from one scheduled run to the next.
        pytest.param(d.RAN_BEFORE_KILL, d.LEAD_IN, id="lines before an open incident are kept"),
        pytest.param(d.SLOTS_MISSED, d.LATE, id="requests are kept while logs may come late"),
        pytest.param(d.WELL_WITHIN, d.OVER_AFTER, id="a fault is final only after that"),
        pytest.param(REACH, d.LATE, id="a signal is still there when its effects come late"),
        # A rule for neighbours must not reach as far as one for other processes.
        pytest.param(d.ANSWER, d.STOP_EFFECT, id="a job answers before others do"),
        pytest.param(d.FAILURE_SLACK, d.CLUSTER_LEAD, id="one failure, then its effects"),
        pytest.param(d.WELL_FOR, d.OVER_AFTER, id="a job is well before an episode is over"),
    ],
)
def test_order(shorter: object, longer: object) -> None:
    assert shorter <= longer  # type: ignore[operator]
