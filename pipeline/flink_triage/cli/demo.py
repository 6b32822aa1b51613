"""The real logs that ship with the package."""

from __future__ import annotations

from pathlib import Path

from ..errors import EnvironmentProblem

# Folders of tests/logs; the wheel carries the same ones under _demo.
DEMO_LOGS = (
    "checkpoint/tolerable-threshold-exceeded/disk-full-1.16.0",
    "healthy/orders-2.1.1",
    "kafka/offset-commit-failed/broker-frozen-1.20.1",
    "rocksdb/bad-table-magic/flip-2.1.1",
)


def demo_logs() -> list[Path]:
    """Folders of the four demo deployments; ``EnvironmentProblem`` when they were not installed."""
    package = Path(__file__).resolve().parents[1]
    for home in (package / "_demo", package.parents[1] / "tests" / "logs"):
        folders = [home / name / "logs" for name in DEMO_LOGS]
        if all(folder.is_dir() for folder in folders):
            return folders
    raise EnvironmentProblem(f"the demo logs are not in {package}: install flink-triage again")
