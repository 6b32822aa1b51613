"""Job: the whole command, ``flink-triage``, for ``spark-submit``: ingest, diagnose, report."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command on ``argv`` (default: the job's own arguments); returns its exit code."""
    from flink_triage.cli.main import main as command

    return command(list(sys.argv[1:] if argv is None else argv))


if __name__ == "__main__":
    code = main()
    if code:
        sys.exit(code)
