"""Tests two runs on one warehouse, in two processes; no session is started."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

import flink_triage
from flink_triage.errors import EnvironmentProblem, OutputHeldError
from flink_triage.spark.tables.lock import LOCK_NAME, held

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOLDER = """
import sys
from datetime import datetime, timezone
from pathlib import Path
from flink_triage.spark.tables.lock import held
with held(Path(sys.argv[1]), datetime(2026, 1, 1, tzinfo=timezone.utc)):
    print("held", flush=True)
    sys.stdin.read()
"""


def start_holder(folder: Path) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(Path(flink_triage.__file__).parents[1])}
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def test_second_run_reports_who_holds_the_warehouse(tmp_path: Path) -> None:
    holder = start_holder(tmp_path)
    with pytest.raises(OutputHeldError, match=rf"process {holder.pid} on .*2026-01-01"):
        held(tmp_path, NOW).__enter__()
    holder.communicate()
    with held(tmp_path, NOW):
        pass


def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    holder = start_holder(tmp_path)
    holder.kill()
    holder.wait()
    with held(tmp_path, NOW):
        assert str(os.getpid()) in (tmp_path / LOCK_NAME).read_text()


def test_a_folder_that_cannot_be_made_is_an_environment_problem(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentProblem, match="cannot be written"):
        held(tmp_path / "file" / "warehouse", NOW).__enter__()


def test_a_lock_that_is_a_link_is_refused_and_its_target_left_alone(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "warehouse").mkdir()
    (tmp_path / "warehouse" / LOCK_NAME).symlink_to(victim)
    with pytest.raises(EnvironmentProblem, match="is a link"), held(tmp_path / "warehouse", NOW):
        pass
    assert victim.read_text() == "precious"


def test_a_lock_that_is_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / LOCK_NAME)
    with pytest.raises(EnvironmentProblem, match="not a regular file"), held(tmp_path, NOW):
        pass
