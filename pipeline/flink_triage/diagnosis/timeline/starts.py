"""Finds the starts of processes and jobs in a timeline, and the facts that each start logs.

A start is the banner of a JobManager or TaskManager, or the submission of a job. Starts of one kind
without a running job between them form a generation: a cluster that starts, or that fails to start.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple

import regex as re

from flink_triage.diagnosis.context.processes import BANNER, process_of
from flink_triage.diagnosis.durations import RUNS_ON, STARTUP
from flink_triage.diagnosis.moment import NO_TIME, Moment
from flink_triage.diagnosis.timeline.timeline import DeploymentTimeline
from flink_triage.logs.banner import name_and_value
from flink_triage.logs.routine import COMPLETED
from flink_triage.model import ChangeKind, Observation, Process

# Parts of the names that entry points pass to EnvironmentInformation.logEnvironmentInfo.
_BANNERS: tuple[tuple[str, Process], ...] = (
    ("ClusterEntry", "jobmanager"),
    ("TaskManager", "taskmanager"),
    ("TaskExecutor", "taskmanager"),
    # Up to Flink 1.5
    ("JobManager", "jobmanager"),
)
_TASK = re.compile(r"(?P<task>.*?) ?\(\d+/(?P<parallelism>\d+)\)\Z")
_END = datetime.max.replace(tzinfo=UTC)


class Lane(NamedTuple):
    """Starts that are compared with each other: of one kind of process, or of one job name."""

    process: Process | None
    job: str | None = None


class Fact(NamedTuple):
    """A fact that a start logs; ``name`` distinguishes facts of one kind."""

    what: ChangeKind
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Statement:
    """A log line and the start to which it belongs."""

    start: Moment
    line: Moment


# The first and the last statement of each value, by name and value.
Facts = dict[str, dict[str, tuple[Statement, Statement]]]


@dataclass(slots=True)
class Generation:
    """Consecutive starts between which no job demonstrably ran, in chronological order.

    ``facts`` contains the facts of these starts by kind; if they log no facts of a kind, those of
    the previous generation are used. ``lines`` contains, by kind, the ``id()`` of each moment of
    this generation that provided a fact. ``ran`` contains the lines that show that a job ran: a
    completed checkpoint, or the line at which a job started to run and a line at least ``RUNS_ON``
    later. It is empty if there are no such lines.
    """

    starts: list[Moment] = field(default_factory=list)
    facts: dict[ChangeKind, Facts] = field(default_factory=dict)
    lines: dict[ChangeKind, set[int]] = field(default_factory=dict)
    ran: tuple[Moment, ...] = ()

    def start_at(self, at: datetime) -> Moment | None:
        """The last start at or before ``at``."""
        return next((start for start in reversed(self.starts) if start.at <= at), None)

    def values(self, what: ChangeKind, at: datetime, until: datetime) -> dict[str, str]:
        """The latest value of each fact of the kind ``what``, by the name of the fact.

        Only starts at or before ``at`` are considered, with the lines logged at or before
        ``until``.
        """
        found: dict[str, str] = {}
        for name, statements in self.facts.get(what, {}).items():
            in_time = [
                (one.start.at, one.line.at, one.line.observation.event.offset, value)
                for value, ends in statements.items()
                for one in ends
                if one.start.at <= at and one.line.at <= until
            ]
            if in_time:
                found[name] = max(in_time)[-1]
        return found

    def state(self, fact: Fact, start: Moment, line: Moment) -> None:
        self.lines.setdefault(fact.what, set()).add(id(line))
        statement = Statement(start, line)
        statements = self.facts.setdefault(fact.what, {}).setdefault(fact.name, {})
        first, _ = statements.get(fact.value, (statement, statement))
        statements[fact.value] = first, statement

    def repeats(self, what: ChangeKind, before: Generation | None) -> bool:
        """Whether all starts state the same facts as the last start of generation ``before``."""
        if before is None:
            return False
        values = before.values(what, _END, _END)
        times = {one.start.at for one in _statements(self.facts.get(what, {}))}
        return all(self.values(what, at, _END) == values for at in times)


@dataclass(frozen=True, slots=True)
class Starts:
    """The generations of each lane, in time order.

    ``running`` contains the lines at which jobs started to run, if they have been running for less
    than ``RUNS_ON``. ``completed`` contains the times at which the jobs of each process completed
    checkpoints. If several kinds of processes write to a log, the starts of processes in this log
    are ignored, and ``mixed`` contains its first banner of each kind.
    """

    lanes: dict[Lane, list[Generation]]
    running: tuple[Moment, ...]
    completed: dict[str, list[datetime]]
    mixed: tuple[Moment, ...]
    job_names: Mapping[str, str]

    def lane_of(self, job_id: str) -> Lane:
        return Lane(None, self.job_names.get(job_id, job_id))

    def is_shared(self, at: datetime, until: datetime) -> bool:
        """Whether several clusters run concurrently.

        If so, a start does not necessarily replace the previous one. Clusters run concurrently if,
        after the last start of a JobManager up to ``at``, a job of a different JobManager completes
        a checkpoint up to ``until``.
        """
        generations = reversed(self.lanes.get(Lane("jobmanager"), []))
        start = next(filter(None, (generation.start_at(at) for generation in generations)), None)
        return start is not None and any(
            bisect_right(times, start.at) < bisect_right(times, until)
            for process, times in self.completed.items()
            if process != process_of(start.observation)
        )

    def before(self, lane: Lane, at: datetime) -> tuple[Generation, Generation] | None:
        """The previous generation, whose last start is healthy, and the one at ``at``.

        ``None`` if there is no previous generation.
        """
        generations = self.lanes.get(lane, [])
        index = _index_at(generations, at)
        return (generations[index - 1], generations[index]) if index > 0 else None

    def needed_from(self, since: datetime, chosen: Set[int]) -> Iterator[Moment]:
        """The moments that are required to compare starts at any time from ``since`` on.

        ``chosen`` contains the ``id()`` of moments that are carried over anyway. Facts that a
        generation repeats are omitted, unless some of them are chosen: the others would then appear
        to be removed.
        """
        yield from (*self.running, *self.mixed)
        for generations in self.lanes.values():
            before: Generation | None = None
            for generation in generations[max(_index_at(generations, since) - 1, 0) :]:
                last = generation.start_at(since) or generation.starts[0]
                yield from (generation.starts[0], last, generation.starts[-1], *generation.ran)
                for what, facts in generation.facts.items():
                    is_chosen = not chosen.isdisjoint(generation.lines.get(what, ()))
                    if is_chosen or not generation.repeats(what, before):
                        for statement in _statements(facts):
                            yield from (statement.start, statement.line)
                before = generation


def _statements(facts: Facts) -> Iterator[Statement]:
    for statements in facts.values():
        for ends in statements.values():
            yield from ends


def _index_at(generations: list[Generation], at: datetime) -> int:
    """The index of the last generation that started at or before ``at``; -1 if none did."""
    return sum(generation.starts[0].at <= at for generation in generations) - 1


def find_starts(timeline: DeploymentTimeline) -> Starts:
    """All starts of a deployment. Files without timestamps are ignored."""
    finder = _Finder(timeline)
    for moment in timeline.moments:
        if moment.at != NO_TIME:
            finder.add(moment)
    for generations in finder.lanes.values():
        for before, generation in pairwise(generations):
            generation.facts = before.facts | generation.facts
    return Starts(
        finder.lanes,
        tuple(begun for runs in finder.runs.values() for begun in runs.values()),
        finder.completed,
        tuple(banner for banners in finder.mixed.values() for banner in banners),
        timeline.job_names,
    )


class _Finder:
    def __init__(self, timeline: DeploymentTimeline) -> None:
        self.lanes: dict[Lane, list[Generation]] = {}
        # Runs that are not yet long enough to count, by process and job, oldest first.
        self.runs: dict[str, dict[str | None, Moment]] = {}
        self.completed: dict[str, list[datetime]] = {}
        self._job_names = timeline.job_names
        self.mixed = _of_several_processes(timeline)
        self._started: dict[str, tuple[Generation, Moment]] = {}
        self._submitted: dict[str, tuple[Generation, Moment]] = {}

    def add(self, moment: Moment) -> None:
        observation = moment.observation
        lifecycle = observation.event.lifecycle
        kind = lifecycle.kind if lifecycle is not None else None
        process = process_of(observation)
        if kind == BANNER:
            self._start_process(moment, process)
        else:
            self._note_runs(moment, process, kind)
        if kind == "job-submitted" and moment.job_id is not None:
            name = self._name_of(moment.job_id)
            self._submitted[name] = self._begin(Lane(None, name), moment), moment
        self._note_facts(moment, process)

    def _start_process(self, moment: Moment, process: str) -> None:
        self.runs.pop(process, None)
        self._started.pop(process, None)
        kind = _process_started(moment.observation)
        if kind is not None and process not in self.mixed:
            self._started[process] = self._begin(Lane(kind), moment), moment

    def _begin(self, lane: Lane, moment: Moment) -> Generation:
        generations = self.lanes.setdefault(lane, [])
        if not generations or generations[-1].ran:
            generations.append(Generation())
        generations[-1].starts.append(moment)
        return generations[-1]

    def _note_runs(self, moment: Moment, process: str, kind: str | None) -> None:
        if kind == COMPLETED:
            self.completed.setdefault(process, []).append(moment.at)
            self._note_health(moment.job_id, moment)
            return
        runs = self.runs.get(process, {})
        while runs:
            job_id, begun = next(iter(runs.items()))
            if moment.at - begun.at < RUNS_ON:
                break
            del runs[job_id]
            self._note_health(job_id, begun, moment)
        lifecycle = moment.observation.event.lifecycle
        to_state = lifecycle.to_state if lifecycle is not None else None
        if kind == "task-running" or (kind == "job-state" and to_state == "RUNNING"):
            self.runs.setdefault(process, {}).setdefault(moment.job_id, moment)
        elif kind in ("job-state", "job-terminal", "task-failed"):
            runs.pop(moment.job_id, None)

    def _note_health(self, job_id: str | None, *lines: Moment) -> None:
        lanes = [Lane("jobmanager"), Lane("taskmanager")]
        if job_id is not None:
            lanes.append(Lane(None, self._name_of(job_id)))
        for lane in lanes:
            generations = self.lanes.get(lane)
            if generations and not generations[-1].ran:
                generations[-1].ran = lines

    def _note_facts(self, moment: Moment, process: str) -> None:
        started = self._started.get(process)
        if started is not None and moment.at - started[1].at <= STARTUP:
            fact = _stated_by_process(moment.observation)
            if fact is not None:
                started[0].state(fact, started[1], moment)
        submitted = self._submitted.get(self._name_of(moment.job_id)) if moment.job_id else None
        if submitted is not None:
            parallelism = _parallelism(moment.observation)
            if parallelism is not None:
                submitted[0].state(parallelism, submitted[1], moment)

    def _name_of(self, job_id: str) -> str:
        return self._job_names.get(job_id, job_id)


def _of_several_processes(timeline: DeploymentTimeline) -> dict[str, list[Moment]]:
    """Logs that several kinds of processes write, each with the first banner of each kind."""
    banners: dict[str, dict[Process | None, Moment]] = {}
    for moment in timeline.moments:
        lifecycle = moment.observation.event.lifecycle
        if lifecycle is not None and lifecycle.kind == BANNER:
            of_process = banners.setdefault(process_of(moment.observation), {})
            of_process.setdefault(_process_started(moment.observation), moment)
    return {process: list(of.values()) for process, of in banners.items() if len(of) > 1}


def _process_started(observation: Observation) -> Process | None:
    lifecycle = observation.event.lifecycle
    words = (lifecycle.value or "") if lifecycle is not None else ""
    return next((process for name, process in _BANNERS if name in words), None)


def _stated_by_process(observation: Observation) -> Fact | None:
    """The fact about the process in a banner line or in the configuration below the banner."""
    lifecycle = observation.event.lifecycle
    if lifecycle is None:
        return None
    value = lifecycle.value or ""
    if lifecycle.kind == BANNER:
        return Fact("flink-version", "Flink", lifecycle.key or "")
    if lifecycle.kind == "java-version":
        return Fact("java-version", "Java", value)
    if lifecycle.kind == "config" and lifecycle.key:
        return Fact("configuration", lifecycle.key, value)
    if lifecycle.kind == "classpath":
        return Fact("jar", "", value)
    if lifecycle.kind == "jvm-option":
        return Fact("jvm-option", *name_and_value(value))
    return None


def _parallelism(observation: Observation) -> Fact | None:
    lifecycle = observation.event.lifecycle
    if lifecycle is not None and lifecycle.kind == "task-running":
        found = _TASK.match(lifecycle.value or "")
        return Fact("parallelism", found["task"], found["parallelism"]) if found else None
    if observation.task is None or observation.parallelism is None:
        return None
    return Fact("parallelism", observation.task, str(observation.parallelism))
