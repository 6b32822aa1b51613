"""A timeline without an incident in; out, the one that says so, and what it does not answer for.

Logs with an error that no signature knows, and without a sign that any job is well, are not called
healthy: often they are a few lines that somebody cut out because they tell of the failure.
"""

from __future__ import annotations

from dataclasses import replace

from ..logs.layouts import ERROR_AND_ABOVE
from ..logs.routine import COMPLETED
from ..logs.throwables import names_throwable
from ..model import Evidence, Incident, Observation, Verdict
from ..settings import Settings
from .incidents import MAX_QUOTED_CHARS, evidence_of, incident_id
from .timeline import DeploymentTimeline, Moment

_WELL_STATES = frozenset({"RUNNING", "FINISHED"})


def quiet_incident(timeline: DeploymentTimeline, settings: Settings) -> Incident:
    """What is said of a deployment in which nothing was found that anyone must act on."""
    if timeline.is_foreign:
        told = "These are not logs of Flink: nothing in them speaks of it."
        return _incident(timeline, "undetermined", told)
    error = next((moment for moment in timeline.moments if is_bare_error(moment)), None)
    if error is None or any(is_sign_of_health(m.observation) for m in timeline.moments):
        return _incident(timeline, "healthy", "No failure was found in these logs.")
    first_line = error.observation.event.message.split("\n", 1)[0][:MAX_QUOTED_CHARS]
    told = f"No signature names the first error, which has no stack trace: {first_line}"
    evidence = replace(evidence_of(error, settings), at=error.time)
    return _incident(timeline, "undetermined", told, error, evidence)


def is_bare_error(moment: Moment) -> bool:
    """Whether a line says that something went wrong, without a stack trace or a known meaning.

    Of a line without a level the name of a throwable says so.  A witness has words only where it
    stands for such a line.
    """
    observation, event = moment.observation, moment.observation.event
    if moment.is_stop or not event.message:
        return False
    if observation.matches or observation.fingerprint is not None or event.lifecycle is not None:
        return False
    if event.level is None:
        return names_throwable(event.message)
    return event.level in ERROR_AND_ABOVE


def is_sign_of_health(observation: Observation) -> bool:
    """Whether a line says that a job runs, ran to its end, or took a checkpoint."""
    lifecycle = observation.event.lifecycle
    return lifecycle is not None and (
        lifecycle.kind == COMPLETED
        or (lifecycle.kind in ("job-state", "job-terminal") and lifecycle.to_state in _WELL_STATES)
    )


def _incident(
    timeline: DeploymentTimeline,
    verdict: Verdict,
    summary: str,
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
        summary=summary,
    )
