"""Lists the missing evidence and the other possible causes of an episode.

If the first diagnosis is only a symptom, or the cause is undetermined, the report lists the logs
that may contain the cause.
"""

from __future__ import annotations

from collections.abc import Sequence

from flink_triage.diagnosis.context.processes import bare_id
from flink_triage.diagnosis.episodes.episodes import Episode
from flink_triage.diagnosis.moment import NO_TIME, Moment
from flink_triage.diagnosis.ranking.causality import SERIOUS, Candidate
from flink_triage.diagnosis.ranking.shared_faults import taskmanagers_named
from flink_triage.diagnosis.timeline.timeline import DeploymentTimeline
from flink_triage.model import OtherCause, Verdict
from flink_triage.signatures import Signature, SignaturePack

_MAX_STEPS = 2
# Limits of the lists in a report.
_MAX_PLACES = 3
_MAX_CONSIDERED = 3
_MAX_POSSIBLE = 6
_MAX_LOOK_FOR = 3
# Names in faults that occur on the JobManager.
_COORDINATORS = ("OperatorCoordinator", "SourceCoordinator")
# Packages of exceptions that a client, SQL planner, or YARN client may throw.
_BEFORE_A_JOB = (
    "org.apache.flink.client.",
    "org.apache.flink.runtime.client.",
    "org.apache.flink.table.api.",
    "org.apache.flink.table.client.",
    "org.apache.flink.table.gateway.",
    "org.apache.flink.yarn.",
)
# Shorter literals also occur in healthy logs.
_MIN_LOOK_FOR_CHARS = 8


def missing_evidence(
    verdict: Verdict,
    answers: Sequence[Candidate],
    unknown: Moment | None,
    last_wrapper: Signature | None,
    timeline: DeploymentTimeline,
    episode: Episode,
) -> tuple[str, ...]:
    """Sentences about evidence that may show the cause of a symptom or an undetermined incident.

    Empty for other incidents. ``last_wrapper`` is the signature of a wrapper whose cause was not
    logged.
    """
    if verdict == "diagnosed" and answers[0].signature.role != "symptom":
        return ()
    missing = list(last_wrapper.remediation.steps[:_MAX_STEPS]) if last_wrapper is not None else []
    missing += _places(answers, unknown, timeline, episode)
    is_of_client = timeline.processes == {"client"}
    for process, name in (("jobmanager", "JobManager"), ("taskmanager", "TaskManager")):
        if timeline.processes and process not in timeline.processes and not is_of_client:
            missing.append(f"No {name} log is among the inputs; it may contain the cause.")
    best = answers[0] if answers else None
    if best is not None and best.signature.limits:
        missing.append(best.signature.limits.strip())
    return tuple(missing)


def _places(
    answers: Sequence[Candidate],
    unknown: Moment | None,
    timeline: DeploymentTimeline,
    episode: Episode,
) -> list[str]:
    """The logs to check: those of the TaskManagers that the faults mention, or else other logs."""
    if not answers and unknown is not None and _is_in_taskmanager_log(unknown, episode):
        when = "" if unknown.at == NO_TIME else f" at {unknown.at:%Y-%m-%d %H:%M:%S} UTC"
        return [
            f"The TaskManager log reports the fault{when}, but not its cause. Check the complete, "
            "unfiltered log, the .out file, and the logs of the host or container runtime."
        ]
    faults = [hit.moment for hit in answers[0].hits] if answers else []
    faults += [unknown] if unknown is not None else []
    named = taskmanagers_named(faults) or taskmanagers_named(episode.faults)
    places = []
    for name, at in list(named.items())[:_MAX_PLACES]:
        if bare_id(name) in timeline.taskmanagers:
            places.append(
                f"The inputs contain the log of TaskManager {name}, but not the cause. Check the "
                ".out file and the logs of the host or container runtime: a process that is "
                "killed cannot log it."
            )
            continue
        when = "" if at == NO_TIME else f" up to {at:%Y-%m-%d %H:%M:%S} UTC"
        places.append(
            f"The log of TaskManager {name}{when}: its last lines before the JobManager detected "
            "the failure, and its .out file."
        )
    if len(named) > _MAX_PLACES:
        more = len(named) - _MAX_PLACES
        places.append(f"The faults mention {more} more TaskManager{'s' if more > 1 else ''}.")
    if not named and faults:
        at = faults[0].at
        when = "" if at == NO_TIME else f" around {at:%Y-%m-%d %H:%M:%S} UTC"
        places.append(_place_of(faults[0], when, timeline))
    return places


