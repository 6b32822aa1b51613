"""Determines the change of each incident between the results of two runs.

`Incident.status` already states whether an incident is new, worse or resolved.
"""

from __future__ import annotations

from dataclasses import dataclass

from flink_triage.model import Incident, Result, Status


@dataclass(frozen=True, slots=True)
class Change:
    """The current incident, and its change since the last run."""

    status: Status
    incident: Incident


def changes_between(before: Result | None, after: Result) -> tuple[Change, ...]:
    """The changes in the order of ``after``, followed by resolved incidents no longer in ``after``.

    If ``before`` is None, all incidents are new; without a run, nothing changes. Deployments
    without a failure are not incidents.
    """
    now = [incident for incident in after.incidents if incident.is_failure]
    if before is None:
        return tuple(Change("new", incident) for incident in now)
    if before.run.run_id == after.run.run_id:
        return ()
    known = {incident.incident_id for incident in now}
    covered = {incident.deployment for incident in after.incidents}
    # The fault is now part of another incident, or other signatures show that it is not a fault.
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
