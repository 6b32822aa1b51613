"""Determines whether a log line reports a job failure, and in which form."""

from __future__ import annotations

from flink_triage.model import Observation

FAILING_STATES = frozenset({"RESTARTING", "FAILING", "FAILED"})
# Kinds of lines that report the end of the JobManager, or a state change of its application.
ENDING_KINDS = frozenset({"application-state", "cluster-shutdown", "entrypoint-fatal"})


def failure_rank(observation: Observation) -> int | None:
    """The rank of the line as a source of failure times, 0 is best; ``None`` without a failure."""
    lifecycle = observation.event.lifecycle
    if lifecycle is None:
        return None
    if lifecycle.kind == "job-state":
        return 0 if lifecycle.to_state in FAILING_STATES else None
    return {"restart": 1, "global-failure": 1, "task-failed": 2}.get(lifecycle.kind)
