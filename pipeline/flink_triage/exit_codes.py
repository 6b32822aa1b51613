"""The exit codes of the command."""

from __future__ import annotations

FINDINGS = 1  # --fail-on: a diagnosis of at least this severity; "undetermined" counts as major
# invalid usage, no logs to read or diagnose, or problems found by "signatures lint" or "test"
USAGE = 2
# --strict: input was quarantined or truncated, a signature was skipped, or a deployment was not
# diagnosed
INCOMPLETE = 3
ENVIRONMENT = 4  # problems with Java, Spark, JARs, or storage, or unusable tables or results
HELD = 5  # another run uses the warehouse
BUG = 70  # a bug in flink-triage, or no deployment could be diagnosed
INTERRUPTED = 130  # SIGINT
TERMINATED = 143  # SIGTERM
