"""Reduces a diagnosed timeline to the state that the next diagnosis of the deployment requires.

An episode is closed if new events can no longer change it, unless they are late, which means older
than the newest event by more than ``LATE``. An episode is closed only after more than
``OVER_AFTER`` without a fault. Most events before the oldest open episode are not carried over. The
exceptions include witnesses. A witness is an event that contains a fact about the whole deployment,
such as a job name, an effective option, or the host of a process, or that is next to a carried
event.

A diagnosis of the carried state and the new events has the same result as a diagnosis of all
events, except in the cases that `is_in_time`, `has_same_facts`, and `carry` detect. In these cases,
the deployment requires a full diagnosis. The caller must also request a full diagnosis if the
signatures or options change.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from flink_triage.diagnosis.context.failures import ENDING_KINDS, failure_rank
from flink_triage.diagnosis.context.orderly_shutdown import REACH
from flink_triage.diagnosis.context.processes import BANNER, SIGNAL, process_of, started_as
from flink_triage.diagnosis.context.system_exit import CLOSING, is_last_output
from flink_triage.diagnosis.context.unmet_slot_requests import REGISTERED, REQUESTED
from flink_triage.diagnosis.durations import CLUSTER_LEAD, LATE, LEAD_IN, LEAD_OUT, OVER_AFTER
from flink_triage.diagnosis.episodes.episodes import FAULT_KINDS, Episode, is_fault
from flink_triage.diagnosis.incidents.shown_timeline import SHOWN_KINDS
from flink_triage.diagnosis.incidents.verdicts import (
    is_bare_error,
    is_below_error,
    is_of_flink,
    is_sign_of_health,
    unexplained_error,
)
from flink_triage.diagnosis.moment import NO_TIME, Moment
from flink_triage.diagnosis.timeline.starts import Starts
from flink_triage.diagnosis.timeline.timeline import DeploymentTimeline, graph_of
from flink_triage.logs.routine import COMPLETED, Routine, role_of
from flink_triage.model import Observation
from flink_triage.signatures import SignaturePack
from flink_triage.traces import OMITTED_STACKS

_KEPT_KINDS = (
    FAULT_KINDS
    | SHOWN_KINDS
    | ENDING_KINDS
    | {"job-state", "restart", COMPLETED, REQUESTED, REGISTERED, BANNER, CLOSING}
)


@dataclass(frozen=True, slots=True)
class Carried:
    """State that a diagnosis passes to the next one of its deployment.

    ``observations`` include the witnesses (``occurrences`` 0). New events older than
    ``in_time_from`` could change closed incidents. ``has_closed`` is true if there are closed
    incidents.
    """

    observations: tuple[Observation, ...] = ()
    in_time_from: datetime = NO_TIME
    has_closed: bool = False


def is_in_time(carried: Carried, news: Iterable[Observation]) -> bool:
    times = (observation.event.logged_at for observation in news)
    return all(at is None or at >= carried.in_time_from for at in times)


def has_same_facts(before: DeploymentTimeline, now: DeploymentTimeline) -> bool:
    """Whether new events leave the meaning of earlier events unchanged.

    For example, a second job makes events without a job ambiguous, a changed option changes the
    current value that a remediation shows, and clock skew shifts all events of a file.
    """
    if now.skews or len(now.known_jobs) != len(before.known_jobs) < 2:
        return False
    jobs = (before.known_jobs, before.job_names, now.job_names)
    return (
        all(jobs[1].get(job) == jobs[2].get(job) for job in jobs[0])
        and before.job_of_graph.items() <= now.job_of_graph.items()
        and before.job_of_task.items() <= now.job_of_task.items()
        and before.flink_version == now.flink_version
        and before.effective_config == now.effective_config
        and before.versions == now.versions
        and before.processes == now.processes
        and before.is_foreign == now.is_foreign
        and before.is_excerpt == now.is_excerpt
    )


def split(timeline: DeploymentTimeline, episodes: Sequence[Episode]) -> tuple[datetime, set[int]]:
    """The time from which moments are carried, and the ``id()`` of each open episode.

    All other episodes end before that time, and no new event that is in time can change them.
    """
    start = _in_time_from(timeline) - LEAD_IN if timeline.times else NO_TIME
    settled = _in_time_from(timeline) - OVER_AFTER - CLUSTER_LEAD if timeline.times else NO_TIME
    spans = {id(e): _span(e) for e in episodes}
    open_: set[int] = set()
    for key, (first, last) in sorted(spans.items(), key=lambda item: item[1][1], reverse=True):
        # Sorted by end, latest first: no remaining episode ends after the current one.
        if last >= min(start, settled):
            open_.add(key)
            start = min(start, first - LEAD_IN)
    return start, open_


def carry(
    timeline: DeploymentTimeline,
    starts: Starts,
    episodes: Sequence[Episode],
    pack: SignaturePack,
    start: datetime,
    has_closed: bool,
) -> Carried | None:
    """The state to carry over from ``timeline``; ``episodes`` are the open episodes.

    ``None`` if all events must be read again, because a fault is in a file without timestamps and
    cannot be ordered, or because there is clock skew, which is measured over all events.
    """
    if timeline.skews or any(m.at == NO_TIME for e in episodes for m in e.faults):
        return None
    kept = _kept(timeline, episodes, pack, start)
    ids = {id(moment) for moment in kept}
    witnesses = _witnesses(timeline, starts, kept, start)
    carried = [*kept, *(_witness(moment) for moment in witnesses if id(moment) not in ids)]
    return Carried(
        tuple(_as_read(moment, timeline) for moment in carried),
        _in_time_from(timeline) if timeline.times else NO_TIME,
        has_closed,
    )


def _as_read(moment: Moment, timeline: DeploymentTimeline) -> Observation:
    """The observation with its original matches, if the moment has ``withheld`` ones.

    An observation without a job gets the job of its execution graph, if that is known.
    """
    observation = moment.observation
    if moment.withheld is not None:
        observation = replace(observation, matches=moment.withheld)
    job = timeline.job_of_graph.get(graph_of(observation) or "")
    if job is not None and observation.event.job_id is None:
        observation = replace(observation, event=replace(observation.event, job_id=job))
    return observation


def _in_time_from(timeline: DeploymentTimeline) -> datetime:
    last = timeline.times[-1]
    return last if last == NO_TIME else last - LATE


def _span(episode: Episode) -> tuple[datetime, datetime]:
    times = [moment.at for moment in (*episode.faults, *episode.aftermath)]
    return min(times), max(times)


# --- moments to read again -----------------------------------------------------------------------


def _kept(
    timeline: DeploymentTimeline,
    episodes: Sequence[Episode],
    pack: SignaturePack,
    start: datetime,
) -> list[Moment]:
    """The moments to read again: those that episodes, reports, or context rules use.

    Before ``start``, these are the last completed checkpoint of each job, prose in ``.out`` and
    ``.err`` files, and the signals, banners, and shutdown effects that may still explain lines
    after ``start`` (within ``REACH``).
    """
    kept: list[Moment] = []
    last_well: dict[str | None, Moment] = {}
    for moment in timeline.moments:
        if moment.is_witness:
            continue
        if moment.at < start:
            if is_last_output(moment.observation):
                kept.append(moment)
            elif moment.kind == COMPLETED:
                last_well[moment.job_id] = moment
            elif moment.at >= start - REACH and (moment.is_stop or moment.kind in (SIGNAL, BANNER)):
                kept.append(moment)
        elif moment.is_stop or moment.kind in _KEPT_KINDS or is_fault(moment, pack):
            kept.append(moment)
    return [*last_well.values(), *_without_routine(kept, episodes)]


def _without_routine(moments: Sequence[Moment], episodes: Sequence[Episode]) -> list[Moment]:
    """Keep the first and the last of consecutive completed checkpoints of a job in an episode.

    The first also counts the dropped checkpoints, as in the timeline of the incident. All are kept
    if the timeline of any episode starts or ends in between.
    """
    inside: dict[str | None, list[tuple[datetime, datetime]]] = {}
    bounds: list[datetime] = []
    for episode in episodes:
        first, last = _span(episode)
        bounds += [first - LEAD_IN, last + LEAD_OUT]
        for job in episode.job_ids:
            inside.setdefault(job, []).append((first, last))
    left_out: set[int] = set()
    counted: dict[int, Moment] = {}
    for run in _routine_runs(moments):
        first, last = run[0].at, run[-1].at
        spans = inside.get(run[0].job_id, ())
        if any(a < first and last < b for a, b in spans) and not any(
            first <= bound <= last for bound in bounds
        ):
            left_out |= {id(moment) for moment in run[1:-1]}
            count = sum(moment.observation.occurrences for moment in run[:-1])
            observation = replace(run[0].observation, occurrences=count)
            counted[id(run[0])] = replace(run[0], observation=observation)
    return [counted.get(id(m), m) for m in moments if id(m) not in left_out]


def _routine_runs(moments: Sequence[Moment]) -> Iterator[list[Moment]]:
    """Sequences of three or more completed checkpoints of a job.

    No other event of the job or of the cluster is between them.
    """
    runs: dict[str, list[Moment]] = {}
    for moment in moments:
        if moment.kind == COMPLETED and moment.job_id is not None:
            runs.setdefault(moment.job_id, []).append(moment)
        elif moment.job_id is not None:
            yield from _long(runs.pop(moment.job_id, []))
        else:
            for run in runs.values():
                yield from _long(run)
            runs.clear()
    for run in runs.values():
        yield from _long(run)


def _long(run: list[Moment]) -> Iterator[list[Moment]]:
    if len(run) > 2:
        yield run


# --- witnesses ---------------------------------------------------------------------------------


def _witness(moment: Moment) -> Moment:
    """The moment as a witness, which is not counted as an event.

    Its message and matches are kept only if the next diagnosis requires them.
    """
    observation = moment.observation
    is_quoted = is_bare_error(moment) or is_below_error(moment)
    message = observation.event.message if is_quoted else ""
    event = replace(observation.event, logged_at=moment.time, message=message, continuation=None)
    is_lent = observation.root_cause_type in OMITTED_STACKS
    witness = replace(
        observation,
        event=event,
        occurrences=0,
        last_logged_at=None,
        root_cause_message=observation.root_cause_message if is_quoted else None,
        matches=observation.matches if is_lent else (),
    )
    return replace(moment, observation=witness)


def _witnesses(
    timeline: DeploymentTimeline, starts: Starts, kept: Sequence[Moment], start: datetime
) -> list[Moment]:
    """The moments that become witnesses: for each fact, the first or last line that states it.

    Moments that determine the position or time of the ``kept`` ones are included.
    """
    first: dict[Hashable, Moment] = {}
    last: dict[Hashable, Moment] = {}
    for moment in timeline.moments:
        for key in _first_facts(moment):
            first.setdefault(key, moment)
        for key in _last_facts(moment.observation):
            last[key] = moment
    chosen = [*first.values(), *last.values(), *_neighbours(timeline, kept)]
    if (error := unexplained_error(timeline)) is not None:
        chosen.append(error)
    timed = [moment for moment in timeline.moments if moment.at != NO_TIME]
    chosen += [*timed[:1], *timed[-1:]]
    ids = {id(moment) for moment in (*kept, *chosen)}
    chosen += starts.needed_from(start, ids)
    return list({id(moment): moment for moment in chosen}.values())


def _first_facts(moment: Moment) -> Iterator[Hashable]:
    observation = moment.observation
    lifecycle = observation.event.lifecycle
    yield "process", observation.process, observation.host
    yield "product", observation.product
    yield "job", observation.event.job_id
    if lifecycle is not None and lifecycle.job_id and lifecycle.job_name:
        yield "name", lifecycle.job_id
    if lifecycle is not None and lifecycle.kind == "version":
        yield "version", process_of(observation)
    if (name := started_as(observation)) is not None:
        yield "taskmanager", name
    if observation.task is not None:
        yield "task", observation.task, moment.job_id
    if (graph := graph_of(observation)) is not None:
        yield "graph", graph
    if (rank := failure_rank(observation)) is not None:
        yield "failure", moment.job_id, rank
    yield "log", moment.is_text, is_of_flink(moment), lifecycle is None


def _last_facts(observation: Observation) -> Iterator[Hashable]:
    lifecycle = observation.event.lifecycle
    if observation.root_cause_type in OMITTED_STACKS and observation.has_frames:
        yield "stack", observation.root_cause_type
    if observation.flink_version is not None:
        yield "jars"
    if is_sign_of_health(observation):
        yield "well"
    if lifecycle is None:
        return
    if lifecycle.kind == "config":
        yield "config", lifecycle.key, observation.process == "jobmanager"
    elif lifecycle.kind == "version":
        yield "version", process_of(observation)
        if observation.process != "taskmanager":
            yield "version"
    elif lifecycle.kind in ("execution-graph", "checkpoint-declined") and lifecycle.job_id:
        yield "graph", graph_of(observation)


def _neighbours(timeline: DeploymentTimeline, kept: Sequence[Moment]) -> Iterator[Moment]:
    """Moments that matter only for their position in the file.

    An event without a timestamp takes the time of the last timed event before it.
    """
    ids = {id(moment) for moment in kept}
    in_file: dict[str, list[Moment]] = {}
    for moment in timeline.moments:
        in_file.setdefault(moment.observation.event.path, []).append(moment)
    for moments in in_file.values():
        moments.sort(key=lambda m: m.observation.event.offset)
        timed: Moment | None = None
        for moment in moments:
            if moment.observation.event.logged_at is not None:
                timed = moment
            elif timed is not None and id(moment) in ids:
                yield timed
        # The next line of the file may have no timestamp.
        if timed is not None and timeline.times[-1] - timed.at <= LATE:
            yield timed
        yield from _separators(moments, ids)


def _separators(moments: Sequence[Moment], ids: Container[int]) -> Iterator[Moment]:
    """One moment between two completed checkpoints of a job and minute, and after its last one.

    Folding drops a checkpoint between two others, unless another event separates them. ``ids``
    contains the ``id()`` of the moments that are kept anyway.
    """
    # The last checkpoint of each job, and the number of moments that were left out before it.
    last: dict[Hashable, tuple[Routine, int]] = {}
    left_out: list[Moment] = []
    for moment in moments:
        role = role_of(moment.observation.event)
        if isinstance(role, Routine) and id(moment) in ids:
            previous, count = last.get(role.job, (None, 0))
            if previous == role and count < len(left_out):
                yield left_out[-1]
            last[role.job] = role, len(left_out)
        elif id(moment) not in ids:
            left_out.append(moment)
    if any(count < len(left_out) for _, count in last.values()):
        yield left_out[-1]
