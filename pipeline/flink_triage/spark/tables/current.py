"""Which published rows are current: in go runs, out come the rows that the newest of them left."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from flink_triage.spark.tables.schemas import DEPLOYMENTS, FLINK_CONFIG, INCIDENTS
from flink_triage.spark.tables.warehouse import Warehouse


def current_deployments(spark: SparkSession, house: Warehouse, runs: DataFrame) -> DataFrame:
    """The row of each deployment that the newest of ``runs`` to touch it left."""
    rows = house.read(spark, DEPLOYMENTS).join(F.broadcast(runs), "run_id")
    newest = Window.partitionBy("deployment").orderBy(F.desc("at"), F.desc("run_id"))
    ranked = rows.withColumn("newest", F.row_number().over(newest)).where(F.col("newest") == 1)
    return ranked.select(*DEPLOYMENTS.column_names)


def current_incidents(spark: SparkSession, house: Warehouse, runs: DataFrame) -> DataFrame:
    """All incidents of each deployment: those that its newest run told, and the closed ones."""
    deployments = current_deployments(spark, house, runs)
    return counting_incidents(house.published(spark, INCIDENTS, runs), deployments)


def counting_incidents(incidents: DataFrame, deployments: DataFrame) -> DataFrame:
    """Those that ``deployments`` were left with, out of all."""
    told = deployments.select("deployment", "whole_run_id", F.col("run_id").alias("told_by"))
    rows = incidents.join(F.broadcast(told), ["deployment", "whole_run_id"])
    counts = F.col("is_closed") | (F.col("run_id") == F.col("told_by"))
    return rows.where(counts).select(*INCIDENTS.column_names)


def current_config(spark: SparkSession, house: Warehouse, runs: DataFrame) -> DataFrame:
    """The last word on each option of each deployment, a JobManager's before others'."""
    rows = house.read(spark, FLINK_CONFIG).join(F.broadcast(runs), "run_id")
    is_manager = F.coalesce(F.col("role") == "jobmanager", F.lit(False))
    word = F.struct(is_manager, "logged_at", "path", "line", "at")
    others = [name for name in FLINK_CONFIG.column_names if name not in ("deployment", "key")]
    latest = rows.groupBy("deployment", "key").agg(F.max_by(F.struct(*others), word).alias("said"))
    return latest.select("*", "said.*").select(*FLINK_CONFIG.column_names)
