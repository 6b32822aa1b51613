"""Tables of other releases: an earlier one's are read and brought up to date, others are refused.

``python -m tests.spark.test_versions`` writes ``warehouse-v1.tar.gz`` anew; it is what a release
that wrote table version 1 left behind, so that is done once per table version.
"""

from __future__ import annotations

import tarfile
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from flink_triage.errors import CorruptStateError
from flink_triage.spark.pipeline import run
from flink_triage.spark.query.results import read_result
from flink_triage.spark.tables.schemas import EVENTS, RUNS, TABLE_VERSION
from flink_triage.spark.tables.warehouse import Warehouse
from tests.crash.workload import numbers_in, published, write

CURRENT, NEWER = str(TABLE_VERSION), str(TABLE_VERSION + 1)
FIXTURE = Path(__file__).with_name("warehouse-v1.tar.gz")


def logs_of_the_fixture(folder: Path) -> Path:
    write(folder / "logs" / "orders" / "jobmanager.log", range(12))
    return folder / "logs"


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> Path:
    """What this release left."""
    run(spark, [str(logs_of_the_fixture(tmp_path))], str(tmp_path / "warehouse"))
    return tmp_path / "warehouse"


def test_tables_of_version_1_are_refused_in_one_line_and_not_changed(
    spark: SparkSession, tmp_path: Path
) -> None:
    with tarfile.open(FIXTURE) as packed:
        packed.extractall(tmp_path, filter="data")
    house, logs = Warehouse(str(tmp_path / "warehouse")), logs_of_the_fixture(tmp_path)
    before = sorted((tmp_path / "warehouse").rglob("*"))
    told = r"runs: has table version 1, this release reads 2; .* with flink-triage run --warehouse"
    for use in (lambda: run(spark, [str(logs)], house), lambda: read_result(spark, house)):
        with pytest.raises(CorruptStateError, match=told) as refused:
            use()
        assert "\n" not in str(refused.value)
    lock = tmp_path / "warehouse" / ".flink-triage.lock"
    assert sorted({*(tmp_path / "warehouse").rglob("*")} - {lock}) == before


def rewrite(spark: SparkSession, house: Warehouse, name: str, *dropped: str, version: str) -> None:
    """The table as another release would have made it."""
    rows = spark.read.format("delta").load(house.location(name)).drop(*dropped)
    told = {"comment": f"table version {version}"}
    rows = rows.withColumn("run_id", F.col("run_id").alias("run_id", metadata=told))
    if name == RUNS.name:
        rows = rows.withColumn("tool_version", F.lit("0.0.1"))
    writer = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    writer.save(house.location(name))


def test_what_an_earlier_release_lacks_is_added(
    spark: SparkSession, warehouse: Path, tmp_path: Path
) -> None:
    house = Warehouse(str(warehouse))
    result = read_result(spark, house)
    rewrite(spark, house, "events", "first_user_frame", "product", version=CURRENT)
    rewrite(spark, house, "runs", version=CURRENT)
    # A report reads them as they are.
    assert read_result(spark, house).incidents == result.incidents
    assert house.read(spark, EVENTS).where("product IS NOT NULL").isEmpty()
    assert house.bring_up_to_date(spark) == ["events.first_user_frame", "events.product"]
    assert house.bring_up_to_date(spark) == []
    comments = {
        row["col_name"]: row["comment"]
        for row in spark.sql(f"DESCRIBE {house.identifier(EVENTS)}").collect()
    }
    assert set(comments) == set(EVENTS.column_names)
    logs = logs_of_the_fixture(tmp_path)
    write(logs / "orders" / "jobmanager.log", range(12, 20), is_appended=True)
    run(spark, [str(logs)], house)
    assert numbers_in(warehouse) == Counter(range(20))


@pytest.mark.parametrize("name", ["runs", "events"])
def test_tables_of_a_newer_release_are_refused_and_not_changed(
    spark: SparkSession, warehouse: Path, tmp_path: Path, name: str
) -> None:
    house = Warehouse(str(warehouse))
    rewrite(spark, house, name, version=NEWER)
    if name != RUNS.name:
        rewrite(spark, house, "runs", version=CURRENT)
    before = published(warehouse)
    logs = logs_of_the_fixture(tmp_path)
    write(logs / "orders" / "jobmanager.log", range(12, 20), is_appended=True)
    with pytest.raises(
        CorruptStateError, match=rf"{name}: has table version {NEWER}, this release"
    ):
        run(spark, [str(logs)], house)
    assert published(warehouse) == before


@pytest.mark.parametrize("name", ["runs", "events"])
def test_a_table_of_another_program_is_refused_and_not_changed(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    house, logs = Warehouse(str(tmp_path / "warehouse")), logs_of_the_fixture(tmp_path)
    spark.range(3).write.format("delta").save(house.location(name))
    with pytest.raises(CorruptStateError, match=rf"{name}: has no column .*, and is not ours"):
        run(spark, [str(logs)], house)
    assert spark.read.format("delta").load(house.location(name)).count() == 3
    assert [path.name for path in (tmp_path / "warehouse").glob("_*/*")] == [name]
