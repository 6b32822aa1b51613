"""Tests that maintenance after several runs merges files and deletes old rows on request."""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from flink_triage.errors import OutputHeldError, UsageError
from flink_triage.spark.maintain import Upkeep, maintain
from flink_triage.spark.pipeline import run
from flink_triage.spark.query.read_result import read_result
from flink_triage.spark.tables.lock import held
from flink_triage.spark.tables.schemas import LOG_FILES, RUNS
from flink_triage.spark.tables.warehouse import Warehouse
from tests.crash.workload import (
    QUIET_SINCE,
    TABLES,
    folder_of,
    live_files,
    numbers_in,
    published,
    write,
)

RUNS_BEFORE = 2


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("upkeep") / "logs"


@pytest.fixture(scope="module")
def warehouse(spark: SparkSession, logs: Path) -> Path:
    """The tables of logs that grew, with one run after each change."""
    log = logs / "orders" / "jobmanager.log"
    for number in range(RUNS_BEFORE):
        write(log, range(10 * number, 10 * number + 10), is_appended=log.exists())
        run(spark, [str(logs)], str(logs.with_name("warehouse")))
    return logs.with_name("warehouse")


def rows_of_files(warehouse: Path) -> set[Path]:
    return set(warehouse.rglob("*.parquet")) - set(warehouse.rglob("*.checkpoint*.parquet"))


def test_upkeep_joins_files_and_changes_no_row_that_a_reader_sees(
    spark: SparkSession, warehouse: Path
) -> None:
    before, result = published(warehouse), read_result(spark, str(warehouse))
    assert len(live_files(warehouse, "events")) >= RUNS_BEFORE
    data = folder_of(warehouse, "events") / live_files(warehouse, "events")[0]
    # Files of a killed writer are removed once no writer can still be using them.
    old, fresh = data.with_name("part-old.parquet"), data.with_name("part-fresh.parquet")
    for orphan in (old, fresh):
        shutil.copy(data, orphan)
    os.utime(old, (QUIET_SINCE, QUIET_SINCE))
    os.utime(fresh, (time.time(), time.time()))
    maintain(spark, str(warehouse))
    assert {len(live_files(warehouse, name)) for name in (*TABLES, "runs")} == {1}
    assert published(warehouse) == before
    assert read_result(spark, str(warehouse)) == result
    assert (old.exists(), fresh.exists(), data.exists()) == (False, True, True)


def test_old_events_are_deleted_on_request_and_results_are_kept(
    spark: SparkSession, logs: Path, warehouse: Path
) -> None:
    stored = Warehouse(str(warehouse))
    result = read_result(spark, stored)
    runs = stored.read(spark, RUNS).orderBy("finished_at").select("run_id").toArrow()
    first = runs["run_id"][0].as_py()
    _made_older(spark, stored, f"run_id = '{first}'")
    maintain(spark, stored, Upkeep(keep_days=30))
    assert numbers_in(warehouse) == Counter(range(10, 10 * RUNS_BEFORE))
    # Now even the newest run is old.
    _made_older(spark, stored, "true")
    maintain(spark, stored, Upkeep(keep_days=30))
    assert numbers_in(warehouse) == Counter()
    kept = read_result(spark, stored)
    assert kept.stack_traces
    for name in ("incidents", "stack_traces", "unknown", "effective_config"):
        assert getattr(kept, name) == getattr(result, name), name
    # The ledger still shows which content was read.
    assert run(spark, [str(logs)], stored) == result.run.run_id


def test_deleted_files_are_forgotten_and_others_stay_known(
    spark: SparkSession, tmp_path: Path
) -> None:
    warehouse = Warehouse(str(tmp_path / "warehouse"))
    logs, away = tmp_path / "logs", tmp_path / "away"
    names = ("kept.log", "deleted.log", "rotated.log")
    for number, name in enumerate(names):
        write(logs / "orders" / name, range(10 * number, 10 * number + 10))
    write(away / "orders" / "unmounted.log", range(30, 40))
    run(spark, [str(logs), str(away)], warehouse)
    rotated = logs / "orders" / "rotated.log"
    rotated.unlink()
    write(rotated, range(50, 60))
    last = run(spark, [str(logs), str(away)], warehouse)
    (logs / "orders" / "deleted.log").unlink()
    shutil.rmtree(away)
    _made_older(spark, warehouse, "true")
    maintain(spark, warehouse, Upkeep(keep_days=400))
    assert known(spark, warehouse) == ["deleted", "kept", "rotated", "rotated", "unmounted"]
    maintain(spark, warehouse, Upkeep(keep_days=30))
    assert known(spark, warehouse) == ["kept", "rotated", "unmounted"]
    assert run(spark, [str(logs)], warehouse) == last


def known(spark: SparkSession, warehouse: Warehouse) -> list[str]:
    """The name of each file content in the ledger."""
    rows = warehouse.read(spark, LOG_FILES).select("path", "file_id", "generation").distinct()
    return sorted(Path(row["path"]).stem for row in rows.collect())


def _made_older(spark: SparkSession, warehouse: Warehouse, which: str) -> None:
    spark.sql(
        f"UPDATE {warehouse.identifier(RUNS)} SET finished_at = finished_at - INTERVAL 365 DAYS "
        f"WHERE {which}"
    )


def test_upkeep_that_finds_nothing_to_do_writes_no_row(
    spark: SparkSession, warehouse: Path
) -> None:
    before = rows_of_files(warehouse)
    maintain(spark, str(warehouse), Upkeep(keep_days=30))
    assert rows_of_files(warehouse) == before


def test_upkeep_does_not_start_during_a_run(spark: SparkSession, warehouse: Path) -> None:
    with (
        held(warehouse, read_result(spark, str(warehouse)).run.started_at),
        pytest.raises(OutputHeldError, match="another run holds it"),
    ):
        maintain(spark, str(warehouse))


@pytest.mark.parametrize(
    ("upkeep", "words"),
    [
        ({"keep_days": 0}, "--keep-days: got 0, allowed: at least 1"),
        ({"retention_hours": 1}, "--retention-hours: got 1, allowed: at least 168"),
    ],
)
def test_harmful_upkeep_settings_are_refused(upkeep: dict[str, float], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Upkeep(**upkeep)


def test_upkeep_without_a_published_run_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no run has been published here"):
        maintain(spark, str(tmp_path / "warehouse"))
