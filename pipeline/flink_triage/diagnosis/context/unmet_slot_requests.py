"""Ignores requests for TaskManagers, unless a job did not get its slots.

On YARN and native Kubernetes, the ResourceManager requests a container or pod when slots are
missing. Such a request is routine. It is a symptom only if a job does not get its slots while the
request is unanswered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import datetime

from flink_triage.diagnosis.durations import SLOTS_MISSED
from flink_triage.diagnosis.moment import Moment
from flink_triage.model import Observation
from flink_triage.signatures import SignaturePack

REQUESTED, REGISTERED = "taskmanager-requested", "taskmanager-registered"
_NO_SLOTS = "org.apache.flink.runtime.jobmanager.scheduler.NoResourceAvailableException"


def ignore_met_slot_requests(moments: Sequence[Moment], _pack: SignaturePack) -> dict[int, Moment]:
    """Remove the matches of requests, except those unanswered when a job was refused slots.

    A TaskManager that registers for the first time, or more than ``SLOTS_MISSED`` after its last
    registration, counts as the answer to the oldest request. An unanswered request is dropped after
    ``SLOTS_MISSED``.
    """
    waiting: deque[tuple[int, int]] = deque()
    requests: set[int] = set()
    missed: set[int] = set()
    known: dict[str | None, datetime] = {}
    for index, moment in enumerate(moments):
        observation, at = moment.observation, moment.at
        lifecycle = observation.event.lifecycle
        while waiting and at - moments[waiting[0][0]].at > SLOTS_MISSED:
            waiting.popleft()
        if lifecycle is not None and lifecycle.kind == REQUESTED:
            requests.add(index)
            waiting.append((index, observation.occurrences))
        elif lifecycle is not None and lifecycle.kind == REGISTERED:
            before = known.get(lifecycle.resource_id)
            if before is None or at - before > SLOTS_MISSED:
                _answer(waiting, observation.occurrences)
            known[lifecycle.resource_id] = at
        elif waiting and _is_refusal(observation):
            missed.update(request for request, _ in waiting)
    return {index: moments[index].reinterpreted(()) for index in requests - missed}


def _answer(waiting: deque[tuple[int, int]], count: int) -> None:
    while count and waiting:
        request, wanted = waiting.popleft()
        if wanted > count:
            waiting.appendleft((request, wanted - count))
        count -= min(wanted, count)


def _is_refusal(observation: Observation) -> bool:
    """Whether a job did not get the slots that it requested."""
    lifecycle = observation.event.lifecycle
    if lifecycle is not None and lifecycle.kind == "task-failed":
        return lifecycle.from_state == "SCHEDULED"
    return _NO_SLOTS in (observation.exception_type, observation.root_cause_type)
