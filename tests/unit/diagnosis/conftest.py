"""Fixtures that turn a few log lines into the observations of the earlier stages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from flink_triage.diagnosis import DeploymentDiagnosis, diagnose_deployment
from flink_triage.local import Options, scan_inputs
from flink_triage.model import Observation
from flink_triage.remediation import OptionTable
from flink_triage.signatures import SignaturePack

Diagnose = Callable[..., DeploymentDiagnosis]
Observe = Callable[..., list[Observation]]


@pytest.fixture
def observe(tmp_path: Path) -> Observe:
    """Returns a function that reads log texts, given by file name, into observations."""

    def read(**files: str) -> list[Observation]:
        folder = tmp_path / "deployment"
        folder.mkdir(exist_ok=True)
        for name, text in files.items():
            (folder / f"flink-{name}.log").write_text(text)
        return list(scan_inputs([str(folder)], Options(), lambda a, b: None).observations())

    return read


@pytest.fixture
def diagnose(pack: SignaturePack, observe: Observe) -> Diagnose:
    def run(observations: Sequence[Observation] | None = None, **files: str) -> DeploymentDiagnosis:
        return diagnose_deployment(
            "d",
            observe(**files) if observations is None else observations,
            pack,
            OptionTable.load(),
        )

    return run
