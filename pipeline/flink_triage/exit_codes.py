"""The exit codes of the command, each used wherever the command ends that way."""

from __future__ import annotations

FINDINGS = 1  # --fail-on: a diagnosis of at least this severity, or an unknown failure
USAGE = 2  # wrong flags, nothing to read, or problems in signature files
INCOMPLETE = 3  # --strict: something was skipped or cut
ENVIRONMENT = 4  # Java, jars, disk, or tables that cannot be used
HELD = 5  # another run holds the warehouse
BUG = 70
INTERRUPTED = 130  # SIGINT
TERMINATED = 143  # SIGTERM
