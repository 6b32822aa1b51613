"""Runs ``flink-triage`` as a scheduler task that raises an exception on any failure.

A Databricks ``python_wheel_task`` calls a function, ignores its return value, and treats every
``sys.exit``, even ``sys.exit(0)``, as a failure. On Databricks, this task sets task values for the
tasks that follow (``{{tasks.<key>.values.<name>}}``), which are strings:

- ``exit_code`` is set even if the task fails.
- ``run_id``, ``is_new`` and ``worst_severity`` describe the result that the command wrote, if any.
  ``is_new`` is ``true`` if this task published the result, and otherwise ``false``, for example if
  there was nothing new to read.
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime

from flink_triage.cli.main import main as command
from flink_triage.errors import FlinkTriageError
from flink_triage.model import SEVERITIES, Result

# Databricks sets it on clusters and on serverless compute.
_ON_DATABRICKS = "DATABRICKS_RUNTIME_VERSION"


class TaskFailedError(FlinkTriageError):
    """The command ended with an exit code other than 0."""


def main() -> None:
    """Run the command with the task parameters; raise ``TaskFailedError`` unless it returns 0."""
    began_at = datetime.now(UTC)
    try:
        code = command(on_result=lambda result: _set_values(values_of(result, began_at)))
    except SystemExit as wrong_use:
        code = wrong_use.code if isinstance(wrong_use.code, int) else 2
    _set_values({"exit_code": str(code)})
    if code:
        raise TaskFailedError(
            f"flink-triage {' '.join(sys.argv[1:2])}: ended with exit code {code}"
        )


def values_of(result: Result, began_at: datetime) -> dict[str, str]:
    """The task values of a result, for a task that began at ``began_at``."""
    finished_at = result.run.finished_at
    is_new = finished_at is not None and finished_at >= began_at
    return {
        "run_id": result.run.run_id,
        "is_new": str(is_new).lower(),
        "worst_severity": worst_severity(result),
    }


def worst_severity(result: Result) -> str:
    """The worst severity of new, ongoing, and worse incidents, or ``none``.

    Incidents without a status do not count; the first run of a warehouse has no statuses. As for
    ``--fail-on``, a failure without a signature is major.
    """
    found: set[str] = set()
    for incident in result.incidents:
        if incident.status in ("new", "ongoing", "worse"):
            found.update(diagnosis.severity for diagnosis in incident.diagnoses)
            if incident.verdict == "undetermined":
                found.add("major")
    return next((severity for severity in SEVERITIES if severity in found), "none")


def _set_values(values: dict[str, str]) -> None:
    if _ON_DATABRICKS not in os.environ:
        return
    # Part of every Databricks runtime; not a dependency of this package.
    from databricks.sdk.runtime import dbutils  # type: ignore[import-not-found]

    for key, value in values.items():
        dbutils.jobs.taskValues.set(key=key, value=value)
