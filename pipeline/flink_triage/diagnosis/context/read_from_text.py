"""Marks moments that are prose instead of log lines.

Prose is less reliable than a log line. A diagnosis that was found only in prose has a lower
confidence, and prose alone does not show that a job is healthy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flink_triage.diagnosis.moment import Moment
from flink_triage.model import Observation
from flink_triage.signatures import SignaturePack


def mark_text(moments: Sequence[Moment], _pack: SignaturePack) -> dict[int, Moment]:
    return {
        index: replace(moment, is_text=True)
        for index, moment in enumerate(moments)
        if is_prose(moment.observation)
    }


def is_prose(observation: Observation) -> bool:
    """Whether a line has no log header, no stack trace and no lifecycle meaning."""
    event = observation.event
    has_header = event.level is not None or event.logged_at is not None
    return not has_header and event.lifecycle is None and observation.fingerprint is None
