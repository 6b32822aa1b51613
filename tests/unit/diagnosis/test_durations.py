"""The ordering of durations that other modules rely on."""

from __future__ import annotations

import pytest

from flink_triage.diagnosis import durations as d
from flink_triage.diagnosis.context.orderly_shutdown import REACH


@pytest.mark.parametrize(
    ("shorter", "longer"),
    [
        # Events that a rule requires are kept between scheduled runs.
        pytest.param(d.RAN_BEFORE_KILL, d.LEAD_IN, id="lines before an open incident are kept"),
        pytest.param(d.SLOTS_MISSED, d.LATE, id="requests are kept while logs may come late"),
        pytest.param(
            d.WELL_WITHIN,
            d.OVER_AFTER,
            id="a job can prove healthy before a fault is final",
        ),
        pytest.param(REACH, d.LATE, id="a signal is still available when its effects arrive late"),
        # A narrow period, for example for one process, is not longer than the wider one.
        pytest.param(d.ANSWER, d.STOP_EFFECT, id="the job responds before other processes do"),
        pytest.param(
            d.FAILURE_SLACK, d.CLUSTER_LEAD, id="one failure is grouped before its effects"
        ),
        pytest.param(d.WELL_FOR, d.OVER_AFTER, id="a job counts as healthy before an episode ends"),
    ],
)
def test_order(shorter: object, longer: object) -> None:
    assert shorter <= longer  # type: ignore[operator]
