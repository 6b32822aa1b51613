"""An observation in; whether it is prose, which lowers the confidence, out."""

from __future__ import annotations

from flink_triage.model import Observation

# Factor on the confidence of an answer: prose is less reliable than a log line.
FROM_TEXT = 0.8
IS_TEXT = "It was read from a text and not from a log line, so it is less certain."


def is_prose(observation: Observation) -> bool:
    """Whether a person wrote it: it has neither a log header nor a stack trace."""
    event = observation.event
    has_header = event.level is not None or event.logged_at is not None
    return not has_header and event.lifecycle is None and observation.fingerprint is None
