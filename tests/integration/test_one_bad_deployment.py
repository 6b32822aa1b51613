"""Local runner: a deployment that cannot be diagnosed is reported, the others are diagnosed."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from flink_triage.cli.main import main
from flink_triage.cli.outputs import exit_code
from flink_triage.diagnosis import diagnose
from flink_triage.diagnosis.resource_limits import Undiagnosed, guarded
from flink_triage.local import Options, run_local, tasks
from flink_triage.report import render
from flink_triage.settings import MIB, Settings

FAILURE = (
    "2026-11-21 06:47:23,468 ERROR org.apache.flink.Foo [] - write failed\n"
    "java.io.IOException: No space left on device\n"
    "\tat java.io.FileOutputStream.writeBytes(Native Method)\n"
)
SETTINGS = Settings(max_diagnosis_seconds=0.5, max_diagnosis_bytes=100 * MIB)
QUICK = "not diagnosed: it takes more than 0.5 s of CPU time"


def _burn() -> None:
    while True:
        pass


def _hoard() -> None:
    held = []
    while True:
        held.append(b"x" * MIB)


def _raise() -> None:
    raise KeyError("a key\nthat is gone")


FAULTS = {"orders": _raise, "slow": _burn, "large": _hoard}


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Writes five deployments, three of which cannot be diagnosed."""

    def faulty(*arguments: Any, deployments: Iterable[str] = ()) -> Any:
        (name,) = deployments
        FAULTS.get(name, lambda: None)()
        return diagnose(*arguments, deployments=[name])

    monkeypatch.setattr(tasks, "diagnose", faulty)
    for name in ("clicks", "payments", *FAULTS):
        (tmp_path / name).mkdir()
        (tmp_path / name / "jobmanager.log").write_text(FAILURE)
    return tmp_path


@pytest.mark.parametrize("workers", [1, 2])
def test_the_others_are_diagnosed(
    fleet: Path, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flink_triage.local._POOL_FROM_BYTES", 0)
    result = run_local([str(fleet)], Options(settings=SETTINGS, workers=workers))
    assert [(i.deployment, i.verdict) for i in result.incidents] == [
        ("clicks", "diagnosed"),
        ("payments", "diagnosed"),
    ]
    reasons = {q.path: q.reason for q in result.coverage.quarantined}
    assert reasons.keys() == FAULTS.keys()
    assert reasons["slow"] == QUICK
    assert reasons["large"] == "not diagnosed: it takes more than 100 MiB"
    assert reasons["orders"].startswith("not diagnosed: KeyError at test_one_bad_deployment.py:")
    assert reasons["orders"].endswith(r": 'a key\nthat is gone'")
    assert result.coverage.files == 5
    assert (exit_code(result, "none", False), exit_code(result, "none", True)) == (0, 3)
    for form in ("text", "json", "markdown", "html", "sarif", "github"):
        assert "0.5 s of CPU time" in render(result, form), form


def test_fleet_of_bad_deployments_fails(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(fleet / "orders"), "--fail-on", "none"]) == 70
    assert "not diagnosed: KeyError" in capsys.readouterr().out
    # A deployment without events does not change this.
    (fleet / "empty").mkdir()
    (fleet / "empty" / "flink-jobmanager.log").touch()
    both = [str(fleet / "orders"), str(fleet / "empty")]
    assert main(["diagnose", *both, "--fail-on", "none"]) == 70


def test_fault_handler_does_not_hide_the_limit() -> None:
    def stubborn() -> None:
        while True:
            try:
                _burn()
            except Exception:
                continue

    assert guarded(stubborn, SETTINGS) == Undiagnosed(QUICK)


def test_time_limit_does_not_interrupt_later_code() -> None:
    assert guarded(_burn, SETTINGS) == Undiagnosed(QUICK)
    assert guarded(lambda: sum(range(10_000_000)), Settings()) == 49999995000000
    assert sum(range(20_000_000)) == 199999990000000


def test_without_the_main_thread_only_errors_count() -> None:
    found: list[object] = []

    def elsewhere() -> None:
        found.append(guarded(lambda: sum(range(1000)), SETTINGS))
        found.append(guarded(_raise, SETTINGS))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert found[0] == 499500
    assert isinstance(found[1], Undiagnosed)
