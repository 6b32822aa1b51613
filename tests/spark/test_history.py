"""Tests the history of causes, and comparisons that show the effect of a change."""

from __future__ import annotations

import re
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from flink_triage.cli.history_commands import period_of
from flink_triage.errors import UsageError
from flink_triage.local import Options
from flink_triage.model.periods import OptionChange, Period
from flink_triage.spark.pipeline import run
from flink_triage.spark.query.history import compare, recurrences
from flink_triage.spark.tables.warehouse import Warehouse

NPE = "operator/user-code-exception/npe-1.16.0/logs"
FULL_DISK = "checkpoint/tolerable-threshold-exceeded/disk-full-1.16.0/logs"
THRESHOLD = "execution.checkpointing.tolerable-failed-checkpoints"
NOON = "2026-11-21T12:00:00Z"


def later(logs: Path, to: Path, **changes: str) -> None:
    """Write the same logs seven hours later, after a cluster restart with different options."""

    def moved(found: re.Match[str]) -> str:
        at = datetime.strptime(found[0], "%Y-%m-%d %H:%M:%S") + timedelta(hours=7)
        return f"{at:%Y-%m-%d %H:%M:%S}"

    to.mkdir(parents=True, exist_ok=True)
    for log in logs.glob("*.log"):
        text = re.sub(r"(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", moved, log.read_text())
        for key, value in changes.items():
            text = re.sub(rf"({key.replace('_', '[.-]')}), .*", rf"\1, {value}", text)
        to.joinpath(f"later-{log.name}").write_text(text)


@pytest.fixture(scope="module")
def history(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Warehouse, str, str]:
    """Two jobs, one of which fails only in the first half of a day, and a run for each half."""
    recorded = Path(__file__).parents[1] / "logs"
    folder = tmp_path_factory.mktemp("history")
    orders, bills = folder / "logs/orders", folder / "logs/bills"
    for name, source in (("orders", NPE), ("bills", FULL_DISK)):
        shutil.copytree(recorded / source, folder / "logs" / name, copy_function=shutil.copyfile)
    settled = Options()
    warehouse = Warehouse(str(folder / "warehouse"))
    first = run(spark, [str(folder / "logs")], warehouse, settled)
    later(recorded / NPE, orders, jobmanager_memory_process_size="2g")
    # The TaskManager prints this option after the JobManager.
    taskmanager = orders / "later-flink-flink-taskexecutor-0-vm.log"
    taskmanager.write_text(re.sub(r"(rest\.port), .*", r"\1, 1", taskmanager.read_text()))
    later(recorded / "healthy/orders-1.16.0/logs", bills)
    second = run(spark, [str(folder / "logs")], warehouse, settled)
    return warehouse, first, second


def test_comparison_after_a_fix_shows_gone_and_unchanged_causes(
    spark: SparkSession, history: tuple[Warehouse, str, str]
) -> None:
    warehouse, _, _ = history
    found = compare(spark, warehouse, period_of(f"..{NOON}"), period_of(f"{NOON}.."))
    changes = {(cause.deployment, cause.cause): cause for cause in found.causes}
    full = changes["bills", "disk/full"]
    assert (full.change, full.after) == ("gone", 0)
    assert full.before > 0
    thrown = changes["orders", "operator/user-code-exception"]
    assert (thrown.change, thrown.before) == ("same", thrown.after)
    of_orders = [change for change in found.options if change.deployment == "orders"]
    assert of_orders == [OptionChange("orders", "jobmanager.memory.process.size", "1100m", "2g")]


def test_two_runs_are_compared_by_what_each_found(
    spark: SparkSession, history: tuple[Warehouse, str, str]
) -> None:
    warehouse, first, second = history
    found = compare(spark, warehouse, period_of(first), period_of(second), ["orders"])
    (thrown,) = found.causes
    assert (thrown.change, thrown.before_per_hour) == ("worse", None)
    assert thrown.after == 2 * thrown.before


def test_a_deployment_without_logs_on_one_side_is_not_reported_as_gone(
    spark: SparkSession, history: tuple[Warehouse, str, str]
) -> None:
    warehouse, _, _ = history
    empty = Period("a year", None, datetime(2027, 1, 1, tzinfo=UTC))
    found = compare(spark, warehouse, period_of(f"..{NOON}"), empty)
    assert {cause.change for cause in found.causes} == {"no logs"}


def test_history_distinguishes_new_from_known_causes(
    spark: SparkSession, history: tuple[Warehouse, str, str]
) -> None:
    warehouse, _, _ = history
    causes = {cause.cause: cause for cause in recurrences(spark, warehouse)}
    full = causes["disk/full"]
    assert (full.is_new, full.deployments, full.days) == (False, ("bills",), 1)
    assert causes["operator/user-code-exception"].count > 2


@pytest.mark.parametrize(
    ("deployment", "run_id", "words"),
    [
        pytest.param("payments", None, "'payments' is in neither period", id="another deployment"),
        pytest.param("orders", "0" * 16, "is not published", id="another run"),
    ],
)
def test_unknown_deployment_or_run_is_refused_by_name(
    spark: SparkSession,
    history: tuple[Warehouse, str, str],
    deployment: str,
    run_id: str | None,
    words: str,
) -> None:
    warehouse, first, _ = history
    before = Period("before", run_id or first)
    with pytest.raises(UsageError, match=words):
        compare(spark, warehouse, before, period_of(first), [deployment])


def test_a_run_and_a_window_are_not_compared(
    spark: SparkSession, history: tuple[Warehouse, str, str]
) -> None:
    warehouse, first, _ = history
    with pytest.raises(UsageError, match="two run IDs, or two windows"):
        compare(spark, warehouse, period_of(first), period_of(f"{NOON}.."))
