"""Lines in; out, which exceptions the job's own code logged and went on from.

Code that falls back to a default may log each exception at ERROR with its trace.  Such a line fails
nothing: no task fails soon after it, and the job goes on to complete a checkpoint or its work.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from ..logs.routine import COMPLETED
from ..model import Observation
from ..signatures.conditions import is_logger
from .failures import FAILING_STATES, failure_word

# The signature of the pack that says no more than that code of the job threw.
OWN_CODE = "operator/user-code-exception"
# A task that is failed by what was logged before fails within moments; closing files may take some.
_SOON = timedelta(minutes=1)
# Jobs that are well complete a checkpoint or end within that time; no longer than
# `episodes.OVER_AFTER`, after which a fault is told for good.
WELL_WITHIN = timedelta(hours=6)


def gone_on_from(timed: Sequence[tuple[Observation, datetime]]) -> set[int]:
    """Indices of lines that tell of an exception in own code, and that nothing failed of."""
    found: set[int] = set()
    fails_at: datetime | None = None
    well_at: datetime | None = None
    for index in reversed(range(len(timed))):
        observation, at = timed[index]
        if _is_failure(observation):
            fails_at = at
        elif is_well(observation):
            well_at = at
        elif _is_own_remark(observation) and well_at is not None:
            goes_on = well_at - at <= WELL_WITHIN
            if goes_on and (fails_at is None or fails_at - at > _SOON):
                found.add(index)
    return found


def _is_own_remark(observation: Observation) -> bool:
    event = observation.event
    return (
        event.lifecycle is None
        and event.logger is not None
        and not is_logger(event.logger, "org.apache.flink")
        and {match.signature for match in observation.matches} == {OWN_CODE}
    )


def _is_failure(observation: Observation) -> bool:
    lifecycle = observation.event.lifecycle
    if lifecycle is None:
        return False
    return failure_word(observation) is not None or lifecycle.to_state in FAILING_STATES


def is_well(observation: Observation) -> bool:
    """Whether a line says that a job completed a checkpoint or its work, or ran until cancelled."""
    lifecycle = observation.event.lifecycle
    return lifecycle is not None and (
        lifecycle.kind == COMPLETED or lifecycle.to_state in ("FINISHED", "CANCELLING")
    )
