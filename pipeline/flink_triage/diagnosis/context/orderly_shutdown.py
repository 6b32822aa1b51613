"""Signals that processes received in; out, what is only how a cluster was stopped, and which lost
TaskManagers had been stopped in order.

Whoever stops a cluster sends SIGTERM to its processes within moments of each other.  Tasks fail
then, connections break and threads find their class loader closed: that is the stop, and not a
failure.  What was said before the first signal stands.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

import regex as re

from flink_triage.diagnosis.durations import HEARTBEAT, SHUTDOWN, STOPPED_TOGETHER
from flink_triage.logs.layouts import ERROR_AND_ABOVE
from flink_triage.model import Match, Observation

# So far back a signal may lie that tells of a line.
REACH = STOPPED_TOGETHER + SHUTDOWN
SIGNAL, BANNER, STARTED = "signal", "version", "taskmanager-started"
# Signatures of the pack: the line of a signal, and what it did to a job.
SIGNALLED, STOPPED_IN_ORDER = "taskmanager/shutdown-signal", "taskmanager/shutdown-requested"
# "jobmanager.out" and "jobmanager.log.1" are of the process that "jobmanager.log" is of.
_SUFFIX = re.compile(r"\.(?:log|out|err)(?:\.[\w.-]{1,40})?\Z")
# TaskExecutor.onStop: so the JobManager hears of the signal of a TaskManager.
_PARTING = "The TaskExecutor is shutting down"
_LOST = re.compile(r"TaskManager with id (?P<id>\S{1,300}) (?:is no longer reachable|timed out)")
_MAX_MESSAGE_CHARS = 8192
_MAX_EXCERPT_CHARS = 400

Timed = Sequence[tuple[Observation, datetime]]


@dataclass(frozen=True, slots=True)
class _End:
    """When the first process of a cluster was told to stop, where this one was, its last word."""

    first: datetime
    own: datetime
    path: str
    offset: int
    until: datetime

    def is_after_own(self, observation: Observation, at: datetime) -> bool:
        event = observation.event
        return at > self.own or (
            at == self.own and (event.path != self.path or event.offset > self.offset)
        )


def of_stop(timed: Timed) -> set[int]:
    """Indices of what processes said from the first signal on, where the JobManager had one too.

    Before its own signal a process may still fail of itself, and says so as an error.  A process
    without a signal, and one that starts again in the same file, speaks of something else.
    """
    stopped: set[int] = set()
    ends = _ends(timed)
    if not ends:
        return stopped
    for index, (observation, at) in enumerate(timed):
        of_process = ends.get(process_of(observation), [])
        position = bisect_right(of_process, at, key=lambda end: end.first)
        if not position or at > of_process[position - 1].until:
            continue
        is_error = observation.event.level in ERROR_AND_ABOVE
        if not is_error or of_process[position - 1].is_after_own(observation, at):
            stopped.add(index)
    return stopped


def _ends(timed: Timed) -> dict[str, list[_End]]:
    """By process; those of one lie in the order of time."""
    signals = [(o, at) for o, at in timed if _is_kind(o, SIGNAL) and o.event.logged_at]
    if not signals:
        return {}
    partings = [at for o, at in timed if _PARTING in (o.root_cause_message or "")]
    banners: dict[str, list[datetime]] = {}
    for observation, at in timed:
        if _is_kind(observation, BANNER):
            banners.setdefault(process_of(observation), []).append(at)
    ends: dict[str, list[_End]] = {}
    last: datetime | None = None
    for own, stop in signals:
        if own.process != "jobmanager" or (last is not None and stop - last <= STOPPED_TOGETHER):
            continue
        last = stop
        together = [(o, at) for o, at in signals if abs(at - stop) <= STOPPED_TOGETHER]
        told = [at for at in partings if abs(at - stop) <= STOPPED_TOGETHER]
        first = min(told + [at for _, at in together])
        by_process = {process_of(o): (o.event, at) for o, at in reversed(together)}
        for process, (event, at) in by_process.items():
            again = next((b for b in banners.get(process, ()) if b > at), at + SHUTDOWN)
            until = min(again, at + SHUTDOWN)
            end = _End(first, at, event.path, event.offset, until)
            ends.setdefault(process, []).append(end)
    return ends


def _is_kind(observation: Observation, kind: str) -> bool:
    lifecycle = observation.event.lifecycle
    return lifecycle is not None and lifecycle.kind == kind and observation.occurrences > 0


def process_of(observation: Observation) -> str:
    return process_at(observation.event.path)


@lru_cache(maxsize=4096)
def process_at(path: str) -> str:
    return _SUFFIX.sub("", path)


# --- lost TaskManagers --------------------------------------------------------------------------


def logs_given(timed: Timed) -> frozenset[str]:
    """Resource ids of the TaskManagers whose own logs are there."""
    return frozenset(name for observation, _ in timed if (name := started_as(observation)))


def started_as(observation: Observation) -> str | None:
    """The resource id that a TaskManager gives itself at its start."""
    lifecycle = observation.event.lifecycle
    if lifecycle is None or lifecycle.kind != STARTED or not lifecycle.resource_id:
        return None
    return bare_id(lifecycle.resource_id)


def bare_id(resource_id: str) -> str:
    """A resource id without its metadata: on YARN ``container_1(node:8041)``."""
    return resource_id.partition("(")[0]


def stopped_before_they_were_lost(timed: Timed, stops: set[int]) -> dict[int, tuple[Match]]:
    """What the signals say of TaskManagers that the JobManager lost without being told of it."""
    names: dict[str, str] = {}
    signals: dict[str, int] = {}
    told: dict[int, tuple[Match]] = {}
    for index, (observation, at) in enumerate(timed):
        process = process_of(observation)
        if (name := started_as(observation)) is not None:
            names[process] = name
        elif index in stops:
            continue
        elif _is_kind(observation, SIGNAL) and process in names:
            signals[names[process]] = index
        elif signals and (lost := lost_id(observation)) in signals:
            signal, signalled_at = timed[signals[lost]]
            # A pack that does not name the signal does not name the stop either.
            is_named = any(match.signature == SIGNALLED for match in signal.matches)
            if is_named and at - signalled_at <= HEARTBEAT:
                excerpt = signal.event.message.split("\n", 1)[0][:_MAX_EXCERPT_CHARS]
                told[signals[lost]] = (Match(STOPPED_IN_ORDER, 0, {}, excerpt),)
    return told


def lost_id(observation: Observation) -> str | None:
    """The resource id of the TaskManager that a line says was lost."""
    if observation.occurrences == 0:
        return None
    for text in (observation.event.message, observation.root_cause_message or ""):
        found = _LOST.search(text[:_MAX_MESSAGE_CHARS])
        if found is not None:
            return bare_id(found["id"])
    return None
