"""JobManager startup lines in, those whose predecessor ended without a logged reason out.

A killed process (SIGKILL, the kernel, a lost node) logs nothing about its end. Its log, or that of
its successor, continues with a startup banner while a job was still running.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from flink_triage.diagnosis.context.failures import ENDING_KINDS
from flink_triage.diagnosis.context.orderly_shutdown import BANNER, SIGNAL, process_of
from flink_triage.diagnosis.durations import MASTER_SOUGHT, RAN_BEFORE_KILL
from flink_triage.logs.routine import COMPLETED
from flink_triage.model import Match, Observation

# The pack's signature for a lost JobManager.
LOST = "ha/jobmanager-lost"
_MAX_EXCERPT_CHARS = 400

_Process = tuple[str, str | None]


def lost_jobmanagers(timed: Sequence[tuple[Observation, datetime]]) -> dict[int, tuple[Match, ...]]:
    """Matches for a lost JobManager, by line index.

    A banner matches if the previous JobManager ended while a job was running. Lines of TaskManagers
    that look for a JobManager match only near such a banner.
    """
    again = _started_again(timed)
    times = [timed[index][1] for index in again]
    meant = dict(again)
    for index, (observation, at) in enumerate(timed):
        others = tuple(match for match in observation.matches if match.signature != LOST)
        is_sought = len(others) < len(observation.matches)
        if is_sought and not any(abs(at - start) <= MASTER_SOUGHT for start in times):
            meant[index] = others
    return meant


def _started_again(
    timed: Sequence[tuple[Observation, datetime]],
) -> dict[int, tuple[Match, ...]]:
    """Banners, by index, of JobManagers whose predecessor ended while a job was running.

    A JobManager that still logs after another's banner is alive; the other one is a standby.
    """
    told = [
        (index, observation, at)
        for index, (observation, at) in enumerate(timed)
        if observation.process == "jobmanager" and observation.occurrences
    ]
    last_word = {_key(observation): at for _, observation, at in told}
    # By process, the last time at which each of its jobs was seen running.
    running: dict[_Process, dict[str, datetime]] = {}
    found: dict[int, tuple[Match, ...]] = {}
    for index, observation, at in told:
        lifecycle, process = observation.event.lifecycle, _key(observation)
        if lifecycle is None:
            continue
        jobs = running.setdefault(process, {})
        job = lifecycle.job_id
        if lifecycle.kind == BANNER:
            gone = [p for p in running if p == process or last_word[p] < at]
            seen = [ran_at for p in gone for ran_at in running[p].values()]
            if any(at - ran_at <= RAN_BEFORE_KILL for ran_at in seen):
                excerpt = observation.event.message.split("\n", 1)[0][:_MAX_EXCERPT_CHARS]
                found[index] = (Match(LOST, 0, {}, excerpt),)
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
