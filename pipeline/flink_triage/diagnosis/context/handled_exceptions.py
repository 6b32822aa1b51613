"""Finds exceptions that user code logged and handled.

User code that falls back to a default may log each exception at ERROR with its stack trace, and may
quote any failure message. Such a line is not a failure if nothing fails within ``TASK_FAILS`` after
it, and a line of a healthy job (``is_well``) follows within ``WELL_WITHIN``.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import replace
from datetime import datetime

from flink_triage.diagnosis.context.failures import FAILING_STATES, failure_rank
from flink_triage.diagnosis.durations import TASK_FAILS, WELL_WITHIN
from flink_triage.diagnosis.moment import Moment
from flink_triage.logs.routine import COMPLETED
from flink_triage.model import Observation
from flink_triage.signatures import SignaturePack
from flink_triage.signatures.conditions import is_logger
from flink_triage.traces import origin_of

# Layouts may shorten a logger name to its last part, or its packages to single letters.
_WHOLE_NAME = re.compile(r"[a-z]\w+\.")


def mark_handled_exceptions(moments: Sequence[Moment], pack: SignaturePack) -> dict[int, Moment]:
    """Remove the matches of lines with handled exceptions, and mark the lines as handled.

    If a job handled an exception once, other lines of user code with the same fingerprint are also
    marked, even near a failure. Such a failure has a different cause, or its own lines report the
    exception.
    """
    unspecific = {one.id for one in pack.signatures.values() if one.is_unspecific}
    found: set[int] = set()
    fails_at: datetime | None = None
    well_at: datetime | None = None
    for index in reversed(range(len(moments))):
        observation, at = moments[index].observation, moments[index].at
        if _is_failure(observation):
            fails_at = at
        elif is_well(observation):
            well_at = at
        elif _is_user_log(observation, unspecific) and well_at is not None:
            goes_on = well_at - at <= WELL_WITHIN
            if goes_on and (fails_at is None or fails_at - at > TASK_FAILS):
                found.add(index)
    survived = {moments[index].observation.fingerprint for index in found} - {None}
    found |= {
        index
        for index, moment in enumerate(moments)
        if moment.observation.fingerprint in survived
        and _is_user_log(moment.observation, unspecific)
    }
    return {index: replace(moments[index].reinterpreted(()), is_handled=True) for index in found}


def _is_user_log(observation: Observation, unspecific: Container[str]) -> bool:
    """Whether user code may have logged the line, with its own exception or a quoted message."""
    event = observation.event
    if event.lifecycle is not None or event.logger is None or not observation.matches:
        return False
    if all(match.signature in unspecific for match in observation.matches):
        # A simple class name may belong to Flink or to user code; both are accepted here.
        return "." not in event.logger or not is_logger(event.logger, "org.apache.flink")
    # A quoted failure message, without an exception.
    is_whole_name = _WHOLE_NAME.match(event.logger) is not None
    return observation.fingerprint is None and is_whole_name and origin_of(event.logger) == "user"


def _is_failure(observation: Observation) -> bool:
    lifecycle = observation.event.lifecycle
    if lifecycle is None:
        return False
    return failure_rank(observation) is not None or lifecycle.to_state in FAILING_STATES


def is_well(observation: Observation) -> bool:
    """Whether a line shows a healthy job.

    The job completed a checkpoint, finished, or ran until it was canceled or the JobManager
    received a shutdown signal.
    """
    lifecycle = observation.event.lifecycle
    if lifecycle is None:
        return False
    is_stop = lifecycle.kind == "signal" and observation.process == "jobmanager"
    is_end = lifecycle.to_state in ("FINISHED", "CANCELLING")
    return lifecycle.kind == COMPLETED or is_end or is_stop
