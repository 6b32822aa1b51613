"""Estimates the clock skew of TaskManagers from related lines in the log of the JobManager.

A TaskManager logs the failure of a task before the JobManager does, and after the JobManager
reported the job as RUNNING. It logs a line about a checkpoint after the previous checkpoint
completed, because Flink takes one checkpoint at a time by default. Each pair of lines gives a lower
or an upper bound on the clock difference.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from flink_triage.diagnosis.durations import CLOCK_TOLERANCE
from flink_triage.logs.text.redact import redact_path
from flink_triage.model import Observation

_ZERO = timedelta()
_CHECKPOINT = re.compile(r"\bcheckpoint (\d{1,12})\b", re.IGNORECASE)
_MAX_TEXT_CHARS = 4096


@dataclass(frozen=True, slots=True)
class Skew:
    """The clock of a TaskManager's file relative to the JobManager's; negative if it lags.

    ``at_least`` and ``at_most`` are the bounds from ``pairs`` pairs of lines, or ``None``.
    """

    path: str
    host: str | None
    at_least: timedelta | None
    at_most: timedelta | None
    pairs: int

    @property
    def correction(self) -> timedelta:
        """The time to subtract from the file's times: zero unless the clocks provably differ.

        The lower bound is the better estimate, because a JobManager logs a failure immediately.
        """
        if self.at_least is not None and self.at_least > CLOCK_TOLERANCE:
            return self.at_least
        if self.at_most is not None and self.at_most < -CLOCK_TOLERANCE:
            return self.at_most if self.at_least is None else self.at_least
        return _ZERO

    @property
    def sentence(self) -> str:
        offset = self.correction
        side = "ahead of" if offset > _ZERO else "behind"
        known = [
            f"{b.total_seconds():+.1f} s" for b in (self.at_least, self.at_most) if b is not None
        ]
        path = redact_path(self.path)
        return (
            f"The clock of {self.host or path} is {abs(offset.total_seconds()):.1f} s {side} "
            f"the JobManager's (pairs of log lines: {self.pairs}, bounds: "
            f"{' to '.join(known)}). Events of {path} are ordered by the corrected time."
        )


# The JVM may omit the message of exceptions that it throws often.
_NO_MESSAGE = (None, "", "null")


def _failed_execution(observation: Observation) -> str | None:
    lifecycle = observation.event.lifecycle
    is_failure = lifecycle is not None and lifecycle.kind == "task-failed"
    return lifecycle.key if lifecycle is not None and is_failure else None


def _is_same_failure(one: Observation, other: Observation) -> bool:
    """Whether both lines report the same failure.

    A JobManager that fails a task itself, for example because the TaskManager was lost, logs a
    different exception than the TaskManager does later.
    """
    if one.root_cause_type != other.root_cause_type:
        return False
    messages = (one.root_cause_message, other.root_cause_message)
    return messages[0] == messages[1] or any(message in _NO_MESSAGE for message in messages)


@dataclass(slots=True)
class _Known:
    """The times of lines in the JobManager log that limit the times of TaskManager lines.

    An execution that was reported as failed at two different times maps to ``None``, because its
    lines cannot be paired.
    """

    failed: dict[str, Observation | None] = field(default_factory=dict)
    completed: dict[int, set[datetime]] = field(default_factory=dict)
    jobs: set[str | None] = field(default_factory=set)
    numbers: list[int] = field(default_factory=list)
    running: list[datetime] = field(default_factory=list)


def find_skews(observations: Sequence[Observation]) -> Mapping[str, Skew]:
    """The skew of each TaskManager's file with at least one pair and consistent bounds, by path.

    Empty if there is no JobManager log, or if the JobManagers ran on several hosts, because there
    is then no single clock to compare with.
    """
    managers = {o.host for o in observations if o.process == "jobmanager"}
    if len(managers) != 1:
        return {}
    known = _known(observations)
    bounds: dict[str, _Bounds] = {}
    for observation in observations:
        at = observation.event.logged_at
        if observation.process == "taskmanager" and at is not None:
            path = observation.event.path
            bound = bounds.setdefault(path, _Bounds(observation.host))
            bound.compare(observation, at, known)
    return {
        path: Skew(path, b.host, b.at_least, b.at_most, b.pairs)
        for path, b in bounds.items()
        if b.pairs and b.is_sound
    }


def _known(observations: Sequence[Observation]) -> _Known:
    known = _Known()
    for observation in observations:
        lifecycle, at = observation.event.lifecycle, observation.event.logged_at
        if observation.process != "jobmanager" or lifecycle is None or at is None:
            continue
        execution = _failed_execution(observation)
        if execution is not None:
            reported = known.failed.setdefault(execution, observation)
            reported_at = reported.event.logged_at if reported is not None else None
            if reported_at is None or abs(at - reported_at) > CLOCK_TOLERANCE:
                known.failed[execution] = None
        elif lifecycle.kind == "checkpoint-completed" and lifecycle.checkpoint_id is not None:
            known.completed.setdefault(lifecycle.checkpoint_id, set()).add(at)
            known.jobs.add(lifecycle.job_id)
        elif lifecycle.kind == "job-state" and lifecycle.to_state == "RUNNING":
            known.running.append(at)
    known.running.sort()
    known.numbers = sorted(known.completed) if len(known.jobs) == 1 else []
    return known


@dataclass(slots=True)
class _Bounds:
    host: str | None
    at_least: timedelta | None = None
    at_most: timedelta | None = None
    pairs: int = 0

    @property
    def is_sound(self) -> bool:
        """Whether the bounds are consistent; otherwise two unrelated lines were paired."""
        if self.at_least is None or self.at_most is None:
            return True
        return self.at_least <= self.at_most + CLOCK_TOLERANCE

    def compare(self, observation: Observation, at: datetime, known: _Known) -> None:
        execution = _failed_execution(observation)
        if execution is not None:
            reported = known.failed.get(execution)
            reported_at = reported.event.logged_at if reported is not None else None
            if reported is None or reported_at is None:
                return
            if not _is_same_failure(observation, reported):
                return
            self.pairs += 1
            ahead = at - reported_at
            self.at_least = ahead if self.at_least is None else max(ahead, self.at_least)
            position = bisect_right(known.running, reported_at)
            if position:
                self._not_before(at, known.running[position - 1])
            return
        found = _CHECKPOINT.search(observation.event.message[:_MAX_TEXT_CHARS])
        before = bisect_left(known.numbers, int(found[1])) if found else 0
        # Ignore numbers that occur in two jobs, or in two runs of one job.
        completed = known.completed[known.numbers[before - 1]] if before else set()
        if len(completed) == 1:
            self.pairs += 1
            self._not_before(at, next(iter(completed)))

    def _not_before(self, at: datetime, cause: datetime) -> None:
        ahead = at - cause
        self.at_most = ahead if self.at_most is None else min(ahead, self.at_most)
