"""Tests batches of damaged logs: a Spark run has the same result as the local runner.

``FUZZ_BATCHES`` and ``FUZZ_SEED`` determine the number of batches and their content.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from flink_triage.local import Options, run_local
from flink_triage.model import Result
from flink_triage.report import to_json
from flink_triage.spark.pipeline import run
from flink_triage.spark.query.read_result import read_result
from tests.fuzz.core import SETTINGS
from tests.fuzz.mutate import corpus, mutated

BATCHES = int(os.environ.get("FUZZ_BATCHES", "1"))
SEED = int(os.environ.get("FUZZ_SEED", "1"))
SETTLED = replace(SETTINGS, settle_seconds=-1e9)
LOGS_PER_BATCH = 25
LOGS_PER_DEPLOYMENT = 5


def batch_of(number: int, folder: Path) -> Path:
    logs = corpus()
    for index in range(LOGS_PER_BATCH):
        seed = SEED + number * LOGS_PER_BATCH + index
        target = folder / "in" / f"deployment-{index // LOGS_PER_DEPLOYMENT}" / f"{seed}.log"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(mutated(seed, logs))
    return folder / "in"


def part_of(result: Result, part: str) -> object:
    told = to_json(result)[part]
    if part == "coverage" and any("zip:" in q.reason for q in result.coverage.quarantined):
        # The ledger does not contain the size of a member that cannot be opened.
        del told["files"], told["bytes"]
    return told


@pytest.mark.parametrize("number", range(BATCHES), ids=lambda n: f"seeds from {SEED + n * 25}")
def test_both_runners_agree_on_damaged_logs(
    spark: SparkSession, number: int, tmp_path: Path
) -> None:
    inputs = batch_of(number, tmp_path)
    options = Options(settings=SETTLED)
    expected = run_local([str(inputs)], options)
    run(spark, [str(inputs)], str(tmp_path / "warehouse"), options)
    found = read_result(spark, str(tmp_path / "warehouse"))
    # A damaged log can be an archive, which counts as several files, or as none if it is unsafe to
    # read.
    assert expected.coverage.files > LOGS_PER_BATCH // 2
    for part in ("coverage", "unknown", "incidents", "effective_config"):
        assert part_of(found, part) == part_of(expected, part), part
