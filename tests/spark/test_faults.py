"""Tests full disks, read-only disks, and damaged tables: clear errors and no partial results."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from flink_triage.errors import CorruptStateError, EnvironmentProblem
from flink_triage.spark.pipeline import run
from flink_triage.spark.query.read_result import read_result
from flink_triage.spark.runtime.explained_errors import explanation
from tests.crash.workload import (
    folder_of,
    numbers_in,
    published,
    unpublished_rows,
    write_first,
    write_more,
)

IS_WHOLE = os.environ.get("CRASH") == "all"
# A tmpfs allocates pages of 4 KiB and rejects a write that exceeds its size. A run of this size
# writes about 60 files of one or two pages: each step allows a few more writes.
STEP_PAGES = int(os.environ.get("DISK_STEP_PAGES", "4" if IS_WHOLE else "80"))
PAGE_BYTES = 4096


def mount(*arguments: str) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no permission to mount: {done.stderr.strip()}")


@contextmanager
def small_disk(folder: Path, size_bytes: int) -> Iterator[Path]:
    """A file system of this size."""
    folder.mkdir(exist_ok=True)
    mount("-t", "tmpfs", "-o", f"size={size_bytes}", "none", str(folder))
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def problem_of(spark: SparkSession, logs: Path, warehouse: Path) -> str:
    try:
        run(spark, [str(logs)], str(warehouse))
    except EnvironmentProblem as error:
        return str(error)
    return ""


@pytest.fixture(scope="module")
def states(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path, Path]:
    """Logs in their second state, a warehouse after the first state, and one after both."""
    folder = tmp_path_factory.mktemp("faults")
    logs, first, both = folder / "logs", folder / "first", folder / "both"
    write_first(logs)
    run(spark, [str(logs)], str(first))
    write_more(logs)
    shutil.copytree(first, both)
    run(spark, [str(logs)], str(both))
    return logs, first, both


def test_a_disk_that_fills_at_any_write_leaves_the_state_before_or_after(
    spark: SparkSession, states: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    logs, first, both = states
    before, after = published(first), published(both)
    disk = tmp_path / "disk"
    outcomes: list[str] = []
    for pages in range(0, 10_000, STEP_PAGES):
        with small_disk(disk, 1 << 30):
            warehouse = shutil.copytree(first, disk / "warehouse")
            used = shutil.disk_usage(disk).used
            mount("-o", f"remount,size={used + pages * PAGE_BYTES}", str(disk))
            problem = problem_of(spark, logs, warehouse)
            found = published(warehouse)
            outcomes.append("before" if found == before else "after")
            assert found in (before, after)
            if not problem:
                break
            assert "no space left; free some space" in problem
            mount("-o", f"remount,size={1 << 30}", str(disk))
            run(spark, [str(logs)], str(warehouse))
            assert published(warehouse) == after
            assert unpublished_rows(warehouse) == {}
    print(f"steps of {STEP_PAGES * PAGE_BYTES} bytes: {outcomes}")
    assert outcomes[0] == "before"
    assert outcomes[-1] == "after"


def test_a_read_only_warehouse_is_reported_and_can_still_be_read(
    spark: SparkSession, states: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    logs, first, _ = states
    with small_disk(tmp_path / "disk", 1 << 30) as disk:
        warehouse = shutil.copytree(first, disk / "warehouse")
        mount("-o", "remount,ro", str(disk))
        with pytest.raises(EnvironmentProblem, match=r"cannot be written|read-only"):
            run(spark, [str(logs)], str(warehouse))
        assert read_result(spark, str(warehouse)).incidents
        mount("-o", "remount,rw", str(disk))
        run(spark, [str(logs)], str(warehouse))
        assert set(numbers_in(Path(warehouse)).values()) == {1}


def torn(log: Path) -> None:
    newest = max(log.glob("[0-9]*.json"))
    newest.write_bytes(newest.read_bytes()[: newest.stat().st_size // 2])


def gone(log: Path) -> None:
    min(log.glob("[0-9]*.json")).unlink()


def without_data(log: Path) -> None:
    for file in log.parent.glob("*.parquet"):
        file.unlink()


@pytest.mark.parametrize("table", ["runs", "log_files", "events"])
@pytest.mark.parametrize("damage", [torn, gone, without_data])
def test_a_damaged_table_is_refused_and_nothing_is_overwritten(
    spark: SparkSession,
    states: tuple[Path, Path, Path],
    tmp_path: Path,
    table: str,
    damage: Callable[[Path], None],
) -> None:
    logs, first, _ = states
    warehouse = Path(shutil.copytree(first, tmp_path / "warehouse"))
    damage(folder_of(warehouse, table) / "_delta_log")
    runs = folder_of(warehouse, "runs") / "_delta_log"
    before = {path.name: path.read_bytes() for path in runs.glob("*.json")}
    with pytest.raises(CorruptStateError, match="the tables are damaged"):
        run(spark, [str(logs)], str(warehouse))
    assert {path.name: path.read_bytes() for path in runs.glob("*.json")} == before


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("java.io.IOException: No space left on device", "no space left"),
        ("java.io.FileNotFoundException: /wh/events/x (Permission denied)", "by this user"),
        ("java.lang.OutOfMemoryError: Java heap space", "FLINK_TRIAGE_DRIVER_MEMORY"),
        ("Python worker exited unexpectedly (crashed)", "a Spark worker died"),
    ],
)
def test_jvm_errors_are_explained_in_one_line(text: str, words: str) -> None:
    found = explanation(text, "/wh")
    assert isinstance(found, EnvironmentProblem)
    assert words in str(found)


def test_an_unknown_error_is_not_explained() -> None:
    assert explanation("java.lang.IllegalStateException: huh", "/wh") is None
