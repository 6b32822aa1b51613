"""The heads of files, read by the workers: the same profiles in the same order."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from flink_triage.logs.files import list_inputs
from flink_triage.logs.profile import probe
from flink_triage.logs.storage import NO_OPTIONS
from flink_triage.settings import DEFAULT_SETTINGS
from flink_triage.spark import probing
from flink_triage.spark.probing import probe_files

LOGS = Path(__file__).parents[1] / "logs"


def test_workers_find_of_each_file_what_the_driver_finds(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "FROM_BYTES", 0)
    monkeypatch.setattr(probing, "LARGEST_BIN_BYTES", 512 * 1024)
    files = list_inputs([str(LOGS)], DEFAULT_SETTINGS).files
    found = probe_files(spark, files, DEFAULT_SETTINGS, NO_OPTIONS)
    assert len({profile.layout for profile in found}) > 5
    assert found == [probe(file, DEFAULT_SETTINGS) for file in files]


def test_files_without_a_byte_are_probed_too(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "FROM_BYTES", 0)
    (tmp_path / "empty.log").touch()
    files = list_inputs([str(tmp_path)], DEFAULT_SETTINGS).files
    assert [p.path for p in probe_files(spark, files, DEFAULT_SETTINGS, NO_OPTIONS)] == [
        file.path for file in files
    ]
