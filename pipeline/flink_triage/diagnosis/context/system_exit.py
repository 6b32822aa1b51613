"""Finds processes that ended because user code called ``System.exit``.

The JVM then runs the same shutdown hooks as for a signal, so a TaskManager unregisters from the
JobManager as in an orderly shutdown, and a JobManager shuts the cluster down. However, the log of
the process contains neither a signal nor an error of Flink shortly before. The reason, if any, is
in the output of the user code: the last line of the ``.out`` file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from flink_triage.diagnosis.context.processes import (
    BANNER,
    SHUTTING_DOWN,
    SIGNAL,
    is_kind,
    lost_id,
    process_of,
    started_as,
)
from flink_triage.diagnosis.context.read_from_text import is_prose
from flink_triage.diagnosis.durations import EXIT_REASON, HEARTBEAT, STOPPED_TOGETHER
from flink_triage.diagnosis.moment import Moment, inferred_matches
from flink_triage.logs.inputs.path_names import is_output
from flink_triage.logs.layouts import ERROR_AND_ABOVE
from flink_triage.model import Match, Observation
from flink_triage.signatures import SignaturePack

CLOSING = "process-closing"
# ClusterEntrypoint.closeAsync, which the shutdown hook calls.
_CLOSED_EXTERNALLY = "Cluster entrypoint has been closed externally"
_TERMINAL_STATES = ("FINISHED", "CANCELED", "FAILED", "SUSPENDED")
_LOCATION = re.compile(r" to FAILED on (?P<id>\S{1,300}) @ ")
_OWN_LOGGERS = ("org.apache.flink.", "org.apache.pekko.", "akka.")
_MAX_MESSAGE_CHARS = 8192


def find_exits(moments: Sequence[Moment], pack: SignaturePack) -> dict[int, Moment]:
    """Add matches with ``meaning: system-exit`` to the lines about such an exit.

    The exit of a TaskManager counts only if a line outside the TaskManager logs reports its
    shutdown or its loss, and that of a JobManager only if a job was running. The matches are added
    to the first line of the shutdown hooks. Prose without matches in the output of the process gets
    them as well, and the time of the exit. In the line that reports the exit, they replace matches
    with ``meaning: taskmanager-stopped``. Lines from a cluster shutdown are excluded.
    """
    exited = pack.with_meaning("system-exit")
    if not exited:
        return {}
    stopped = pack.with_meaning("taskmanager-stopped")
    closings = _unasked_closings(moments)
    noticed = {
        index: closing.index
        for index, moment in enumerate(moments)
        if not moment.is_stop and (closing := _noticed(moment, closings)) is not None
    }
    changed = {
        index: moments[index].reinterpreted(inferred_matches(moments[index].observation, exited))
        for index in (*_unasked_shutdowns(moments), *noticed.values())
    }
    for index in noticed:
        before = moments[index].observation.matches
        if any(match.signature in stopped for match in before):
            changed[index] = moments[index].reinterpreted(_replaced(before, stopped, exited))
    ends = {process_of(moments[index].observation): changed[index].at for index in sorted(changed)}
    for index, moment in enumerate(moments):
        observation = moment.observation
        if is_last_output(observation) and not observation.matches:
            end = ends.get(process_of(observation))
            if end is not None:
                # The last output is closest to the reason, so it is the first evidence.
                inferred = inferred_matches(observation, exited)
                matches = tuple(replace(match, depth_from_root=0) for match in inferred)
                changed[index] = moment.reinterpreted(matches, end)
    return changed


def _replaced(
    matches: Sequence[Match], stopped: Sequence[str], exited: Sequence[str]
) -> tuple[Match, ...]:
    """Replace matches of ``stopped`` with matches of ``exited``, which have no depth in a trace."""
    result: list[Match] = []
    for match in matches:
        if match.signature in stopped:
            effect = replace(match, alternative=0, depth_from_root=None)
            result += [replace(effect, signature=signature) for signature in exited]
        else:
            result.append(match)
    return tuple(result)


def is_last_output(observation: Observation) -> bool:
    """Whether the line is prose in a ``.out`` or ``.err`` file, and not a log line."""
    return is_output(observation.event.path) and is_prose(observation)


@dataclass(frozen=True, slots=True)
class _Closing:
    """The first shutdown hook line of a TaskManager.

    The TaskManager logged neither a signal nor an error of Flink within ``EXIT_REASON`` before it.
    """

    index: int
    at: datetime
    resource_id: str | None


def _unasked_closings(moments: Sequence[Moment]) -> list[_Closing]:
    names: dict[str, str] = {}
    asked: dict[str, datetime] = {}
    closed: dict[str, datetime] = {}
    closings: list[_Closing] = []
    for index, moment in enumerate(moments):
        observation, at = moment.observation, moment.at
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
            if not _is_explained(asked.get(process), at):
                closings.append(_Closing(index, at, names.get(process)))
    return closings


def _unasked_shutdowns(moments: Sequence[Moment]) -> list[int]:
    """Shutdowns of JobManagers with a running job, without a signal or an error of Flink before."""
    asked: dict[str, datetime] = {}
    running: dict[str, set[str | None]] = {}
    shutdowns: list[int] = []
    for index, moment in enumerate(moments):
        observation, at = moment.observation, moment.at
        if observation.process == "taskmanager":
            continue
        process, lifecycle = process_of(observation), observation.event.lifecycle
        if is_kind(observation, SIGNAL) or _is_fatal(observation):
            asked[process] = at
        elif lifecycle is None:
            continue
        elif lifecycle.kind == BANNER:
            running.pop(process, None)
        elif lifecycle.kind == "job-state" and lifecycle.to_state not in _TERMINAL_STATES:
            running.setdefault(process, set()).add(lifecycle.job_id)
        elif lifecycle.kind in ("job-state", "job-terminal"):
            running.get(process, set()).discard(lifecycle.job_id)
        elif lifecycle.kind == "cluster-shutdown" and running.get(process):
            is_closed = _CLOSED_EXTERNALLY in observation.event.message
            if is_closed and not _is_explained(asked.get(process), at):
                shutdowns.append(index)
    return shutdowns


def _is_explained(asked: datetime | None, at: datetime) -> bool:
    """Whether a signal or an error of Flink at ``asked`` is the reason of an end at ``at``."""
    return asked is not None and at - asked <= EXIT_REASON


def _is_fatal(observation: Observation) -> bool:
    event = observation.event
    return event.level in ERROR_AND_ABOVE and (event.logger or "").startswith(_OWN_LOGGERS)


def _noticed(moment: Moment, closings: Sequence[_Closing]) -> _Closing | None:
    """The shutdown to which a line outside the TaskManager logs refers."""
    observation, at = moment.observation, moment.at
    if observation.process == "taskmanager" or observation.occurrences == 0:
        return None
    if SHUTTING_DOWN in (observation.root_cause_message or ""):
        found = _LOCATION.search(observation.event.message[:_MAX_MESSAGE_CHARS])
        near = [closing for closing in closings if abs(at - closing.at) <= STOPPED_TOGETHER]
        of = [c for c in near if found is not None and c.resource_id == found["id"]]
        is_only = len(near) == 1 and (found is None or near[0].resource_id is None)
        return of[0] if of else near[0] if is_only else None
    lost = lost_id(observation)
    if lost is None:
        return None
    of = [c for c in closings if c.resource_id == lost and c.at <= at + STOPPED_TOGETHER]
    return of[-1] if of and at - of[-1].at <= HEARTBEAT else None
