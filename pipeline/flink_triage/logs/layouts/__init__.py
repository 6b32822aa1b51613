"""Parses the header lines of log events according to their layout."""

from flink_triage.logs.layouts.builtin_layouts import LAYOUTS, Layout
from flink_triage.logs.layouts.headers import (
    ERROR_AND_ABOVE,
    WARN_AND_ABOVE,
    Header,
    canonical_level,
    parse_header,
)
from flink_triage.logs.layouts.timestamps import parse_timestamp

__all__ = [
    "ERROR_AND_ABOVE",
    "LAYOUTS",
    "WARN_AND_ABOVE",
    "Header",
    "Layout",
    "canonical_level",
    "parse_header",
    "parse_timestamp",
]
