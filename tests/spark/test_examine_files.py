"""Tests that tasks examine files with the same results, in the same order, as the driver."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from flink_triage.logs.inputs.files import list_inputs
from flink_triage.logs.inputs.storage import NO_OPTIONS
from flink_triage.settings import DEFAULT_SETTINGS
from flink_triage.spark.ingest import content_identity, examine_files
from flink_triage.spark.ingest.content_identity import HEAD_BYTES, WINDOW_BYTES, Mark, OpenFile
from flink_triage.spark.ingest.examine_files import Wanted, look_at, look_at_all

LOGS = Path(__file__).parents[1] / "logs"


def test_workers_and_driver_examine_files_alike(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examine_files, "FROM_BYTES", 0)
    monkeypatch.setattr(examine_files, "LARGEST_BIN_BYTES", 512 * 1024)
    files = list_inputs([str(LOGS)], DEFAULT_SETTINGS).files
    wanted = [Wanted(file, (Mark(10, b"", b"x" * 16),)) for file in files]
    found = look_at_all(spark, wanted, DEFAULT_SETTINGS, NO_OPTIONS)
    assert len({look.profile.layout for look in found}) > 5
    assert found == [look_at(one, DEFAULT_SETTINGS) for one in wanted]


def test_empty_files_are_examined_too(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examine_files, "FROM_BYTES", 0)
    (tmp_path / "empty.log").touch()
    files = list_inputs([str(tmp_path)], DEFAULT_SETTINGS).files
    looks = look_at_all(spark, [Wanted(file) for file in files], DEFAULT_SETTINGS, NO_OPTIONS)
    assert [look.profile.path for look in looks] == [file.path for file in files]


class CountedFile(io.FileIO):
    """Counts the bytes that are read from all files."""

    bytes_read = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(-1 if size is None else size) or b""
        CountedFile.bytes_read += len(data)
        return data


def test_only_head_and_two_windows_of_a_grown_file_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "flink-taskexecutor-0.log"
    path.write_bytes(b"".join(b"%d: a line of a log\n" % number for number in range(50_000)))
    listed = list_inputs([str(path)], DEFAULT_SETTINGS).files[0]
    with OpenFile(listed, listed.size_bytes) as file:
        mark = file.mark(listed.size_bytes - 100_000)
    first = look_at(Wanted(listed), DEFAULT_SETTINGS)
    assert mark is not None
    monkeypatch.setattr(content_identity, "open_binary", CountedFile)
    found = look_at(Wanted(listed, (mark,), first.profile), DEFAULT_SETTINGS)
    assert found.goes_on == (True,)
    assert CountedFile.bytes_read <= HEAD_BYTES + 2 * WINDOW_BYTES + 100
