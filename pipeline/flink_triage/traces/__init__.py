"""Parses stack traces into cause chains, masks messages, and computes fingerprints."""

from flink_triage.traces.fingerprint import fingerprint, first_user_frame
from flink_triage.traces.frames import OMITTED_STACKS, origin_of, parse_frame
from flink_triage.traces.mask import mask
from flink_triage.traces.mentions import mentioned
from flink_triage.traces.parse import extract
from flink_triage.traces.parts import part_of, simple_name
from flink_triage.traces.python import PYFLINK_ERRORS
from flink_triage.traces.render import expand_frames, render, render_frame

__all__ = [
    "OMITTED_STACKS",
    "PYFLINK_ERRORS",
    "expand_frames",
    "extract",
    "fingerprint",
    "first_user_frame",
    "mask",
    "mentioned",
    "origin_of",
    "parse_frame",
    "part_of",
    "render",
    "render_frame",
    "simple_name",
]
