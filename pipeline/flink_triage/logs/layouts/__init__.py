"""Layouts: what a header line looks like, and how its parts are read."""

from .headers import WARN_AND_ABOVE, Header, HeaderKind, canonical_level, parse_header
from .json_lines import kind_of_line
from .known import LAYOUTS, Layout
from .timestamps import parse_timestamp

__all__ = [
    "LAYOUTS",
    "WARN_AND_ABOVE",
    "Header",
    "HeaderKind",
    "Layout",
    "canonical_level",
    "kind_of_line",
    "parse_header",
    "parse_timestamp",
]
