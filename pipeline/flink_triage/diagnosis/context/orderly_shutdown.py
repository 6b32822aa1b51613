"""Signals to processes in; the effects of a cluster stop, and orderly lost TaskManagers, out.

Stopping a cluster sends SIGTERM to its processes within moments of each other. Tasks then fail,
connections break and threads find their class loader closed. These are effects of the stop and not
failures. Lines before the first signal are not affected.
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

# A signal explains lines up to this long after it.
REACH = STOPPED_TOGETHER + SHUTDOWN
SIGNAL, BANNER, STARTED = "signal", "version", "taskmanager-started"
# Signatures of the pack: the line that reports a signal, and the effect of the signal on a job.
SIGNALLED, STOPPED_IN_ORDER = "taskmanager/shutdown-signal", "taskmanager/shutdown-requested"
# "jobmanager.out" and "jobmanager.log.1" belong to the same process as "jobmanager.log".
_SUFFIX = re.compile(r"\.(?:log|out|err)(?:\.[\w.-]{1,40})?\Z")
# TaskExecutor.onStop: a TaskManager tells the JobManager that it is shutting down.
_PARTING = "The TaskExecutor is shutting down"
_LOST = re.compile(r"TaskManager with id (?P<id>\S{1,300}) (?:is no longer reachable|timed out)")
_MAX_MESSAGE_CHARS = 8192
_MAX_EXCERPT_CHARS = 400

Timed = Sequence[tuple[Observation, datetime]]


@dataclass(frozen=True, slots=True)
class _End:
    """How one process was stopped.

    ``first`` is the earliest signal or shutdown notice of the stop, ``own`` the signal of this
    process, and ``until`` its next banner, at most ``SHUTDOWN`` after ``own``.
    """

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
    """Indices of lines from the first signal on, if the JobManager got a signal too.

    Before its own signal a process may still fail independently, and logs that as an error. Lines
    of a process without a signal, or of one that restarts in the same file, are not part of the
    stop.
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
    """The ends by process; those of one process are in time order."""
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
    """Resource ids of the TaskManagers whose own logs are available."""
    return frozenset(name for observation, _ in timed if (name := started_as(observation)))


def started_as(observation: Observation) -> str | None:
    """The resource id that a TaskManager logs at its start."""
    lifecycle = observation.event.lifecycle
    if lifecycle is None or lifecycle.kind != STARTED or not lifecycle.resource_id:
        return None
    return bare_id(lifecycle.resource_id)


def bare_id(resource_id: str) -> str:
    """A resource id without its metadata: on YARN ``container_1(node:8041)``."""
    return resource_id.partition("(")[0]


def stopped_before_they_were_lost(timed: Timed, stops: set[int]) -> dict[int, tuple[Match]]:
    """Matches for TaskManagers that got a signal and that the JobManager lost without a notice."""
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
            # A pack without the signature of the signal has none of the stop either.
            is_named = any(match.signature == SIGNALLED for match in signal.matches)
            if is_named and at - signalled_at <= HEARTBEAT:
                excerpt = signal.event.message.split("\n", 1)[0][:_MAX_EXCERPT_CHARS]
                told[signals[lost]] = (Match(STOPPED_IN_ORDER, 0, {}, excerpt),)
    return told


def lost_id(observation: Observation) -> str | None:
    """The resource id of the TaskManager that a line reports as lost."""
    if observation.occurrences == 0:
        return None
    for text in (observation.event.message, observation.root_cause_message or ""):
        found = _LOST.search(text[:_MAX_MESSAGE_CHARS])
        if found is not None:
            return bare_id(found["id"])
    return None