def _place_of(fault: Moment, when: str, timeline: DeploymentTimeline) -> str:
    """The log to check if the faults do not mention a TaskManager."""
    observation = fault.observation
    words = (
        observation.event.logger or "",
        observation.event.message,
        *(match.excerpt for match in observation.matches),
    )
    if any(name in text for text in words for name in _COORDINATORS):
        return (
            f"The JobManager log{when}: coordinators of sources and sinks run there, not on a "
            "TaskManager."
        )
    types = (observation.exception_type or "", observation.root_cause_type or "")
    if any(name.startswith(_BEFORE_A_JOB) for name in types):
        return (
            f"The complete output of the client{when}, or in application mode the JobManager log: "
            "the client threw or reported the exception."
        )
    if observation.process == "client":
        return f"The complete output of the client{when}, and the logs of the cluster that it used."
    read = " at INFO, unfiltered" if "taskmanager" in timeline.processes else ""
    return f"The logs of all TaskManagers{read}{when}: the faults do not mention a TaskManager."


def _is_in_taskmanager_log(fault: Moment, episode: Episode) -> bool:
    """Whether a TaskManager logged the fault, even if the JobManager logged it first."""
    own = [m for m in (fault, *episode.faults) if m.observation.process == "taskmanager"]
    return fault in own or (
        _execution(fault) is not None and _execution(fault) in {_execution(m) for m in own}
    )


def _execution(moment: Moment) -> str | None:
    """The id of the failed execution attempt, which the JobManager and the TaskManager log."""
    lifecycle = moment.observation.event.lifecycle
    return lifecycle.key if lifecycle is not None and lifecycle.kind == "task-failed" else None


def other_causes(
    answers: Sequence[Candidate], wrappers: Sequence[Candidate], pack: SignaturePack
) -> tuple[OtherCause, ...]:
    """Other unexplained candidates; if the first diagnosis is a symptom, also its known causes.

    The known causes of wrappers that are nearer to the root cause than the symptom come first.
    """
    if not answers:
        return ()
    best = answers[0]
    rivals = [c for c in answers[1:] if not c.explained_by and c.signature.severity != "info"]
    found = [_considered(rival, best) for rival in rivals[:_MAX_CONSIDERED]]
    if best.signature.role == "symptom":
        seen = {candidate.id for candidate in answers}
        inner = [w.id for w in wrappers if _is_inside(w, best)]
        known = [s for s in _known_causes([*inner, best.id], pack) if s.id not in seen]
        found += [_possible(signature) for signature in known[:_MAX_POSSIBLE]]
    return tuple(found)


def _considered(rival: Candidate, best: Candidate) -> OtherCause:
    facts = [
        "Nothing in this episode explains it.",
        f"It occurred {_times(rival)}; the first diagnosis occurred {_times(best)}.",
    ]
    if NO_TIME not in (rival.first_at, best.first_at):
        seconds = (rival.first_at - best.first_at).total_seconds()
        side = "after" if seconds >= 0 else "before"
        facts.append(f"It first occurred {abs(seconds):.0f} s {side} the first diagnosis.")
    facts.append(f"Its score is {best.score - rival.score:.0f} points lower.")
    verify = rival.signature.remediation.verify
    if verify:
        facts.append(f"If it is the root cause, its remediation has this effect: {verify}")
    return OtherCause(
        signature=rival.id,
        title=rival.signature.title,
        standing="considered",
        reason=" ".join(facts),
        look_for=_look_for(rival.signature),
    )


def _times(candidate: Candidate) -> str:
    return "once" if candidate.occurrences == 1 else f"{candidate.occurrences} times"


def _is_inside(wrapper: Candidate, symptom: Candidate) -> bool:
    return wrapper.depth is not None and (symptom.depth is None or wrapper.depth < symptom.depth)


def _known_causes(effects: Sequence[str], pack: SignaturePack) -> list[Signature]:
    """Serious triggers that explain an effect, in the order of ``effects``.

    The last effect is the symptom, the others are wrappers. The causes of one effect are ordered by
    subsystem (those of the wrappers first), then by the position of the effect in ``explains``,
    then by severity.
    """
    subsystems = {effect.partition("/")[0] for effect in effects[:-1]}
    found: dict[str, Signature] = {}
    for effect in effects:
        causes = [
            s
            for s in pack.signatures.values()
            if effect in s.explains and s.role == "trigger" and s.severity in SERIOUS
        ]
        causes.sort(
            key=lambda s: (
                s.id.partition("/")[0] not in subsystems,
                s.explains.index(effect),
                SERIOUS.index(s.severity),
                s.id,
            )
        )
        found |= {s.id: s for s in causes if s.id not in found}
    return list(found.values())


def _possible(signature: Signature) -> OtherCause:
    first = signature.cause.replace("\n", " ").split(". ", 1)[0].rstrip(".")
    return OtherCause(
        signature=signature.id,
        title=signature.title,
        standing="possible",
        reason=f"{first}.",
        look_for=_look_for(signature),
    )


def _look_for(signature: Signature) -> tuple[str, ...]:
    """Search terms: the longest literal of each alternative, without short or overlapping ones."""
    texts = [max(a.literals, key=len) for a in signature.alternatives if a.literals]
    found: list[str] = []
    for text in map(str.strip, texts):
        is_known = any(text in other or other in text for other in found)
        if len(text) >= _MIN_LOOK_FOR_CHARS and not is_known:
            found.append(text)
    return tuple(found[:_MAX_LOOK_FOR])
