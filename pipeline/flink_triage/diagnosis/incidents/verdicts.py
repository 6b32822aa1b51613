"""Builds the incident of a timeline in which no episode is an incident.

Its verdict states the reason. ``healthy`` requires Flink log lines and no unexplained error. An
error is explained by a signature, or by a healthy job afterwards.
"""

from __future__ import annotations

from dataclasses import replace

from flink_triage.diagnosis.incidents.build_incident import MAX_QUOTED_CHARS, incident_id
from flink_triage.diagnosis.incidents.evidence import evidence_of
from flink_triage.diagnosis.moment import Moment
from flink_triage.diagnosis.timeline.timeline import LOG_READ, OUTSIDE_WINDOW, DeploymentTimeline
from flink_triage.fold_grains import LOGGED_AT_STARTUP
from flink_triage.logs.detect.prose import is_of_collector, mentions_failure
from flink_triage.logs.layouts import ERROR_AND_ABOVE
from flink_triage.logs.routine import COMPLETED
from flink_triage.logs.text.trace_line_kinds import names_throwable
from flink_triage.model import Evidence, Incident, Observation, Verdict
from flink_triage.settings import Settings
from flink_triage.signatures import SignaturePack
from flink_triage.signatures.similar import similar_failures
from flink_triage.traces import mentioned

# Signatures named in a summary.
_MAX_NAMED = 3
_WELL_STATES = frozenset({"RUNNING", "FINISHED"})
_AT_START = LOGGED_AT_STARTUP | {OUTSIDE_WINDOW, LOG_READ}

_SUMMARIES: dict[Verdict, str] = {
    "not-flink": "These are not Flink logs: no line was identified as written by Flink.",
    "no-logs": "These files contain no log lines of a Flink job or process.",
    "empty-window": "There are no notable events between --since and --until.",
    "healthy": "No failure was found in these logs.",
}


def quiet_incident(
    timeline: DeploymentTimeline, settings: Settings, pack: SignaturePack
) -> Incident:
    """The only incident of a deployment in which no episode is an incident."""
    if timeline.is_foreign:
        return _incident(timeline, _verdict_of_others(timeline))
    error = unexplained_error(timeline)
    if error is None:
        verdict = _verdict(timeline)
        survived = _survived(timeline, pack) if verdict == "healthy" else ""
        return _incident(timeline, verdict, _SUMMARIES[verdict] + survived)
    first_line = words_of(error.observation).strip().split("\n", 1)[0][:MAX_QUOTED_CHARS]
    verdict = "undetermined"
    if all(moment.is_text for moment in timeline.moments):
        verdict = "text-only"
        summary = (
            "The input is not a log, but it mentions a failure without a matching signature: "
            f"{first_line}"
        )
    elif error.observation.fingerprint is not None:
        summary = f"No signature matches the first exception: {first_line}"
    else:
        summary = f"No signature matches the first error, which has no stack trace: {first_line}"
    evidence = replace(evidence_of(error, settings), at=error.time)
    similar = similar_failures(error.observation, pack)
    return replace(_incident(timeline, verdict, summary, error, evidence), similar=similar)


def _verdict(timeline: DeploymentTimeline) -> Verdict:
    observations = [moment.observation for moment in timeline.moments]
    kinds = {o.event.lifecycle.kind for o in observations if o.event.lifecycle is not None}
    if OUTSIDE_WINDOW in kinds and not any(_is_dated(o) for o in observations):
        return "empty-window"
    if all(moment.is_text for moment in timeline.moments):
        return "no-logs"
    if any(map(is_of_flink, timeline.moments)):
        return "healthy"
    return _verdict_of_others(timeline)


def _verdict_of_others(timeline: DeploymentTimeline) -> Verdict:
    """The verdict on logs that Flink did not write: the log of a failed log retrieval is no log."""
    event = timeline.moments[-1].observation.event
    last_line = (event.continuation or event.message).rstrip().rpartition("\n")[2]
    return "no-logs" if is_of_collector(last_line) else "not-flink"


def _is_dated(observation: Observation) -> bool:
    event = observation.event
    is_at_start = event.lifecycle is not None and event.lifecycle.kind in _AT_START
    return event.logged_at is not None and not is_at_start and observation.occurrences > 0


