"""The Python API: ``import flink_triage as ft; result = ft.diagnose("logs/")``.

The package also exports functions that require Spark: ``ft.run``, ``ft.read_result``,
``ft.read_table``, and ``ft.create_views``. These are defined in `flink_triage.spark`.
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
    """Diagnose log files and directories on this machine, without Java; store no results.

    Inputs of 24 MiB or more may be read in a pool of processes; ``workers=1`` disables the pool.
    ``fields`` are fields of ``flink_triage.Options`` (see ``OptionFields``), which override
    ``options``. ``progress`` is called with the number of bytes read so far and the total number of
    bytes. Raises ``UsageError`` if an input does not exist, cannot be listed, or has an unknown
    scheme, if there are no files, or if ``group_by`` or a ``layouts.yaml`` is invalid. Raises
    ``SignaturePackError`` if a signature directory is missing, and ``EnvironmentProblem`` if an
    input is a URI and PyArrow is not installed. Invalid signature files in
    ``signature_directories`` are skipped and listed in ``coverage.signatures_skipped``.
    """
    paths = [inputs] if isinstance(inputs, (str, Path)) else list(inputs)
    return run_local([str(p) for p in paths], replace(options or Options(), **fields), progress)
