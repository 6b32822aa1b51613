"""What ``spark-submit`` starts: the command ``flink-triage`` with all its arguments."""

from __future__ import annotations

import sys

from flink_triage.cli.main import main

if __name__ == "__main__":
    # A successful ``sys.exit(0)`` would be reported as a failure by some schedulers.
    if code := main():
        sys.exit(code)
