"""The results of two runs in, what became of each incident out.

An incident is the same one when deployment, job and the time of its first fault are: new evidence
may change what ranks first, and with it the incident's id.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from ..model import SEVERITIES, Incident, Result

Status = Literal["new", "ongoing", "worse", "resolved"]
# From the best to the worst; a log that ends in trouble says neither way.
_OUTCOMES = ("recovered", "unknown", "ongoing", "failed")
_Key = tuple[str, str | None, datetime | None]


@dataclass(frozen=True, slots=True)
class Change:
    """An incident as it stands now, and what became of it since the last run."""

    status: Status
    incident: Incident


def changes_between(before: Result | None, after: Result) -> tuple[Change, ...]:
    """What became of the incidents, in the order of ``after``, resolved ones that are gone last.

    Without ``before`` all are new.  Healthy deployments are no incidents.
    """
    known = _by_key(before.incidents if before is not None else ())
    seen = _by_key(after.incidents)
    changes = [Change(_status(known.get(key), now), now) for key, now in seen.items()]
    spoken_of = {incident.deployment for incident in after.incidents}
    gone = (
        Change("resolved", old)
        for key, old in known.items()
        if key not in seen and old.outcome != "recovered" and old.deployment in spoken_of
    )
    return (*changes, *gone)


def _by_key(incidents: Iterable[Incident]) -> dict[_Key, Incident]:
    """The first, and so the worst, of each."""
    found: dict[_Key, Incident] = {}
    for incident in incidents:
        if incident.verdict != "healthy":
            key = (incident.deployment, incident.job_id, incident.started_at)
            found.setdefault(key, incident)
    return found


def _status(old: Incident | None, now: Incident) -> Status:
    if old is None:
        return "new"
    was, is_now = _OUTCOMES.index(old.outcome), _OUTCOMES.index(now.outcome)
    if now.outcome == "recovered" and old.outcome != "recovered":
        return "resolved"
    if is_now > was or _severity(now) < _severity(old):
        return "worse"
    return "ongoing"


def _severity(incident: Incident) -> int:
    """0 is the worst; without a diagnosis it is unknown, which is no worse than any."""
    if not incident.diagnoses:
        return len(SEVERITIES)
    return SEVERITIES.index(incident.diagnoses[0].severity)
