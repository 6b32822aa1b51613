"""Tests tables of other releases: compatible tables are upgraded, and others are rejected.

``warehouse-v1.tar.gz`` contains the tables of a release with table version 1.
"""

from __future__ import annotations

import shutil
import tarfile
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from flink_triage.errors import CorruptStateError
from flink_triage.spark.pipeline import run
from flink_triage.spark.query.read_result import create_views, read_result
from flink_triage.spark.tables.schemas import EVENTS, RUNS
from flink_triage.spark.tables.table_spec import TABLE_VERSION
from flink_triage.spark.tables.warehouse import Warehouse
from tests.crash.workload import numbers_in, published, write

CURRENT, NEWER = str(TABLE_VERSION), str(TABLE_VERSION + 1)
FIXTURE = Path(__file__).with_name("warehouse-v1.tar.gz")


def logs_of_the_fixture(folder: Path) -> Path:
    write(folder / "logs" / "orders" / "jobmanager.log", range(12))
    return folder / "logs"


@pytest.fixture(scope="module")
def template(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs, and the tables that this release writes for them."""
    folder = tmp_path_factory.mktemp("template")
    run(spark, [str(logs_of_the_fixture(folder))], str(folder / "warehouse"))
    return folder


@pytest.fixture
def warehouse(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template / "warehouse", tmp_path / "warehouse"))


@pytest.fixture
def grown(template: Path) -> Path:
    """The logs, with more content than the warehouse contains."""
    logs = logs_of_the_fixture(template)
    write(logs / "orders" / "jobmanager.log", range(12, 20), is_appended=True)
    return logs


def test_tables_of_version_1_are_refused_in_one_line_and_not_changed(
    spark: SparkSession, tmp_path: Path
) -> None:
    with tarfile.open(FIXTURE) as packed:
        packed.extractall(tmp_path, filter="data")
    warehouse, logs = Warehouse(str(tmp_path / "warehouse")), logs_of_the_fixture(tmp_path)
    before = sorted((tmp_path / "warehouse").rglob("*"))
    message = (
        r"runs: has table version 1, this release reads 2; .* with flink-triage run --warehouse"
    )
    for use in (lambda: run(spark, [str(logs)], warehouse), lambda: read_result(spark, warehouse)):
        with pytest.raises(CorruptStateError, match=message) as refused:
            use()
        assert "\n" not in str(refused.value)
    lock = tmp_path / "warehouse" / ".flink-triage.lock"
    assert sorted({*(tmp_path / "warehouse").rglob("*")} - {lock}) == before


def rewrite(
    spark: SparkSession,
    warehouse: Warehouse,
    name: str,
    *dropped: str,
    version: str = CURRENT,
    **changed: str,
) -> None:
    """Rewrite the table as another build would: without columns, or with SQL expressions."""
    rows = spark.read.format("delta").load(warehouse.location(name))
    for place in dropped:
        column, _, field = place.partition(".")
        rows = rows.withColumn(column, F.col(column).dropFields(field)) if field else rows
        rows = rows if field else rows.drop(column)
    rows = rows.withColumns({column: F.expr(value) for column, value in changed.items()})
    column_metadata = {"comment": f"table version {version}"}
    rows = rows.withColumn("run_id", F.col("run_id").alias("run_id", metadata=column_metadata))
    writer = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    writer.save(warehouse.location(name))


def test_columns_missing_from_another_build_are_added(
    spark: SparkSession, warehouse: Path, grown: Path
) -> None:
    stored = Warehouse(str(warehouse))
    result = read_result(spark, stored)
    rewrite(spark, stored, "events", "spread")
    rewrite(spark, stored, "diagnosed", "failure", "incident.outcome", "state.has_closed")
    rewrite(spark, stored, "runs", "undiagnosed")
    # Readers see nulls.
    assert read_result(spark, stored).incidents == result.incidents
    create_views(spark, stored)
    assert [row["outcome"] for row in spark.sql("SELECT outcome FROM incidents").collect()] == [
        None
    ]
    run(spark, [str(grown)], stored)
    assert numbers_in(warehouse) == Counter(range(20))
    assert [incident.status for incident in read_result(spark, stored).incidents] == ["ongoing"]
    assert stored.bring_up_to_date(spark) == []


@pytest.mark.parametrize(
    ("name", "changed", "words"),
    [
        pytest.param(
            "events", {"line": "string(line)"}, "line is string, expected bigint", id="a type"
        ),
        pytest.param(
            "diagnosed",
            {"state": "named_struct('whole_run_id', state.has_closed)"},
            "state.whole_run_id is boolean, expected string",
            id="a field of a struct",
        ),
    ],
)
def test_table_with_different_columns_is_refused_and_not_changed(
    spark: SparkSession,
    warehouse: Path,
    grown: Path,
    name: str,
    changed: dict[str, str],
    words: str,
) -> None:
    stored = Warehouse(str(warehouse))
    rewrite(spark, stored, name, **changed)
    rewrite(spark, stored, "runs", "undiagnosed")
    before = published(warehouse)
    with pytest.raises(CorruptStateError, match=f"{name}: column {words}; write to a new") as told:
        run(spark, [str(grown)], stored)
    assert "\n" not in str(told.value)
    assert published(warehouse) == before


def test_columns_missing_from_an_earlier_release_are_added(
    spark: SparkSession, warehouse: Path, grown: Path
) -> None:
    stored = Warehouse(str(warehouse))
    result = read_result(spark, stored)
    rewrite(spark, stored, "events", "first_user_frame", "product")
    rewrite(spark, stored, "runs", tool_version="'0.0.1'")
    # A report reads the tables without upgrading them.
    assert read_result(spark, stored).incidents == result.incidents
    assert stored.read(spark, EVENTS).where("product IS NOT NULL").isEmpty()
    assert stored.bring_up_to_date(spark) == ["events.first_user_frame", "events.product"]
    assert stored.bring_up_to_date(spark) == []
    comments = {
        row["col_name"]: row["comment"]
        for row in spark.sql(f"DESCRIBE {stored.identifier(EVENTS)}").collect()
    }
    assert set(comments) == set(EVENTS.column_names)
    run(spark, [str(grown)], stored)
    assert numbers_in(warehouse) == Counter(range(20))


@pytest.mark.parametrize("name", ["runs", "events"])
def test_tables_of_a_newer_release_are_refused_and_not_changed(
    spark: SparkSession, warehouse: Path, grown: Path, name: str
) -> None:
    stored = Warehouse(str(warehouse))
    rewrite(spark, stored, name, version=NEWER)
    if name != RUNS.name:
        rewrite(spark, stored, "runs", tool_version="'0.0.1'")
    before = published(warehouse)
    with pytest.raises(
        CorruptStateError, match=rf"{name}: has table version {NEWER}, this release"
    ):
        run(spark, [str(grown)], stored)
    assert published(warehouse) == before


@pytest.mark.parametrize("name", ["runs", "events"])
def test_a_table_of_another_program_is_refused_and_not_changed(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    warehouse, logs = Warehouse(str(tmp_path / "warehouse")), logs_of_the_fixture(tmp_path)
    spark.range(3).write.format("delta").save(warehouse.location(name))
    with pytest.raises(
        CorruptStateError, match=rf"{name}: has no column .*, and was not created by flink-triage"
    ):
        run(spark, [str(logs)], warehouse)
    assert spark.read.format("delta").load(warehouse.location(name)).count() == 3
    assert [path.name for path in (tmp_path / "warehouse").glob("_*/*")] == [name]
