"""The Python API: ``import flink_triage as ft; result = ft.diagnose("logs/")``.

The command line, the jobs and the notebooks call these functions and nothing below them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .local import Options, run_local
from .model import Result


def diagnose(inputs: str | Path | Sequence[str | Path], **options: Any) -> Result:
    """Diagnose log files and directories in this process; nothing is written.

    ``options`` are the fields of ``flink_triage.Options``: ``group_by``, ``flink_version``,
    ``timezone``, ``since``, ``until``, ``signature_directories``, ``workers``.  Raises
    ``UsageError`` when there is nothing to read.
    """
    paths = [inputs] if isinstance(inputs, (str, Path)) else list(inputs)
    return run_local([str(p) for p in paths], replace(Options(), **options))
