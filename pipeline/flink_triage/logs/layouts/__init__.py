"""Layouts: what a header line looks like, and how its parts are read."""

from .headers import WARN_AND_ABOVE, Header, canonical_level, parse_header
from .known import LAYOUTS, Layout
from .timestamps import parse_timestamp

__all__ = [
    "LAYOUTS",
    "WARN_AND_ABOVE",
    "Header",
    "Layout",
    "canonical_level",
    "parse_header",
    "parse_timestamp",
]
