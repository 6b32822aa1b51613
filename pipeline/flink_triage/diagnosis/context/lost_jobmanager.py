"""Infers that a JobManager was killed from the startup banner of its successor.

A process that is killed (by SIGKILL, the kernel, or the loss of its node) does not log its end. The
only sign is the next startup banner, in its own log or in another one, although a job was running.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from flink_triage.diagnosis.context.failures import ENDING_KINDS
from flink_triage.diagnosis.context.processes import BANNER, SIGNAL, process_of
from flink_triage.diagnosis.durations import MASTER_SOUGHT, RAN_BEFORE_KILL
from flink_triage.diagnosis.moment import Moment, inferred_matches
from flink_triage.logs.routine import COMPLETED
from flink_triage.model import Observation
from flink_triage.signatures import SignaturePack

_Process = tuple[str, str | None]


def find_lost_jobmanagers(moments: Sequence[Moment], pack: SignaturePack) -> dict[int, Moment]:
    """Add matches with ``meaning: jobmanager-lost`` to banners, and remove them elsewhere.

    A banner matches if the previous JobManager ended while a job was running. Lines of processes
    that look for a JobManager keep their matches only near such a banner, in prose, or if the
    inputs contain no JobManager log and the process looks for longer than ``MASTER_SOUGHT``.
    """
    lost = pack.with_meaning("jobmanager-lost")
    if not lost:
        return {}
    banners = _banners_after_loss(moments)
    times = [moments[index].at for index in banners]
    changed = {
        index: moments[index].reinterpreted(inferred_matches(moments[index].observation, lost))
        for index in banners
    }
    seeking = [
        index
        for index, moment in enumerate(moments)
        if not moment.is_text and any(m.signature in lost for m in moment.observation.matches)
    ]
    left = _left_alone(moments, seeking)
    for index in seeking:
        moment = moments[index]
        is_near = any(abs(moment.at - start) <= MASTER_SOUGHT for start in times)
        if not is_near and moment.observation.event.path not in left:
            matches = moment.observation.matches
            others = tuple(match for match in matches if match.signature not in lost)
            changed[index] = moment.reinterpreted(others)
    return changed


def _left_alone(moments: Sequence[Moment], seeking: Sequence[int]) -> set[str]:
    """Logs whose process looked for a JobManager longer than ``MASTER_SOUGHT``.

    Empty if the inputs contain a JobManager log, which itself shows whether the JobManager was
    lost.
    """
    if any(moment.observation.process == "jobmanager" for moment in moments):
        return set()
    since: dict[str, datetime] = {}
    found: set[str] = set()
    for index in seeking:
        moment = moments[index]
        path = moment.observation.event.path
        if moment.until - since.setdefault(path, moment.at) > MASTER_SOUGHT:
            found.add(path)
    return found


def _banners_after_loss(moments: Sequence[Moment]) -> list[int]:
    """Indices of the banners of JobManagers whose predecessor ended while a job was running.

    A JobManager that logs after the banner of a second one is alive; the second is a standby.
    """
    logged = [
        (index, moment.observation, moment.at)
        for index, moment in enumerate(moments)
        if moment.observation.process == "jobmanager" and moment.observation.occurrences
    ]
    last_line = {_key(observation): at for _, observation, at in logged}
    # The last time at which each job was observed running, by process.
    running: dict[_Process, dict[str, datetime]] = {}
    found: list[int] = []
    for index, observation, at in logged:
        lifecycle, process = observation.event.lifecycle, _key(observation)
        if lifecycle is None:
            continue
        jobs = running.setdefault(process, {})
        job = lifecycle.job_id
        if lifecycle.kind == BANNER:
            gone = [p for p in running if p == process or last_line[p] < at]
            seen = [ran_at for p in gone for ran_at in running[p].values()]
            if any(at - ran_at <= RAN_BEFORE_KILL for ran_at in seen):
                found.append(index)
            for p in gone:
                running[p].clear()
        elif lifecycle.kind == SIGNAL or lifecycle.kind in ENDING_KINDS:
            jobs.clear()
        elif job is not None and (lifecycle.kind == COMPLETED or lifecycle.to_state == "RUNNING"):
            jobs[job] = at
        elif job is not None and lifecycle.kind in ("job-state", "job-terminal"):
            jobs.pop(job, None)
    return found


def _key(observation: Observation) -> _Process:
    return process_of(observation), observation.host
