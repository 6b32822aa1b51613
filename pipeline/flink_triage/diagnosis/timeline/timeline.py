"""Orders the observations of one deployment by time and attributes them to jobs if possible."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from flink_triage.diagnosis.context.processes import process_at, process_of, started_as
from flink_triage.diagnosis.context.rules import apply_context
from flink_triage.diagnosis.durations import ANSWER
from flink_triage.diagnosis.moment import NO_TIME, Moment
from flink_triage.diagnosis.timeline.clock_skew import Skew, find_skews
from flink_triage.diagnosis.timeline.fold import is_thinned
from flink_triage.logs.banner import name_and_value
from flink_triage.model import Observation
from flink_triage.settings import MIB
from flink_triage.signatures import SignaturePack

# Kinds of witnesses: an event outside the requested window, and a Flink log that was read.
OUTSIDE_WINDOW = "outside-window"
LOG_READ = "log-read"

_METASPACE = "-XX:MaxMetaspaceSize"
_BYTES = re.compile(r"\d{1,15}")
# 256 MiB, the default of Flink.
_DEFAULT_METASPACE = str(256 * MIB)


@dataclass(frozen=True, slots=True)
class DeploymentTimeline:
    """All moments of one deployment, in time order, and facts about the whole deployment.

    ``times`` are the times of ``moments``. ``is_foreign`` means that the logs belong to a different
    product. ``is_excerpt`` means that no line reports the state of a process, job, or task, so that
    a person probably selected the lines. ``taskmanagers`` are the resource ids of TaskManagers
    whose start was logged. ``skews`` are the clock skews that were corrected. ``hosts`` contains
    the TaskManager hosts, with the time of their first moment. ``known_jobs`` contains the ids of
    all jobs in the logs. ``events`` is the number of events
    that the moments count, or ``None`` if ``max_observations`` was not exceeded. If the processes
    of the deployment have different Flink versions, ``versions`` has the version of each process
    and ``configs`` the options of each version; otherwise they are empty. ``job_of_graph`` and
    ``job_of_task`` map each execution graph and task to its job, or to ``None``.
    """

    deployment: str
    moments: tuple[Moment, ...]
    job_names: Mapping[str, str]
    flink_version: str | None
    effective_config: Mapping[str, str]
    processes: frozenset[str]
    times: tuple[datetime, ...]
    is_foreign: bool = False
    is_excerpt: bool = False
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
        """The first known version of the processes at ``paths``, or else that of the deployment."""
        known = (self.versions.get(process_at(path)) for path in paths)
        return next((version for version in known if version is not None), self.flink_version)

    def config_at(self, path: str) -> Mapping[str, str]:
        """The effective options in the Flink version of the process at ``path``.

        If the version is unknown or the only one, these are the options of the deployment.
        """
        version = self.versions.get(process_at(path))
        return self.effective_config if version is None else self.configs.get(version, {})

    def between(self, start: datetime, end: datetime) -> tuple[Moment, ...]:
        """The moments from ``start`` up to, but not including, ``end``."""
        return self.moments[bisect_left(self.times, start) : bisect_left(self.times, end)]


def build_timeline(
    deployment: str,
    observations: Iterable[Observation],
    pack: SignaturePack,
    flink_version: str | None = None,
    without: frozenset[str] = frozenset(),
) -> DeploymentTimeline:
    """Order ``observations``, apply the context rules, and determine jobs, versions, and options.

    ``flink_version`` overrides the version found in the logs. ``without`` contains the ids of
    context rules to skip.
    """
    observed = list(observations)
    skews = {path: skew for path, skew in find_skews(observed).items() if skew.correction}
    in_order = _in_time_order(observed, skews)
    moments = apply_context(in_order, pack, without)
    ordered = [moment.observation for moment in moments]
    job_names = _job_names(ordered)
    job_of_graph = _job_of_graph(moments)
    job_of_task = _job_of_task(ordered, job_of_graph)
    known_jobs = sorted({o.event.job_id for o in ordered if o.event.job_id} | set(job_names))
    only_job = known_jobs[0] if len(known_jobs) == 1 else None
    versions = {} if flink_version is not None else _versions(ordered)
    near = {None} | {versions.get(process_of(o)) for o in ordered if o.event.job_id == only_job}
    with_jobs = tuple(
        replace(
            moment,
            job_id=_job_of(o, job_of_graph, job_of_task)
            or (only_job if versions.get(process_of(o)) in near else None),
        )
        for moment, o in zip(moments, ordered, strict=True)
    )
    return DeploymentTimeline(
        deployment=deployment,
        moments=with_jobs,
        job_names=job_names,
        flink_version=flink_version or _flink_version(ordered),
        effective_config=_effective_config(ordered),
        processes=frozenset(o.process for o in ordered if o.process is not None),
        times=tuple(moment.at for moment in with_jobs),
        is_foreign=_is_foreign(ordered),
        is_excerpt=all(observation.event.lifecycle is None for observation in ordered),
        skews=tuple(skew for _, skew in sorted(skews.items())),
        hosts=_hosts(in_order),
        taskmanagers=frozenset(name for o in ordered if (name := started_as(o))),
        events=sum(o.occurrences for o in observed) if any(map(is_thinned, observed)) else None,
        known_jobs=frozenset(known_jobs),
        job_of_graph={g: job_of_graph.get(g) for o in ordered if (g := graph_of(o)) is not None},
        job_of_task={t: job_of_task.get(t) for o in ordered if (t := o.task) is not None},
        versions=versions,
        configs=_configs(ordered, versions),
    )


def _in_time_order(observations: list[Observation], skews: Mapping[str, Skew]) -> list[Moment]:
    by_file: dict[str, list[Observation]] = {}
    for observation in observations:
        by_file.setdefault(observation.event.path, []).append(observation)
    moments: list[Moment] = []
    for path, in_file in by_file.items():
        in_file.sort(key=lambda o: o.event.offset)
        first = next((o.event.logged_at for o in in_file if o.event.logged_at), NO_TIME)
        at = first
        skew = skews.get(path)
        for observation in in_file:
            at = observation.event.logged_at or at
            is_moved = skew is not None and at != NO_TIME
            moments.append(Moment(observation, at - skew.correction if skew and is_moved else at))
    moments.sort(key=lambda m: (m.at, m.observation.event.path, m.observation.event.offset))
    return moments


def _hosts(moments: Sequence[Moment]) -> dict[str, datetime]:
    hosts: dict[str, datetime] = {}
    for moment in moments:
        if moment.observation.host and moment.observation.process == "taskmanager":
            hosts.setdefault(moment.observation.host, moment.at)
    return hosts


# --- jobs ----------------------------------------------------------------------------------------


def _job_names(observations: Sequence[Observation]) -> dict[str, str]:
    names: dict[str, str] = {}
    for observation in observations:
        lifecycle = observation.event.lifecycle
        if lifecycle is not None and lifecycle.job_id and lifecycle.job_name:
            names.setdefault(lifecycle.job_id, lifecycle.job_name)
    return names


def _job_of_graph(moments: Sequence[Moment]) -> dict[str, str]:
    jobs = _job_of_failed_attempt(moments)
    for moment in moments:
        lifecycle = moment.observation.event.lifecycle
        if lifecycle is None or not lifecycle.job_id or not lifecycle.key:
            continue
        if lifecycle.kind in ("execution-graph", "checkpoint-declined"):
            jobs[lifecycle.key.split("_", 1)[0]] = lifecycle.job_id
    return jobs


def _job_of_failed_attempt(moments: Sequence[Moment]) -> dict[str, str]:
    """The job of each failed execution attempt, by the first part of the attempt id.

    It is the job whose restart or failure the same file reports next, within ``ANSWER``. Before
    Flink 1.16, an attempt id does not contain the id of its execution graph.
    """
    jobs: dict[str, str] = {}
    failed: dict[str, list[tuple[str, datetime]]] = {}
    for moment in moments:
        event, at = moment.observation.event, moment.at
        lifecycle, path = event.lifecycle, event.path
        if lifecycle is None:
            continue
        if lifecycle.kind == "task-failed" and lifecycle.key and not lifecycle.job_id:
            failed.setdefault(path, []).append((lifecycle.key.split("_", 1)[0], at))
        elif lifecycle.kind == "job-state" and lifecycle.to_state in ("RESTARTING", "FAILING"):
            tasks = failed.pop(path, [])
            if lifecycle.job_id is not None:
                jobs |= {key: lifecycle.job_id for key, since in tasks if at - since <= ANSWER}
    return jobs


def _job_of_task(
    observations: Sequence[Observation], job_of_graph: Mapping[str, str]
) -> dict[str, str]:
    """Task names that belong to only one job."""
    jobs: dict[str, set[str]] = {}
    for observation in observations:
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
    """The execution graph in the execution attempt id of a line."""
    lifecycle = observation.event.lifecycle
    if lifecycle is None or lifecycle.kind == "config" or not lifecycle.key:
        return None
    return lifecycle.key.split("_", 1)[0]


# --- product, version and options ----------------------------------------------------------------


def _is_foreign(observations: Sequence[Observation]) -> bool:
    """Whether the logs belong to a different product: some lines do, and none belongs to Flink."""
    products = {observation.product for observation in observations}
    return "other" in products and "flink" not in products


def _flink_version(observations: Sequence[Observation]) -> str | None:
    """The version in the last banner that is not a TaskManager's, or else in the first banner.

    Without a banner, the version in the head of a file is used, such as that of JARs in a trace.
    """
    version = of_jars = None
    for observation in observations:
        of_jars = observation.flink_version or of_jars
        lifecycle = observation.event.lifecycle
        if lifecycle is None or lifecycle.kind != "version":
            continue
        if version is None or observation.process != "taskmanager":
            version = lifecycle.key
    return version or of_jars


def _configs(
    observations: Sequence[Observation], versions: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    return {
        version: _effective_config(
            [o for o in observations if versions.get(process_of(o)) == version]
        )
        for version in set(versions.values())
    }


def _versions(observations: Sequence[Observation]) -> dict[str, str]:
    """The version in the last banner of each process; empty if all are equal."""
    versions: dict[str, str] = {}
    for observation in observations:
        lifecycle = observation.event.lifecycle
        if lifecycle is not None and lifecycle.kind == "version" and lifecycle.key:
            versions[process_of(observation)] = lifecycle.key
    return versions if len(set(versions.values())) > 1 else {}


def _effective_config(observations: Sequence[Observation]) -> dict[str, str]:
    """Options as last logged at startup; the options of the JobManager take precedence.

    The limit of the metaspace is read from the options of the JVM if it is not logged otherwise.
    """
    config: dict[str, str] = {}
    for wanted in (False, True):
        for observation in observations:
            lifecycle = observation.event.lifecycle
            if lifecycle is None or lifecycle.kind != "config" or not lifecycle.key:
                continue
            if (observation.process == "jobmanager") is wanted:
                config[lifecycle.key] = lifecycle.value or ""
    for observation in observations:
        limit = _metaspace_of(observation)
        if limit is not None and limit != _DEFAULT_METASPACE:
            config.setdefault(f"{observation.process}.memory.jvm-metaspace.size", f"{limit}b")
    return config


def _metaspace_of(observation: Observation) -> str | None:
    """The limit in bytes in a JVM option that a JobManager or TaskManager logged at startup."""
    lifecycle = observation.event.lifecycle
    if lifecycle is None or lifecycle.kind != "jvm-option":
        return None
    if observation.process not in ("jobmanager", "taskmanager"):
        return None
    name, value = name_and_value(lifecycle.value or "")
    return value if name == _METASPACE and _BYTES.fullmatch(value) else None
