"""Every error that flink-triage raises on purpose.

FlinkTriageError
├── UsageError              exit 2: wrong flags, no files to read
│   └── SignaturePackError  exit 2: all problems of all files, as ``path:line: field: reason``
├── EnvironmentProblem      exit 4: Java, jars, disk
├── OutputHeldError         exit 5: another run holds the output
└── CorruptStateError       exit 4: foreign, newer or damaged tables

A message states what is wrong, where, the value, and the allowed values.
"""

from __future__ import annotations

from collections.abc import Sequence

from flink_triage import exit_codes


class FlinkTriageError(Exception):
    """Root of the tree; ``exit_code`` is what the command returns for it."""

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
