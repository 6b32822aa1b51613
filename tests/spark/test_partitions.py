"""Tests that the number of tasks and shuffle partitions does not affect the result of a run."""

from __future__ import annotations

import os
import shutil
import tarfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from flink_triage.local import Options, run_local
from flink_triage.logs.inputs.files import InputFile
from flink_triage.model import ByteRange, FileProfile
from flink_triage.report import to_json
from flink_triage.settings import MIB, Settings
from flink_triage.spark.ingest import read
from flink_triage.spark.ingest.content_identity import NOTHING
from flink_triage.spark.ingest.ranges import RangeTask, pack_tasks
from flink_triage.spark.pipeline import run
from flink_triage.spark.query.read_result import read_result

DEPLOYMENTS = (
    "checkpoint/tolerable-threshold-exceeded/disk-full-1.16.0",
    "kafka/offset-commit-failed/broker-frozen-1.20.1",
)
PARTS = ("incidents", "unknown", "coverage", "effective_config", "stack_traces")


@pytest.fixture
def logs(recorded_logs: Path, tmp_path: Path) -> Path:
    for deployment in DEPLOYMENTS:
        folder = tmp_path / "logs" / Path(deployment).name
        shutil.copytree(recorded_logs / deployment / "logs", folder)
    return tmp_path / "logs"


@pytest.mark.parametrize(
    ("range_bytes", "partitions"),
    [
        pytest.param(64 << 20, 1, id="whole files, one partition"),
        pytest.param(20_000, 7, id="small ranges, seven partitions"),
    ],
)
def test_ranges_and_partitions_change_nothing(
    spark: SparkSession,
    logs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    range_bytes: int,
    partitions: int,
) -> None:
    monkeypatch.setattr(read, "PICKLED_TASKS", 3)
    settled = Options(settings=Settings(settle_seconds=-1e9))
    spread = Options(settings=Settings(settle_seconds=-1e9, range_bytes=range_bytes))
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    try:
        run(spark, [str(logs)], str(tmp_path / "warehouse"), spread)
        found = to_json(read_result(spark, str(tmp_path / "warehouse")))
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
    expected = to_json(run_local([str(logs)], settled))
    for part in PARTS:
        assert found[part] == expected[part], part


def test_members_of_a_bundle_are_cut_into_ranges_too(
    spark: SparkSession, logs: Path, tmp_path: Path
) -> None:
    """Some names are not valid UTF-8, so neither Arrow nor JSON can represent them."""
    bundle = tmp_path / "in" / "bundle.tar"
    bundle.parent.mkdir()
    with tarfile.open(bundle, "w") as archive:
        for log in sorted(logs.glob("disk-full-1.16.0/*.log")):
            archive.add(log, os.fsdecode(b"caf\xe9/" + log.name.encode()))
    shutil.copytree(logs / "disk-full-1.16.0", bundle.parent / os.fsdecode(b"na\xefve"))
    options = Options(settings=Settings(settle_seconds=-1e9, range_bytes=20_000))
    for _ in range(2):
        run(spark, [str(bundle.parent)], str(tmp_path / "warehouse"), options)
    found = to_json(read_result(spark, str(tmp_path / "warehouse")))
    expected = to_json(run_local([str(bundle.parent)], options))
    assert {incident["deployment"] for incident in found["incidents"]} == {
        "bundle/caf\\xe9",
        "na\\xefve",
    }
    for part in PARTS:
        assert found[part] == expected[part], part


def test_ignored_signatures_are_listed_as_skipped(
    spark: SparkSession, logs: Path, tmp_path: Path
) -> None:
    shutil.rmtree(logs / "disk-full-1.16.0")
    own = tmp_path / "own"
    own.mkdir()
    (own / "ignore.yaml").write_text(
        "- signature: kafka/offset-commit-failed\n  reason: brokers are moved this week\n"
        '  expires: "2999-01-31"\n'
    )
    options = Options(settings=Settings(settle_seconds=-1e9), signature_directories=(own,))
    run(spark, [str(logs)], str(tmp_path / "warehouse"), options)
    found = to_json(read_result(spark, str(tmp_path / "warehouse")))
    reported = [d["signature"] for incident in found["incidents"] for d in incident["diagnoses"]]
    assert "kafka/offset-commit-failed" not in reported
    (skipped,) = found["coverage"]["signatures_skipped"]
    assert skipped["signature"] == "kafka/offset-commit-failed"
    assert "brokers are moved this week" in skipped["reason"]


@pytest.mark.parametrize(
    ("ranges", "bins"),
    [
        pytest.param(1, 1, id="64 MiB"),
        pytest.param(40, 40, id="2.5 GiB, a range each"),
        pytest.param(400, 128, id="25 GiB, larger ones"),
        pytest.param(1024, 256, id="64 GiB, up to 256 MiB each"),
    ],
)
def test_ranges_go_into_few_bins_of_bounded_size(ranges: int, bins: int) -> None:
    size = 64 * MIB
    byte_range = ByteRange(FileProfile("a.log", ranges * size), "a", 0, None)
    file = InputFile("a.log", ranges * size, datetime(2026, 1, 1, tzinfo=UTC), "a.log")
    tasks = [
        RangeTask(
            number=number,
            byte_range=byte_range,
            file=file,
            file_id="f",
            size_bytes=size,
            first_line=0,
            is_recent=False,
            is_first=number == 0,
            is_last=number == ranges - 1,
            tail=b"",
            known=NOTHING,
        )
        for number in range(ranges)
    ]
    packed = pack_tasks(tasks)
    assert len(packed) == bins
    assert sorted(task.number for bin_ in packed for task in bin_) == list(range(ranges))
    assert max(len(bin_) for bin_ in packed) * size <= 256 * MIB
