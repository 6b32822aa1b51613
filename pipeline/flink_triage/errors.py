"""The exceptions that flink-triage raises intentionally.

FlinkTriageError
├── UsageError              exit 2: invalid arguments or inputs, no files to read
│   └── SignaturePackError  exit 2: all problems in all files, as ``path:line: field: reason``,
│                           or a missing signature directory
├── EnvironmentProblem      exit 4: Java, Spark, JARs, storage, files that cannot be written
├── OutputHeldError         exit 5: another run uses the warehouse
├── CorruptStateError       exit 4: tables or JSON results that are corrupt or incompatible
└── TaskFailedError         raised only by `cli.scheduler_task`, for an exit code other than 0

A message states the problem and, where applicable, its location, the invalid value, and the allowed
values.
"""

from __future__ import annotations

from collections.abc import Sequence

from flink_triage import exit_codes


class FlinkTriageError(Exception):
    """The root of the hierarchy; ``exit_code`` is the exit code of the command for this error."""

    exit_code = exit_codes.BUG


class UsageError(FlinkTriageError):
    exit_code = exit_codes.USAGE


class SignaturePackError(UsageError):
    """The signature pack cannot be used; ``problems`` lists all of its problems."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class EnvironmentProblem(FlinkTriageError):
    exit_code = exit_codes.ENVIRONMENT


class CorruptStateError(FlinkTriageError):
    exit_code = exit_codes.ENVIRONMENT


class OutputHeldError(FlinkTriageError):
    exit_code = exit_codes.HELD
