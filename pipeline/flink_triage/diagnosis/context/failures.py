"""Determines whether a log line reports a job failure, and how directly."""

from __future__ import annotations

from flink_triage.model import Observation

FAILING_STATES = frozenset({"RESTARTING", "FAILING", "FAILED"})
# Kinds of lines that report the end of the JobManager, or a state change of its application.
ENDING_KINDS = frozenset({"application-state", "cluster-shutdown", "entrypoint-fatal"})


def failure_rank(observation: Observation) -> int | None:
    """The rank of a line that reports a failure; ``None`` for other lines.

    The rank is 0 for a job state, 1 for a restart or a global failure, and 2 for a failed task. The
    lines with the lowest rank determine when a job failed.
    """
    lifecycle = observation.event.lifecycle
    if lifecycle is None:
        return None
    if lifecycle.kind == "job-state":
        return 0 if lifecycle.to_state in FAILING_STATES else None
    return {"restart": 1, "global-failure": 1, "task-failed": 2}.get(lifecycle.kind)
