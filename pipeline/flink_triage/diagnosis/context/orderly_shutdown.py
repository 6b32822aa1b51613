"""Marks the effects of an orderly shutdown of the cluster.

When a cluster is shut down, its processes receive SIGTERM at nearly the same time. Tasks then fail,
connections break, and class loaders are closed while threads use them. These are effects of the
shutdown, not failures. Lines before the first signal or shutdown notice are not affected.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from flink_triage.diagnosis.context.processes import (
    BANNER,
    SHUTTING_DOWN,
    SIGNAL,
    is_kind,
    process_of,
)
from flink_triage.diagnosis.durations import SHUTDOWN, STOPPED_TOGETHER
from flink_triage.diagnosis.moment import Moment
from flink_triage.logs.layouts import ERROR_AND_ABOVE
from flink_triage.model import Observation
from flink_triage.signatures import SignaturePack

# A signal to the JobManager explains lines that follow within this time.
REACH = STOPPED_TOGETHER + SHUTDOWN


@dataclass(frozen=True, slots=True)
class _End:
    """The shutdown of one process.

    ``first`` is the earliest signal or shutdown notice of the cluster, ``own`` is the signal to
    this process, and ``until`` is its next banner, at most ``SHUTDOWN`` after ``own``.
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


def mark_stop(moments: Sequence[Moment], _pack: SignaturePack) -> dict[int, Moment]:
    """Mark the lines of each process from the first signal or shutdown notice of the cluster on.

    The JobManager and the process itself must have received a signal. The marked lines end with the
    next banner of the process, or ``SHUTDOWN`` after its signal. Errors that a process logs before
    its own signal are not marked, because the process may have failed independently.
    """
    ends = _ends(moments)
    if not ends:
        return {}
    stopped: dict[int, Moment] = {}
    for index, moment in enumerate(moments):
        observation, at = moment.observation, moment.at
        of_process = ends.get(process_of(observation), [])
        position = bisect_right(of_process, at, key=lambda end: end.first)
        if not position or at > of_process[position - 1].until:
            continue
        is_error = observation.event.level in ERROR_AND_ABOVE
        if not is_error or of_process[position - 1].is_after_own(observation, at):
            stopped[index] = replace(moment, is_stop=True)
    return stopped


def _ends(moments: Sequence[Moment]) -> dict[str, list[_End]]:
    """The shutdowns of each process, in time order."""
    signals = [
        m for m in moments if is_kind(m.observation, SIGNAL) and m.observation.event.logged_at
    ]
    if not signals:
        return {}
    notices = [m.at for m in moments if SHUTTING_DOWN in (m.observation.root_cause_message or "")]
    banners: dict[str, list[datetime]] = {}
    for moment in moments:
        if is_kind(moment.observation, BANNER):
            banners.setdefault(process_of(moment.observation), []).append(moment.at)
    ends: dict[str, list[_End]] = {}
    last: datetime | None = None
    for own in signals:
        stop = own.at
        if own.observation.process != "jobmanager":
            continue
        if last is not None and stop - last <= STOPPED_TOGETHER:
            continue
        last = stop
        together = [m for m in signals if abs(m.at - stop) <= STOPPED_TOGETHER]
        noticed = [at for at in notices if abs(at - stop) <= STOPPED_TOGETHER]
        first = min(noticed + [m.at for m in together])
        by_process = {process_of(m.observation): m for m in reversed(together)}
        for process, signal in by_process.items():
            event, at = signal.observation.event, signal.at
            again = next((b for b in banners.get(process, ()) if b > at), at + SHUTDOWN)
            until = min(again, at + SHUTDOWN)
            end = _End(first, at, event.path, event.offset, until)
            ends.setdefault(process, []).append(end)
    return ends
