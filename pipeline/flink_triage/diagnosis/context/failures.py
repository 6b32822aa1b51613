"""A log line in; whether, and in which form, it reports a job failure out."""

from __future__ import annotations

from flink_triage.model import Observation

FAILING_STATES = frozenset({"RESTARTING", "FAILING", "FAILED"})
# Kinds of lines that report the end of the JobManager or of the application in it.
ENDING_KINDS = frozenset({"application-state", "cluster-shutdown", "entrypoint-fatal"})


def failure_rank(observation: Observation) -> int | None:
    """Rank of the form in which a line reports a job failure, best first; ``None`` for others."""
    lifecycle = observation.event.lifecycle
    if lifecycle is None:
        return None
    if lifecycle.kind == "job-state":
        return 0 if lifecycle.to_state in FAILING_STATES else None
    return {"restart": 1, "global-failure": 1, "task-failed": 2}.get(lifecycle.kind)
