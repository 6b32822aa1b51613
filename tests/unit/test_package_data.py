"""The demo logs are found in the source tree, and in an archive on the Python path."""

from __future__ import annotations

from pathlib import Path

from flink_triage.cli.demo import DEMO_LOGS, demo_logs
from tests.unit.package_archive import archive_of_package, printed_with

LOGS = Path(__file__).parents[1] / "logs"
PROGRAM = "from flink_triage.cli.demo import demo_logs; print(*demo_logs(), sep=chr(10))"


def test_demo_logs_are_unpacked_from_an_archive_once(tmp_path: Path) -> None:
    demo = {
        f"flink_triage/_demo/{name}/logs/{log.name}": log
        for name in DEMO_LOGS
        for log in (LOGS / name / "logs").iterdir()
    }
    archive = archive_of_package(tmp_path, demo)
    found = [[Path(line) for line in printed_with(archive, PROGRAM).splitlines()] for _ in "ab"]
    assert found[0] == found[1]
    assert [folder.parent.name for folder in found[0]] == [Path(name).name for name in DEMO_LOGS]
    for here, there in zip(demo_logs(), found[0], strict=True):
        assert tmp_path in there.parents
        assert sorted(p.name for p in here.iterdir()) == sorted(p.name for p in there.iterdir())
