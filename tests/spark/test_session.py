"""Tests that only sessions started by this program are configured for the amount of data."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from flink_triage.settings import GIB
from flink_triage.spark.runtime.java import Java
from flink_triage.spark.runtime.session import (
    OWN_SESSION,
    QUERIES,
    _class_archive,
    session_options,
    suit,
)


def queries_of(spark: SparkSession) -> dict[str, str | None]:
    return {key: spark.conf.get(key, None) for key in QUERIES["much"]}


def test_session_settings_depend_on_the_amount_of_new_data(spark: SparkSession) -> None:
    suit(spark, 10 * GIB)
    assert queries_of(spark) == QUERIES["much"]
    suit(spark, GIB)
    assert queries_of(spark) == QUERIES["medium"]
    suit(spark, 1)
    assert queries_of(spark) == QUERIES["little"]


def test_settings_changed_by_the_user_are_kept(spark: SparkSession) -> None:
    partitions = "spark.sql.shuffle.partitions"
    suit(spark, 1)
    spark.conf.set(partitions, "7")
    try:
        suit(spark, 10 * GIB)
        assert queries_of(spark) == QUERIES["much"] | {partitions: "7"}
        suit(spark, 1)
        assert queries_of(spark) == QUERIES["little"] | {partitions: "7"}
    finally:
        spark.conf.set(partitions, QUERIES["little"][partitions])


def test_session_started_by_the_user_is_not_changed(spark: SparkSession) -> None:
    suit(spark, 1)
    other = spark.newSession()
    other.conf.set(OWN_SESSION, "")
    suit(other, 10 * GIB)
    assert queries_of(other) == queries_of(spark)


@pytest.mark.parametrize(
    "given",
    ["-XX:SharedArchiveFile=a", "-XX:ArchiveClassesAtExit=a", "-Xshare:off"],
)
def test_a_class_archive_of_the_user_replaces_ours(
    monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    java = Java(Path("java"), 21)
    monkeypatch.setenv("FLINK_TRIAGE_JAVA_OPTIONS", "-Xss2m")
    assert "AutoCreateSharedArchive" in _class_archive(java)
    monkeypatch.setenv("FLINK_TRIAGE_JAVA_OPTIONS", f"-Xss2m {given}")
    assert _class_archive(java) == ""


def test_options_for_the_jvm_are_added_to_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLINK_TRIAGE_JAVA_OPTIONS", "-Xss2m -Xlog:disable")
    options = session_options((), verbose=False, size_bytes=0)["spark.driver.extraJavaOptions"]
    assert options.startswith("-XX:")
    assert options.endswith(" -Xss2m -Xlog:disable")