def unexplained_error(timeline: DeploymentTimeline) -> Moment | None:
    """The first unexplained error since a job was last healthy, or ``None``.

    If all lines are prose and none is an error, this is the first line that mentions a failure. In
    an excerpt, an exception also counts below level ERROR, because a person selected it.
    """
    found: Moment | None = None
    is_text = True
    for moment in timeline.moments:
        is_text = is_text and moment.is_text
        if is_sign_of_health(moment.observation):
            found = None
        elif found is None and (
            is_bare_error(moment) or (timeline.is_excerpt and is_below_error(moment))
        ):
            found = moment
    if found is not None or not is_text:
        return found
    return next((moment for moment in timeline.moments if _mentions_failure(moment)), None)


def is_of_flink(moment: Moment) -> bool:
    """Whether ``moment`` is a log line with signs of Flink, such as a version or a lifecycle."""
    observation = moment.observation
    if moment.is_text:
        return False
    is_known = observation.process is not None or observation.flink_version is not None
    return is_known or observation.product == "flink" or observation.event.lifecycle is not None


def is_bare_error(moment: Moment) -> bool:
    """Whether a line reports an error without a stack trace, match, or lifecycle meaning.

    A line without a level is an error if it mentions a throwable.
    """
    observation, event = moment.observation, moment.observation.event
    if moment.is_stop or not event.message:
        return False
    if observation.matches or observation.fingerprint is not None or event.lifecycle is not None:
        return False
    if event.level is None:
        return names_throwable(event.message) or mentioned(event.message) is not None
    return event.level in ERROR_AND_ABOVE


def is_below_error(moment: Moment) -> bool:
    """Whether a line at WARN or INFO has a stack trace without a signature."""
    observation = moment.observation
    is_trace = observation.fingerprint is not None and not observation.matches
    return is_trace and observation.event.level in ("WARN", "INFO") and not moment.is_stop


def _survived(timeline: DeploymentTimeline, pack: SignaturePack) -> str:
    """A sentence with the first signatures that match an error or a stack trace; may be empty."""
    errors = (
        moment.observation
        for moment in timeline.moments
        if moment.observation.fingerprint is not None
        or moment.observation.event.level in ERROR_AND_ABOVE
    )
    matched = {match.signature: None for error in errors for match in error.matches}
    titles = [f"{pack.signatures[id_].title} ({id_})" for id_ in matched]
    return f" Errors that did not stop a job: {'; '.join(titles[:_MAX_NAMED])}." if titles else ""


def words_of(observation: Observation) -> str:
    """The root cause in a line's stack trace with its message, or else the message of the line."""
    thrown = observation.root_cause_type or observation.exception_type
    if observation.fingerprint is None or thrown is None:
        return observation.event.message or thrown or ""
    return f"{thrown}: {observation.root_cause_message or ''}".rstrip(": ")


def _mentions_failure(moment: Moment) -> bool:
    observation, text = moment.observation, moment.observation.event.message
    return not observation.matches and not is_of_collector(text) and mentions_failure(text)


def is_sign_of_health(observation: Observation) -> bool:
    """Whether a line reports a running or finished job, or a completed checkpoint."""
    lifecycle = observation.event.lifecycle
    return lifecycle is not None and (
        lifecycle.kind == COMPLETED
        or (lifecycle.kind in ("job-state", "job-terminal") and lifecycle.to_state in _WELL_STATES)
    )


def _incident(
    timeline: DeploymentTimeline,
    verdict: Verdict,
    summary: str | None = None,
    error: Moment | None = None,
    evidence: Evidence | None = None,
) -> Incident:
    of = timeline.moments if error is None else (error,)
    times = [at for moment in of if (at := moment.time) is not None]
    job_id = next(iter(timeline.job_names), None) if len(timeline.job_names) == 1 else None
    return Incident(
        incident_id=incident_id(timeline.deployment, job_id, None, verdict),
        deployment=timeline.deployment,
        job_id=job_id,
        job_name=timeline.job_names.get(job_id) if job_id else None,
        flink_version=timeline.flink_version,
        started_at=times[0] if times else None,
        ended_at=times[-1] if times else None,
        verdict=verdict,
        outcome="unknown",
        restarts=0,
        first_fault=evidence,
        last_healthy=None,
        diagnoses=(),
        summary=summary or _SUMMARIES[verdict],
    )
