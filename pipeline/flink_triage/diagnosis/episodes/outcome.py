"""Determines the outcome of an episode from the moments within and after it."""

from __future__ import annotations

from collections.abc import Sequence

from flink_triage.diagnosis.context.failures import ENDING_KINDS
from flink_triage.diagnosis.durations import RUNS_ON
from flink_triage.diagnosis.moment import Moment
from flink_triage.model import Outcome


def outcome_of(within: Sequence[Moment], after: Sequence[Moment]) -> Outcome:
    moments = [m for m in (*within, *after) if not m.is_stop]
    states = [m.to_state for m in moments if m.kind in ("job-state", "job-terminal")]
    if "FAILED" in states:
        return "failed"
    if any(m.kind == "checkpoint-completed" for m in after) or "FINISHED" in states:
        return "recovered"
    if _has_process_failed(moments):
        return "failed"
    # Without the cancellation, the job could have recovered or failed.
    if not states or states[-1] in ("CANCELLING", "CANCELED"):
        return "unknown"
    # A job without checkpoints has recovered if it keeps running.
    runs_on = states[-1] == "RUNNING" and after[-1].at - after[0].at > RUNS_ON
    has_checkpoints = any(m.kind == "checkpoint-completed" for m in within)
    return "recovered" if runs_on and not has_checkpoints else "ongoing"


def _has_process_failed(moments: Sequence[Moment]) -> bool:
    """Whether the JobManager ended with an error, and no job ran afterwards."""
    for moment in reversed(moments):
        if moment.kind == "job-state" and moment.to_state == "RUNNING":
            return False
        if moment.kind == "entrypoint-fatal" or (
            moment.kind in ENDING_KINDS and moment.to_state == "FAILED"
        ):
            return True
    return False
