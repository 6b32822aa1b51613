"""Log lines in, the TaskManagers that ended because user code called ``System.exit`` out.

The JVM then runs the same shutdown hooks as for a signal, so the TaskManager unregisters from the
JobManager as in an orderly stop. But its log holds no signal and no fatal error of Flink. Only the
output of the user code gives the reason: the last line of the ``.out`` file.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from flink_triage.diagnosis.context.orderly_shutdown import (
    BANNER,
    SIGNAL,
    STOPPED_IN_ORDER,
    lost_id,
    process_of,
    started_as,
)
from flink_triage.diagnosis.context.read_from_text import is_prose
from flink_triage.diagnosis.durations import EXIT_REASON, HEARTBEAT, STOPPED_TOGETHER
from flink_triage.logs.inputs.path_names import is_output
from flink_triage.logs.layouts import ERROR_AND_ABOVE
from flink_triage.model import Match, Observation

# The pack's signature for ``System.exit`` in user code.
EXITED = "job/system-exit"
CLOSING = "process-closing"
_PARTING = "The TaskExecutor is shutting down"
_LOCATION = re.compile(r" to FAILED on (?P<id>\S{1,300}) @ ")
_OWN_LOGGERS = ("org.apache.flink.", "org.apache.pekko.", "akka.")
_MAX_EXCERPT_CHARS = 400

Timed = Sequence[tuple[Observation, datetime]]


@dataclass(frozen=True, slots=True)
class Told:
    """The meaning of a line: its matches, and its time if it has none of its own."""

    matches: tuple[Match, ...]
    at: datetime


def exits_told(timed: Timed, stops: Container[int]) -> dict[int, Told]:
    """The meaning of lines about such an end, by index; ``stops`` are lines of a cluster stop.

    These are the first line of the shutdown hooks, the JobManager's line about a task that failed
    because of the exit, and the last line of the process's output.
    """
    closings = _unasked_closings(timed)
    if not closings:
        return {}
    told: dict[int, Told] = {}
    for index, (observation, at) in enumerate(timed):
        closing = None if index in stops else _noticed(observation, at, closings)
        if closing is None:
            continue
        told[closing.index] = Told((_match(timed[closing.index][0]),), closing.at)
        if any(match.signature == STOPPED_IN_ORDER for match in observation.matches):
            matches = (
                # A consequence of the end of the process, not a thrown cause.
                replace(match, signature=EXITED, alternative=0, depth_from_root=None)
                if match.signature == STOPPED_IN_ORDER
                else match
                for match in observation.matches
            )
            told[index] = Told(tuple(matches), at)
    ends = {process_of(timed[index][0]): told[index].at for index in sorted(told)}
    for index, (observation, _) in enumerate(timed):
        if is_last_output(observation) and not observation.matches:
            end = ends.get(process_of(observation))
            if end is not None:
                # The last output is closest to the reason, so it is the first evidence.
                told[index] = Told((replace(_match(observation), depth_from_root=0),), end)
    return told


def is_last_output(observation: Observation) -> bool:
    """Whether a program printed it to ``.out`` or ``.err`` without a logger."""
    return is_output(observation.event.path) and is_prose(observation)


@dataclass(frozen=True, slots=True)
class _Closing:
    """The first line of the shutdown hooks of a TaskManager that got no request to end."""

    index: int
    at: datetime
    resource_id: str | None


def _unasked_closings(timed: Timed) -> list[_Closing]:
    names: dict[str, str] = {}
    asked: dict[str, datetime] = {}
    closed: dict[str, datetime] = {}
    closings: list[_Closing] = []
    for index, (observation, at) in enumerate(timed):
        if observation.process != "taskmanager":
            continue
        process, lifecycle = process_of(observation), observation.event.lifecycle
        kind = lifecycle.kind if lifecycle is not None else None
        if (name := started_as(observation)) is not None:
            names[process] = name
        if kind == BANNER:
            closed.pop(process, None)
        elif kind == SIGNAL or _is_fatal(observation):
            asked[process] = at
        elif kind == CLOSING and process not in closed:
            closed[process] = at
            if process not in asked or at - asked[process] > EXIT_REASON:
                closings.append(_Closing(index, at, names.get(process)))
    return closings


def _is_fatal(observation: Observation) -> bool:
    event = observation.event
    return event.level in ERROR_AND_ABOVE and (event.logger or "").startswith(_OWN_LOGGERS)


def _noticed(
    observation: Observation, at: datetime, closings: Sequence[_Closing]
) -> _Closing | None:
    """The end to which a line of the JobManager refers."""
    if observation.process == "taskmanager" or observation.occurrences == 0:
        return None
    if _PARTING in (observation.root_cause_message or ""):
        found = _LOCATION.search(observation.event.message[:8192])
        near = [closing for closing in closings if abs(at - closing.at) <= STOPPED_TOGETHER]
        of = [c for c in near if found is not None and c.resource_id == found["id"]]
        is_only = len(near) == 1 and (found is None or near[0].resource_id is None)
        return of[0] if of else near[0] if is_only else None
    lost = lost_id(observation)
    if lost is None:
        return None
    of = [c for c in closings if c.resource_id == lost and c.at <= at + STOPPED_TOGETHER]
    return of[-1] if of and at - of[-1].at <= HEARTBEAT else None


def _match(observation: Observation) -> Match:
    excerpt = observation.event.message.split("\n", 1)[0][:_MAX_EXCERPT_CHARS]
    return Match(EXITED, 0, {}, excerpt)
