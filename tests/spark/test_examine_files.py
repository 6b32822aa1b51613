"""Looks at files in tasks: the same as on the driver, in the same order."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from flink_triage.logs.inputs.files import list_inputs
from flink_triage.logs.inputs.storage import NO_OPTIONS
from flink_triage.settings import DEFAULT_SETTINGS
from flink_triage.spark.ingest import examine_files
from flink_triage.spark.ingest.content_identity import Mark
from flink_triage.spark.ingest.examine_files import Wanted, look_at, look_at_all

LOGS = Path(__file__).parents[1] / "logs"


def test_workers_find_of_each_file_what_the_driver_finds(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examine_files, "FROM_BYTES", 0)
    monkeypatch.setattr(examine_files, "LARGEST_BIN_BYTES", 512 * 1024)
    files = list_inputs([str(LOGS)], DEFAULT_SETTINGS).files
    wanted = [Wanted(file, (Mark(10, b"", b"x" * 16),)) for file in files]
    found = look_at_all(spark, wanted, DEFAULT_SETTINGS, NO_OPTIONS)
    assert len({look.profile.layout for look in found}) > 5
    assert found == [look_at(one, DEFAULT_SETTINGS) for one in wanted]


def test_files_without_a_byte_are_looked_at_too(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examine_files, "FROM_BYTES", 0)
    (tmp_path / "empty.log").touch()
    files = list_inputs([str(tmp_path)], DEFAULT_SETTINGS).files
    looks = look_at_all(spark, [Wanted(file) for file in files], DEFAULT_SETTINGS, NO_OPTIONS)
    assert [look.profile.path for look in looks] == [file.path for file in files]
