"""The exit codes of the command."""

from __future__ import annotations

FINDINGS = 1  # --fail-on: a diagnosis of at least this severity, or an unknown failure
USAGE = 2  # invalid flags, no files to read, or problems in signature files
INCOMPLETE = 3  # --strict: some input was skipped or truncated
ENVIRONMENT = 4  # problems with Java, JARs, or the disk, or unusable tables
HELD = 5  # the warehouse is locked by another run
BUG = 70
INTERRUPTED = 130  # SIGINT
TERMINATED = 143  # SIGTERM
