"""Observations of one deployment in; out, in time order and each with its job, what happened."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from flink_triage.diagnosis.context.handled_exceptions import gone_on_from
from flink_triage.diagnosis.context.lost_jobmanager import lost_jobmanagers
from flink_triage.diagnosis.context.neighbouring_lines import (
    unknown_jobs_asked_for,
    with_omitted_stacks,
    with_restarts_told,
    without_overcome,
)
from flink_triage.diagnosis.context.orderly_shutdown import (
    logs_given,
    of_stop,
    process_at,
    process_of,
    stopped_before_they_were_lost,
)
from flink_triage.diagnosis.context.system_exit import exits_told
from flink_triage.diagnosis.context.unmet_slot_requests import not_missed
from flink_triage.diagnosis.durations import ANSWER
from flink_triage.diagnosis.timeline.clock_skew import Skew, find_skews
from flink_triage.diagnosis.timeline.fold import is_thinned
from flink_triage.model import Match, Observation

# Sorts before every real time; stands for "the log states no time at all".
NO_TIME = datetime(2, 1, 1, tzinfo=UTC)

# The kind of a witness of events that lie outside the window that was asked for.
OUTSIDE_WINDOW = "outside-window"
# That of a witness of a log of Flink in which no event is notable.
LOG_READ = "log-read"

Timed = Sequence[tuple[Observation, datetime]]


@dataclass(frozen=True, slots=True)
class Moment:
    """An observation with the time that orders it and the job it belongs to.

    ``at`` is the event's own time or that of the nearest timed event before it in its file, by the
    JobManager's clock where the file's is known to be off; ``NO_TIME`` where a file states none.

    A witness (``occurrences`` is 0) stands for events that an earlier diagnosis is done with: it
    tells what holds for the whole deployment, as a job's name, and is itself nothing that happened.

    ``withheld`` are the matches that were found, where what stands around the observation gives it
    others, or none: what comes later may change that again.

    ``is_stop`` says that the cluster was being stopped in order: it is no fault, whatever it tells.
    ``is_caught`` says that own code logged an exception and went on: it is a fault of no job.
    """

    observation: Observation
    at: datetime
    job_id: str | None
    withheld: tuple[Match, ...] | None = None
    is_stop: bool = False
    is_caught: bool = False

    @property
    def is_witness(self) -> bool:
        return self.observation.occurrences == 0

    @property
    def time(self) -> datetime | None:
        """``at``, or ``None`` where the file states no time."""
        return None if self.at == NO_TIME else self.at

    @property
    def until(self) -> datetime:
        """The time of the last event that it stands for, where it counts more than one."""
        first, last = self.observation.event.logged_at, self.observation.last_logged_at
        return self.at if first is None or last is None else self.at + (last - first)

    @property
    def kind(self) -> str | None:
        lifecycle = self.observation.event.lifecycle
        return lifecycle.kind if lifecycle is not None and not self.is_witness else None

    @property
    def to_state(self) -> str | None:
        lifecycle = self.observation.event.lifecycle
        return lifecycle.to_state if lifecycle is not None and not self.is_witness else None


@dataclass(frozen=True, slots=True)
class DeploymentTimeline:
    """All moments of one deployment, in time order, and what holds for all of them.

    ``times`` are those of ``moments``; ``is_foreign`` says that these are logs of another product.
    ``taskmanagers`` are the resource ids of those whose own logs are there.  ``skews`` are the
    clocks that were found to be off; ``hosts`` those that run TaskManagers, with the time of their
    first moment.  ``events`` is the number of those that moments stand for, where they were more
    than are read one by one.  ``versions`` and ``configs`` are there where clusters of several
    versions share the deployment: of each process its version, and of each version the options.
    ``known_jobs``, ``job_of_graph`` and ``job_of_task`` tell jobs, and of each execution graph and
    task that is named the job, where it has one.
    """

    deployment: str
    moments: tuple[Moment, ...]
    job_names: Mapping[str, str]
    flink_version: str | None
    effective_config: Mapping[str, str]
    processes: frozenset[str]
    times: tuple[datetime, ...]
    is_foreign: bool = False
    skews: tuple[Skew, ...] = ()
    hosts: Mapping[str, datetime] = field(default_factory=dict)
    taskmanagers: frozenset[str] = frozenset()
    events: int | None = None
    known_jobs: frozenset[str] = frozenset()
    job_of_graph: Mapping[str, str | None] = field(default_factory=dict)
    job_of_task: Mapping[str, str | None] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def version_at(self, paths: Iterable[str]) -> str | None:
        """The version of the first process whose log one of ``paths`` is, where it is known."""
        told = (self.versions.get(process_at(path)) for path in paths)
        return next((version for version in told if version is not None), self.flink_version)

    def config_at(self, path: str) -> Mapping[str, str]:
        """The effective options of the cluster that the log of ``path`` is of."""
        version = self.versions.get(process_at(path))
        return self.effective_config if version is None else self.configs.get(version, {})

    def between(self, start: datetime, end: datetime) -> tuple[Moment, ...]:
        """Moments of [start, end)."""
        return self.moments[bisect_left(self.times, start) : bisect_left(self.times, end)]


def build_timeline(
    deployment: str, observations: Iterable[Observation], flink_version: str | None = None
) -> DeploymentTimeline:
    """Order ``observations``, give each its job, and read the version and configuration.

    ``flink_version`` overrides the banner, for logs that lost theirs.
    """
    observed = list(observations)
    skews = {path: skew for path, skew in find_skews(observed).items() if skew.correction}
    in_order = with_restarts_told(_in_time_order(observed, skews))
    timed = with_omitted_stacks(without_overcome(in_order))
    job_names = _job_names(timed)
    job_of_graph = _job_of_graph(timed)
    job_of_task = _job_of_task(timed, job_of_graph)
    known_jobs = sorted({o.event.job_id for o, _ in timed if o.event.job_id} | set(job_names))
    only_job = known_jobs[0] if len(known_jobs) == 1 else None
    versions = {} if flink_version is not None else _versions(timed)
    near = {None} | {versions.get(process_of(o)) for o, _ in timed if o.event.job_id == only_job}
    jobs = [
        _job_of(o, job_of_graph, job_of_task)
        or (only_job if versions.get(process_of(o)) in near else None)
        for o, _ in timed
    ]
    moments = _moments(timed, jobs)
    return DeploymentTimeline(
        deployment=deployment,
        moments=moments,
        job_names=job_names,
        flink_version=flink_version or _flink_version(timed),
        effective_config=_effective_config(timed),
        processes=frozenset(o.process for o, _ in timed if o.process is not None),
        times=tuple(moment.at for moment in moments),
        is_foreign=_is_foreign(timed),
        skews=tuple(skew for _, skew in sorted(skews.items())),
        hosts=_hosts(timed),
        taskmanagers=logs_given(timed),
        events=sum(o.occurrences for o in observed) if any(map(is_thinned, observed)) else None,
        known_jobs=frozenset(known_jobs),
        job_of_graph={g: job_of_graph.get(g) for o, _ in timed if (g := graph_of(o)) is not None},
        job_of_task={t: job_of_task.get(t) for o, _ in timed if (t := o.task) is not None},
        versions=versions,
        configs=_configs(timed, versions),
    )


def _moments(timed: Timed, jobs: Sequence[str | None]) -> tuple[Moment, ...]:
    """Observations with what they mean by what stands around them, in the order of time."""
    stops = of_stop(timed)
    caught = gone_on_from(timed)
    exits = exits_told(timed, stops)
    meant: dict[int, tuple[Match, ...]] = dict.fromkeys(not_missed(timed) | caught, ())
    meant |= dict.fromkeys(unknown_jobs_asked_for(timed), ())
    meant |= stopped_before_they_were_lost(timed, stops)
    meant |= lost_jobmanagers(timed)
    meant |= {index: told.matches for index, told in exits.items()}
    moments = [
        Moment(
            replace(o, matches=meant[index]),
            exits[index].at if index in exits else at,
            job,
            withheld=o.matches,
            is_caught=index in caught,
        )
        if index in meant
        else Moment(o, at, job, is_stop=index in stops)
        for index, ((o, at), job) in enumerate(zip(timed, jobs, strict=True))
    ]
    # The last words of a process state no time, and are given that of its end.
    return tuple(sorted(moments, key=lambda moment: moment.at) if exits else moments)


def _hosts(timed: Timed) -> dict[str, datetime]:
    hosts: dict[str, datetime] = {}
    for observation, at in timed:
        if observation.host and observation.process == "taskmanager":
            hosts.setdefault(observation.host, at)
    return hosts


def _in_time_order(
    observations: list[Observation], skews: Mapping[str, Skew]
) -> list[tuple[Observation, datetime]]:
    by_file: dict[str, list[Observation]] = {}
    for observation in observations:
        by_file.setdefault(observation.event.path, []).append(observation)
    timed: list[tuple[Observation, datetime]] = []
    for path, in_file in by_file.items():
        in_file.sort(key=lambda o: o.event.offset)
        first = next((o.event.logged_at for o in in_file if o.event.logged_at), NO_TIME)
        at = first
        skew = skews.get(path)
        for observation in in_file:
            at = observation.event.logged_at or at
            is_moved = skew is not None and at != NO_TIME
            timed.append((observation, at - skew.correction if skew and is_moved else at))
    timed.sort(key=lambda pair: (pair[1], pair[0].event.path, pair[0].event.offset))
    return timed


def _job_names(timed: Timed) -> dict[str, str]:
    names: dict[str, str] = {}
    for observation, _ in timed:
        lifecycle = observation.event.lifecycle
        if lifecycle is not None and lifecycle.job_id and lifecycle.job_name:
            names.setdefault(lifecycle.job_id, lifecycle.job_name)
    return names


def _job_of_graph(timed: Timed) -> dict[str, str]:
    jobs = _job_that_failed_with(timed)
    for observation, _ in timed:
        lifecycle = observation.event.lifecycle
        if lifecycle is None or not lifecycle.job_id or not lifecycle.key:
            continue
        if lifecycle.kind in ("execution-graph", "checkpoint-declined"):
            jobs[lifecycle.key.split("_", 1)[0]] = lifecycle.job_id
    return jobs


def _job_that_failed_with(timed: Timed) -> dict[str, str]:
    """Execution attempts whose failure their job answers on one of the next lines of the file.

    Up to 1.15 the id of an attempt names no job.
    """
    jobs: dict[str, str] = {}
    failed: dict[str, list[tuple[str, datetime]]] = {}
    for observation, at in timed:
        lifecycle, path = observation.event.lifecycle, observation.event.path
        if lifecycle is None:
            continue
        if lifecycle.kind == "task-failed" and lifecycle.key and not lifecycle.job_id:
            failed.setdefault(path, []).append((lifecycle.key.split("_", 1)[0], at))
        elif lifecycle.kind == "job-state" and lifecycle.to_state in ("RESTARTING", "FAILING"):
            tasks = failed.pop(path, [])
            if lifecycle.job_id is not None:
                jobs |= {key: lifecycle.job_id for key, since in tasks if at - since <= ANSWER}
    return jobs


def _job_of_task(timed: Timed, job_of_graph: Mapping[str, str]) -> dict[str, str]:
    """Task names that belong to one job only."""
    jobs: dict[str, set[str]] = {}
    for observation, _ in timed:
        job = _job_of(observation, job_of_graph, {})
        if job is not None and observation.task is not None:
            jobs.setdefault(observation.task, set()).add(job)
    return {task: next(iter(of)) for task, of in jobs.items() if len(of) == 1}


def _job_of(
    observation: Observation, job_of_graph: Mapping[str, str], job_of_task: Mapping[str, str]
) -> str | None:
    if observation.event.job_id is not None:
        return observation.event.job_id
    graph = graph_of(observation)
    job = job_of_graph.get(graph) if graph is not None else None
    if job is not None:
        return job
    return job_of_task.get(observation.task) if observation.task is not None else None


def graph_of(observation: Observation) -> str | None:
    """The execution graph of the execution attempt id that a line names."""
    lifecycle = observation.event.lifecycle
    if lifecycle is None or lifecycle.kind == "config" or not lifecycle.key:
        return None
    return lifecycle.key.split("_", 1)[0]


def _is_foreign(timed: Timed) -> bool:
    """Whether the logs are those of another product: nothing speaks of Flink, something of it."""
    products = {o.product for o, _ in timed}
    return "other" in products and "flink" not in products


def _flink_version(timed: Timed) -> str | None:
    """The version that the JobManager's banner states last, or any other process'.

    Without a banner it is the one that the jars in the last file's stack traces state.
    """
    version = told = None
    for observation, _ in timed:
        told = observation.flink_version or told
        lifecycle = observation.event.lifecycle
        if lifecycle is None or lifecycle.kind != "version":
            continue
        if version is None or observation.process != "taskmanager":
            version = lifecycle.key
    return version or told


def _configs(timed: Timed, versions: Mapping[str, str]) -> dict[str, dict[str, str]]:
    return {
        version: _effective_config(
            [(o, at) for o, at in timed if versions.get(process_of(o)) == version]
        )
        for version in set(versions.values())
    }


def _versions(timed: Timed) -> dict[str, str]:
    """Of each process the version in its last banner, where these are several."""
    versions: dict[str, str] = {}
    for observation, _ in timed:
        lifecycle = observation.event.lifecycle
        if lifecycle is not None and lifecycle.kind == "version" and lifecycle.key:
            versions[process_of(observation)] = lifecycle.key
    return versions if len(set(versions.values())) > 1 else {}


def _effective_config(timed: Timed) -> dict[str, str]:
    """Options as printed at start; the JobManager's word counts more than a TaskManager's."""
    config: dict[str, str] = {}
    for wanted in (False, True):
        for observation, _ in timed:
            lifecycle = observation.event.lifecycle
            if lifecycle is None or lifecycle.kind != "config" or not lifecycle.key:
                continue
            if (observation.process == "jobmanager") is wanted:
                config[lifecycle.key] = lifecycle.value or ""
    return config
