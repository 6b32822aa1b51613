"""A line in; out, whether and how it says that a job failed."""

from __future__ import annotations

from flink_triage.model import Observation

FAILING_STATES = frozenset({"RESTARTING", "FAILING", "FAILED"})
# How the JobManager ends, or the application in it.
ENDING_KINDS = frozenset({"application-state", "cluster-shutdown", "entrypoint-fatal"})


def failure_word(observation: Observation) -> int | None:
    """How a line says that a job failed, the best way first; ``None`` for any other line."""
    lifecycle = observation.event.lifecycle
    if lifecycle is None:
        return None
    if lifecycle.kind == "job-state":
        return 0 if lifecycle.to_state in FAILING_STATES else None
    return {"restart": 1, "global-failure": 1, "task-failed": 2}.get(lifecycle.kind)
