"""Runs the ``flink-triage`` command with all its arguments, for ``spark-submit``."""

from __future__ import annotations

import sys

from flink_triage.cli.main import main

if __name__ == "__main__":
    # Some schedulers report even ``sys.exit(0)`` as a failure.
    if code := main():
        sys.exit(code)
