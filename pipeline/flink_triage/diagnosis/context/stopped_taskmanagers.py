"""Finds signals received by TaskManagers that the JobManager then reports as lost.

A TaskManager that receives SIGTERM may exit before it unregisters. Its heartbeat then times out on
the JobManager, as if the process or its host had failed.
"""

from __future__ import annotations

from collections.abc import Sequence

from flink_triage.diagnosis.context.processes import (
    SIGNAL,
    is_kind,
    lost_id,
    process_of,
    started_as,
)
from flink_triage.diagnosis.durations import HEARTBEAT
from flink_triage.diagnosis.moment import Moment, inferred_matches
from flink_triage.signatures import SignaturePack


def find_stopped_taskmanagers(moments: Sequence[Moment], pack: SignaturePack) -> dict[int, Moment]:
    """Give the signal a match with ``meaning: taskmanager-stopped``, unless the cluster stops.

    A line must report the loss within ``HEARTBEAT``, and the TaskManager's log must contain
    its start, which states its resource id.
    """
    stopped = pack.with_meaning("taskmanager-stopped")
    if not stopped:
        return {}
    names: dict[str, str] = {}
    signals: dict[str, int] = {}
    changed: dict[int, Moment] = {}
    for index, moment in enumerate(moments):
        observation = moment.observation
        process = process_of(observation)
        if (name := started_as(observation)) is not None:
            names[process] = name
        elif moment.is_stop:
            continue
        elif is_kind(observation, SIGNAL) and process in names:
            signals[names[process]] = index
        elif signals and (lost := lost_id(observation)) in signals:
            signal = moments[signals[lost]]
            if moment.at - signal.at <= HEARTBEAT:
                matches = inferred_matches(signal.observation, stopped)
                changed[signals[lost]] = signal.reinterpreted(matches)
    return changed
