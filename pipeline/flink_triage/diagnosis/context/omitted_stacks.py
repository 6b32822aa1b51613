"""Gives an exception without a stack trace the matches of the last one of its class with a trace.

HotSpot omits the stack trace of some exceptions after it has compiled the throwing code
(``-XX:+OmitStackTraceInFastThrow``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flink_triage.diagnosis.moment import Moment
from flink_triage.model import Observation
from flink_triage.signatures import SignaturePack
from flink_triage.traces import OMITTED_STACKS


def complete_stacks(moments: Sequence[Moment], _pack: SignaturePack) -> dict[int, Moment]:
    last_with_stack: dict[str, Observation] = {}
    changed: dict[int, Moment] = {}
    for index, moment in enumerate(moments):
        observation = moment.observation
        kind = observation.root_cause_type
        if kind not in OMITTED_STACKS:
            continue
        earlier = last_with_stack.get(kind)
        if observation.has_frames:
            last_with_stack[kind] = observation
        elif earlier is not None:
            place = max((m.line_offset for m in observation.matches), default=0)
            completed = replace(
                observation,
                matches=tuple(replace(m, line_offset=place) for m in earlier.matches),
                first_user_frame=earlier.first_user_frame,
            )
            changed[index] = replace(moment, observation=completed)
    return changed
