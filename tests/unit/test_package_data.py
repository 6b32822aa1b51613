"""The demo logs are found in the source tree, and in an archive on the Python path."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import flink_triage
from flink_triage.cli.demo import DEMO_LOGS, demo_logs

PACKAGE = Path(flink_triage.__file__).parent
LOGS = Path(__file__).parents[1] / "logs"
PROGRAM = "from flink_triage.cli.demo import demo_logs; print(*demo_logs(), sep=chr(10))"


def test_demo_logs_are_unpacked_from_an_archive_once(tmp_path: Path) -> None:
    archive = tmp_path / "flink_triage.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for path in (*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.tsv")):
            packed.write(path, path.relative_to(PACKAGE.parent))
        for name in DEMO_LOGS:
            for log in (LOGS / name / "logs").iterdir():
                packed.write(log, f"flink_triage/_demo/{name}/logs/{log.name}")
    found = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONPATH": str(archive)},
            capture_output=True,
            text=True,
            check=True,
        )
        found.append([Path(line) for line in done.stdout.splitlines()])
    assert found[0] == found[1]
    assert [folder.parent.name for folder in found[0]] == [Path(name).name for name in DEMO_LOGS]
    for here, there in zip(demo_logs(), found[0], strict=True):
        assert tmp_path in there.parents
        assert sorted(p.name for p in here.iterdir()) == sorted(p.name for p in there.iterdir())
