"""The Python API: ``import flink_triage as ft; result = ft.diagnose("logs/")``.

The CLI, the jobs, and the notebooks call only these functions. Functions that require Spark are in
`flink_triage.spark`, and the package exports them under the same names: ``ft.run``,
``ft.read_result``, ``ft.read_table``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from flink_triage.local import Options, Progress, run_local
from flink_triage.model import Result
from flink_triage.settings import Settings

if TYPE_CHECKING:
    from typing_extensions import Unpack


class OptionFields(TypedDict, total=False):
    """The fields of ``Options`` as keyword arguments."""

    group_by: str
    flink_version: str | None
    timezone: tzinfo
    since: datetime | None
    until: datetime | None
    signature_directories: tuple[Path, ...]
    settings: Settings
    workers: int | None


def diagnose(
    inputs: str | Path | Sequence[str | Path],
    options: Options | None = None,
    *,
    progress: Progress = lambda done, total: None,
    **fields: Unpack[OptionFields],
) -> Result:
    """Diagnose log files and directories in this process, without Java and without writing files.

    ``fields`` are fields of ``flink_triage.Options``, which override ``options``: ``group_by``,
    ``flink_version``, ``timezone``, ``since``, ``until``, ``signature_directories``, ``workers``.
    ``progress`` is called with the number of bytes read so far and the total number of bytes.
    Raises ``UsageError`` if no files are found, and ``SignaturePackError`` if a signature directory
    is missing. Invalid signature files are skipped and listed in ``coverage.signatures_skipped``.
    """
    paths = [inputs] if isinstance(inputs, (str, Path)) else list(inputs)
    return run_local([str(p) for p in paths], replace(options or Options(), **fields), progress)
