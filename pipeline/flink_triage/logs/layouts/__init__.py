"""Layouts: what a header line looks like, and how its parts are read."""

from .headers import ERROR_AND_ABOVE, WARN_AND_ABOVE, Header, canonical_level, parse_header
from .known import LAYOUTS, Layout
from .timestamps import parse_timestamp

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
