"""Determines the change of each incident between the results of two runs.

The change is `Incident.status`, except in a first result, and for incidents that the newer result
no longer contains.
"""

from __future__ import annotations

from dataclasses import dataclass

from flink_triage.model import Incident, Result, Status


@dataclass(frozen=True, slots=True)
class Change:
    """An incident, and its change since the last run."""

    status: Status
    incident: Incident


def changes_between(before: Result | None, after: Result) -> tuple[Change, ...]:
    """The changes in the order of ``after``, followed by the incidents that ``after`` lacks.

    If ``before`` is ``None``, all failures are new. If both results are of the same run, there are
    no changes. Incidents that are not failures, and those in ``after`` without a status, are
    ignored. An incident that ``after`` lacks is resolved, unless it had recovered or its deployment
    is missing.
    """
    now = [incident for incident in after.incidents if incident.is_failure]
    if before is None:
        return tuple(Change("new", incident) for incident in now)
    if before.run.run_id == after.run.run_id:
        return ()
    known = {incident.incident_id for incident in now}
    covered = {incident.deployment for incident in after.incidents}
    # For example, the fault is now part of another incident, or a new signature is benign.
    gone = (
        Change("resolved", old)
        for old in before.incidents
        if old.is_failure
        and old.outcome != "recovered"
        and old.incident_id not in known
        and old.deployment in covered
    )
    changed = (Change(i.status, i) for i in now if i.status is not None)
    return (*changed, *gone)
