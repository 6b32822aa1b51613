"""``flink-triage`` as a scheduler's task: the same words; what went wrong is raised.

A ``python_wheel_task`` calls a function, ignores what it returns, and takes any ``sys.exit``, even
that of success, for a failure.
"""

from __future__ import annotations

import sys

from ..errors import FlinkTriageError
from .main import main as command


class TaskFailedError(FlinkTriageError):
    """The command ended with another exit code than 0."""


def main() -> None:
    """Run the command on the task's parameters; returns None, and raises for any failure."""
    try:
        code = command()
    except SystemExit as wrong_use:
        code = wrong_use.code if isinstance(wrong_use.code, int) else 2
    if code:
        raise TaskFailedError(
            f"flink-triage {' '.join(sys.argv[1:2])}: ended with exit code {code}"
        )
