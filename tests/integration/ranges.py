"""The byte range of a small log file, for tests that read it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from flink_triage.logs.detect.profile import probe
from flink_triage.logs.inputs.byte_ranges import plan_ranges
from flink_triage.logs.inputs.files import InputFile
from flink_triage.model import ByteRange
from flink_triage.settings import DEFAULT_SETTINGS


def range_of(path: Path) -> ByteRange:
    """Returns the first range of the file, which is the whole file if it is small enough."""
    file = InputFile(str(path), path.stat().st_size, datetime.now(UTC), str(path.parent))
    return plan_ranges([(probe(file, DEFAULT_SETTINGS), "d")], DEFAULT_SETTINGS)[0]
