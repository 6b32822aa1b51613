"""Finds cancellations by which the adaptive scheduler restarts a job after a failure.

The adaptive scheduler cancels and recreates a job after a task failure or a global failure. It does
the same to rescale a job, but without a preceding failure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from flink_triage.diagnosis.durations import ANSWER
from flink_triage.diagnosis.moment import Moment
from flink_triage.signatures import SignaturePack


def find_adaptive_restarts(moments: Sequence[Moment], _pack: SignaturePack) -> dict[int, Moment]:
    """Replace the state CANCELLING with RESTARTING if the scheduler recreates a failed job.

    The scheduler must log this decision within ``ANSWER`` after the failure.
    """
    failed: dict[str, datetime] = {}
    restarting: set[str] = set()
    changed: dict[int, Moment] = {}
    for index, moment in enumerate(moments):
        observation, at = moment.observation, moment.at
        lifecycle, path = observation.event.lifecycle, observation.event.path
        if lifecycle is None:
            continue
        if lifecycle.kind in ("task-failed", "global-failure"):
            failed[path] = at
        elif lifecycle.kind == "rescheduled" and path in failed:
            if at - failed[path] <= ANSWER:
                restarting.add(path)
        elif lifecycle.to_state == "CANCELLING" and path in restarting:
            restarting.remove(path)
            event = replace(observation.event, lifecycle=replace(lifecycle, to_state="RESTARTING"))
            changed[index] = replace(moment, observation=replace(observation, event=event))
    return changed
