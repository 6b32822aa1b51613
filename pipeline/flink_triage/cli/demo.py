"""Provides the real logs in the package, and generates a fleet from them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

from flink_triage.errors import EnvironmentProblem
from flink_triage.package_data import packaged_folder

# Folders of tests/logs; the wheel contains the same folders in _demo.
DEMO_LOGS = (
    "checkpoint/tolerable-threshold-exceeded/disk-full-1.16.0",
    "healthy/orders-2.1.1",
    "kafka/offset-commit-failed/broker-frozen-1.20.1",
    "rocksdb/bad-table-magic/flip-2.1.1",
)


def demo_logs() -> list[Path]:
    """The folders of the four demo logs; raises ``EnvironmentProblem`` if one is not installed."""
    home = packaged_folder("_demo", "tests/logs")
    folders = [home / name / "logs" for name in DEMO_LOGS]
    if not all(folder.is_dir() for folder in folders):
        raise EnvironmentProblem(f"the demo logs are not in {home}: install flink-triage again")
    return folders


# The demo logs of each deployment, and the days on which they occur; 1 is the first day.
_FLEET: Mapping[str, tuple[str, tuple[int, ...]]] = {
    "fleet-checkout": ("disk-full-1.16.0", (2, 11, 18, 23, 26, 28)),
    "fleet-invoices": ("disk-full-1.16.0", (9,)),
    "fleet-ledger": ("flip-2.1.1", (20, 29)),
    "fleet-search": ("broker-frozen-1.20.1", (1, 8, 15, 22)),
    "fleet-clicks": ("broker-frozen-1.20.1", (5, 17)),
    "fleet-totals": ("orders-2.1.1", (3, 13)),
}
_TIME = re.compile(r"\b(2026-11-21)([ T])(\d\d:\d\d:\d\d)")
_ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")
_LAST_DAY = datetime(2026, 11, 21)


def demo_fleet(folder: Path, days: int = 30) -> Path:
    """Write the logs of six deployments, one of them healthy, over the ``days`` days to 2026-11-21.

    A deployment consists of copies of a real log, one for each day on which it has events. Days
    after ``days`` are omitted. Dates are shifted, and job and task ids are replaced consistently in
    all files of a day; times of day are kept. Returns ``folder``, which contains one directory per
    deployment. Raises ``EnvironmentProblem`` if the demo logs are not installed.
    """
    homes = {path.parent.name: path for path in demo_logs()}
    for name, (source, dates) in _FLEET.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        for number in (date for date in dates if date <= days):
            day = _LAST_DAY - timedelta(days=days - number)
            for log in sorted(homes[source].glob("*.log")):
                text = _moved(log.read_text(encoding="utf-8", errors="replace"), day, name)
                target = folder / name / f"{day:%Y%m%d}-{log.name}"
                target.write_text(text, encoding="utf-8")
    return folder


def _moved(text: str, day: datetime, name: str) -> str:
    def renamed(found: re.Match[str]) -> str:
        return hashlib.sha256(f"{name} {day} {found[0]}".encode()).hexdigest()[:32]

    return _ID.sub(renamed, _TIME.sub(rf"{day:%Y-%m-%d}\2\3", text))
