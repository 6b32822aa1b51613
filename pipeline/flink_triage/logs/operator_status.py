"""Parses the state of a healthy job from the status of a FlinkDeployment or FlinkSessionJob."""

from __future__ import annotations

import regex as re

from flink_triage.model import Lifecycle

LITERAL = "lifecycleState"
_MAX_CHARS = 8192
_WELL = re.compile(
    r"(?s)\bjobStatus\b.{0,2000}?\bjobId\W{1,6}(?P<job_id>[0-9a-f]{32})\b"
    r".{0,2000}?\bstate\W{1,6}(?P<to_state>RUNNING|FINISHED)\b"
    rf".{{0,2000}}?\b{LITERAL}\W{{1,6}}STABLE\b"
)
_ERROR = re.compile(r"""\berror["']?:[ \t]*(?!["']{2}|null\b|~)[^\s,}]""")


def parse_status(text: str) -> Lifecycle | None:
    """The state of a healthy job from a status of the Flink Kubernetes Operator, in YAML or JSON.

    A job is healthy if it is ``RUNNING`` or ``FINISHED``, its lifecycle state is ``STABLE``, and
    the status contains no error. ``None`` for any other text.
    """
    if LITERAL not in text:
        return None
    text = text[:_MAX_CHARS]
    found = _WELL.search(text)
    if found is None or _ERROR.search(text) is not None:
        return None
    return Lifecycle("job-state", found["job_id"], to_state=found["to_state"])
