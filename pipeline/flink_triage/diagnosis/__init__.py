"""Diagnoses observations: groups them into incidents and ranks the possible causes of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from flink_triage.diagnosis.episodes.episodes import find_episodes
from flink_triage.diagnosis.episodes.unknown_failures import group_unknown, is_unknown
from flink_triage.diagnosis.incidents.build_incident import build_incident
from flink_triage.diagnosis.incidents.evidence import evidence_of
from flink_triage.diagnosis.incidents.verdicts import quiet_incident
from flink_triage.diagnosis.incidents.what_changed import with_changes
from flink_triage.diagnosis.incremental import Carried, carry, has_same_facts, is_in_time, split
from flink_triage.diagnosis.ranking.causality import SERIOUS, Candidate
from flink_triage.diagnosis.ranking.shared_faults import Ranked, rank_episodes
from flink_triage.diagnosis.timeline.fold import fold
from flink_triage.diagnosis.timeline.starts import Starts, find_starts
from flink_triage.diagnosis.timeline.timeline import DeploymentTimeline, build_timeline
from flink_triage.model import Evidence, Incident, Observation, UnknownFailure
from flink_triage.remediation import OptionTable
from flink_triage.settings import DEFAULT_SETTINGS, Settings
from flink_triage.signatures import SignaturePack

_OUTCOME_ORDER = {"failed": 0, "ongoing": 1, "unknown": 2, "recovered": 3}
_SEVERITY_ORDER = {"critical": 0, "major": 1, "minor": 2, "info": 3}
_LAST = datetime(9999, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class DeploymentDiagnosis:
    """The incidents of one deployment, worst first, its unknown faults, and its configuration."""

    incidents: tuple[Incident, ...]
    unknown_faults: tuple[tuple[Observation, Evidence], ...]
    effective_config: dict[str, str]


def diagnose_deployment(
    deployment: str,
    observations: Iterable[Observation],
    pack: SignaturePack,
    options: OptionTable,
    settings: Settings = DEFAULT_SETTINGS,
    flink_version: str | None = None,
) -> DeploymentDiagnosis:
    """Diagnose one deployment; ``flink_version`` overrides the version found in its logs.

    A deployment without incidents gets one whose verdict states the reason, usually ``healthy``.
    """
    timeline = build_timeline(
        deployment, observations, pack, flink_version, settings.rules_left_out
    )
    if timeline.is_foreign:
        return DeploymentDiagnosis((quiet_incident(timeline, settings, pack),), (), {})
    ranked = _ranked(timeline, pack, settings)
    built = _build(timeline, ranked, pack, options, settings)
    return DeploymentDiagnosis(
        incidents=tuple(incident for incident, _ in built)
        or (quiet_incident(timeline, settings, pack),),
        unknown_faults=_unknown_faults(ranked, pack, settings),
        effective_config=dict(timeline.effective_config),
    )


@dataclass(frozen=True, slots=True)
class Findings:
    """Incidents, worst first, and unknown failures, including those that are not incidents."""

    incidents: tuple[Incident, ...] = ()
    unknown: tuple[UnknownFailure, ...] = ()


@dataclass(frozen=True, slots=True)
class IncrementalDiagnosis:
    """The findings of an incremental diagnosis, and the state for the next one.

    Incidents in ``closed`` do not change, unless the deployment is diagnosed in full.
    ``carried`` is ``None`` if the next diagnosis must read all events again.
    """

    closed: Findings
    open: Findings
    carried: Carried | None


def diagnose_incrementally(
    deployment: str,
    carried: Carried | None,
    news: Sequence[Observation],
    pack: SignaturePack,
    options: OptionTable,
    settings: Settings = DEFAULT_SETTINGS,
    flink_version: str | None = None,
) -> IncrementalDiagnosis | None:
    """Diagnose a deployment from its new events, ``news``, and the ``carried`` state.

    Without carried state, ``news`` must contain all events of the deployment. The incidents that
    all runs report as closed, together with the open ones, equal the incidents of a full diagnosis.
    Returns ``None`` if the new events could change a closed incident or the meaning of earlier
    events. The deployment then requires a full diagnosis.
    """
    if carried is not None and not is_in_time(carried, news):
        return None
    known = carried.observations if carried is not None else ()
    observations = fold([*known, *news], settings)
    timeline = build_timeline(
        deployment, observations, pack, flink_version, settings.rules_left_out
    )
    if carried is not None:
        before = build_timeline(deployment, known, pack, flink_version, settings.rules_left_out)
        if known and not has_same_facts(before, timeline):
            return None
    has_closed = carried is not None and carried.has_closed
    starts = find_starts(timeline)
    if timeline.is_foreign:
        start, _ = split(timeline, ())
        found = Findings((quiet_incident(timeline, settings, pack),))
        next_ = carry(timeline, starts, (), pack, start, has_closed)
        return IncrementalDiagnosis(Findings(), found, next_)
    ranked = _ranked(timeline, pack, settings)
    start, open_ = split(timeline, [episode for episode, _ in ranked])
    going = [(episode, of) for episode, of in ranked if id(episode) in open_]
    next_ = carry(timeline, starts, [episode for episode, _ in going], pack, start, has_closed)
    if next_ is None:
        # Without carried state, no incident is final.
        going, over = ranked, []
    else:
        over = [(episode, of) for episode, of in ranked if id(episode) not in open_]
    closed = _findings(timeline, over, pack, options, settings, starts)
    open_now = _findings(timeline, going, pack, options, settings, starts)
    if closed.incidents and next_ is not None:
        next_ = replace(next_, has_closed=True)
    elif not has_closed and not open_now.incidents:
        open_now = replace(open_now, incidents=(quiet_incident(timeline, settings, pack),))
    return IncrementalDiagnosis(closed, open_now, next_)


def _ranked(timeline: DeploymentTimeline, pack: SignaturePack, settings: Settings) -> list[Ranked]:
    episodes = find_episodes(timeline, pack)
    return rank_episodes(episodes, pack, timeline.hosts, settings.rules_left_out)


def _findings(
    timeline: DeploymentTimeline,
    ranked: list[Ranked],
    pack: SignaturePack,
    options: OptionTable,
    settings: Settings,
    starts: Starts,
) -> Findings:
    built = _build(timeline, ranked, pack, options, settings, starts)
    return Findings(
        tuple(incident for incident, _ in built),
        group_unknown(_unknown_faults(ranked, pack, settings), settings.max_evidence, pack),
    )


def _unknown_faults(
    ranked: list[Ranked], pack: SignaturePack, settings: Settings
) -> tuple[tuple[Observation, Evidence], ...]:
    """The faults with a stack trace that no signature explains, each once.

    Several episodes may share a fault.
    """
    faults = {id(moment): moment for episode, _ in ranked for moment in episode.faults}
    return tuple(
        (moment.observation, evidence_of(moment, settings))
        for moment in faults.values()
        if is_unknown(moment.observation, pack)
    )


def diagnose_episodes(
    deployment: str,
    observations: Iterable[Observation],
    pack: SignaturePack,
    options: OptionTable,
    settings: Settings = DEFAULT_SETTINGS,
) -> list[tuple[Incident, list[Candidate]]]:
    """The incidents of episodes, worst first, each with all its candidates in ranked order.

    Empty if no episode is an incident, or if the logs belong to a different product. Unlike
    ``diagnose_deployment``, no incident is added for an unexplained error or a healthy deployment.
    """
    timeline = build_timeline(deployment, observations, pack, without=settings.rules_left_out)
    if timeline.is_foreign:
        return []
    ranked = _ranked(timeline, pack, settings)
    return _build(timeline, ranked, pack, options, settings)


def _build(
    timeline: DeploymentTimeline,
    ranked: list[Ranked],
    pack: SignaturePack,
    options: OptionTable,
    settings: Settings,
    starts: Starts | None = None,
) -> list[tuple[Incident, list[Candidate]]]:
    if not ranked:
        return []
    starts = starts or find_starts(timeline)
    found = []
    for episode, candidates in ranked:
        incident = build_incident(timeline, episode, candidates, pack, options, settings)
        if incident is not None:
            incident = with_changes(incident, episode, candidates, starts, options, settings)
            found.append((incident, candidates))
    return sorted(found, key=lambda pair: worst_first(pair[0]))


def diagnose(
    observations: Iterable[Observation],
    pack: SignaturePack,
    options: OptionTable,
    settings: Settings = DEFAULT_SETTINGS,
    flink_version: str | None = None,
    deployments: Iterable[str] = (),
) -> tuple[tuple[Incident, ...], tuple[UnknownFailure, ...], dict[str, dict[str, str]]]:
    """Diagnose every deployment: return the incidents, unknown failures, and configurations.

    ``deployments`` are reported even if their logs contain no notable event.
    """
    by_deployment: dict[str, list[Observation]] = {name: [] for name in deployments}
    for observation in observations:
        by_deployment.setdefault(observation.deployment, []).append(observation)
    found = {
        name: diagnose_deployment(name, of, pack, options, settings, flink_version)
        for name, of in sorted(by_deployment.items())
    }
    faults = [fault for diagnosed in found.values() for fault in diagnosed.unknown_faults]
    return (
        tuple(incident for diagnosed in found.values() for incident in diagnosed.incidents),
        group_unknown(faults, settings.max_evidence, pack),
        {name: d.effective_config for name, d in found.items() if d.effective_config},
    )


def worst_first(incident: Incident) -> tuple[int, int, int, int, float, str]:
    """Sort key: by seriousness, outcome, verdict, and severity, then the latest first.

    Incidents of severity critical or major, and those without a diagnosis, are serious.
    """
    best = incident.diagnoses[0] if incident.diagnoses else None
    started = incident.started_at or _LAST
    return (
        0 if best is None or best.severity in SERIOUS else 1,
        _OUTCOME_ORDER[incident.outcome],
        0 if incident.verdict == "diagnosed" else 1,
        _SEVERITY_ORDER[best.severity] if best is not None else 1,
        -started.timestamp() if started != _LAST else 0.0,
        incident.incident_id,
    )


__all__ = [
    "Carried",
    "DeploymentDiagnosis",
    "Findings",
    "IncrementalDiagnosis",
    "diagnose",
    "diagnose_deployment",
    "diagnose_episodes",
    "diagnose_incrementally",
    "group_unknown",
    "worst_first",
]
