"""Finds recurring causes in the tables, and compares two periods.

A cause is the signature at rank 1 of an incident, or the root cause fingerprint of an unknown
failure. In a time window, occurrences are counted by the timestamps of events, so an incident that
spans both windows counts in each window with the events of that window. If a period is a run, the
results of the run are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from flink_triage.errors import UsageError
from flink_triage.model.periods import CauseChange, Comparison, OptionChange, Period, Recurrence
from flink_triage.spark.tables.schemas import (
    DEPLOYMENTS,
    DIAGNOSES,
    EVENTS,
    FLINK_CONFIG,
    INCIDENTS,
    LOG_VOLUME,
    RUNS,
)
from flink_triage.spark.tables.warehouse import Warehouse

# A change in a rate by a smaller factor may be due to chance and is ignored.
_MUCH = 1.5
_UNKNOWN = (
    "array<struct<fingerprint: string, count: bigint, root_cause_type: string,"
    " exception_type: string>>"
)
_Change = Literal["new", "worse", "same", "better", "gone", "no logs"]
_ORDER: tuple[_Change, ...] = ("new", "worse", "same", "better", "gone", "no logs")


@dataclass(frozen=True, slots=True)
class _Side:
    count: int = 0
    hours: float | None = None

    @property
    def per_hour(self) -> float | None:
        return self.count / self.hours if self.hours else None


def recurrences(spark: SparkSession, warehouse: Warehouse) -> tuple[Recurrence, ...]:
    """The causes in the current results: new causes first, then by last occurrence, newest first.

    A cause is new if no run before the newest one found it. Raises ``UsageError`` if no run has
    been published.
    """
    _need_runs(spark, warehouse)
    occurred = (
        _occurrences(spark, warehouse)
        .groupBy("cause")
        .agg(
            F.min("logged_at").alias("first"),
            F.max("logged_at").alias("last"),
            F.count_distinct(F.to_date("logged_at")).alias("days"),
            F.sum("occurrences").alias("count"),
            F.sort_array(F.collect_set("deployment")).alias("deployments"),
        )
    )
    newest = warehouse.read(spark, RUNS).agg(F.max_by("run_id", "finished_at")).first()
    earlier = _causes(
        warehouse.published(spark, INCIDENTS), warehouse.published(spark, DEPLOYMENTS)
    ).where(F.col("run_id") != F.lit(newest[0] if newest else None))
    known = earlier.select("cause").distinct().withColumn("is_known", F.lit(True))
    rows = occurred.join(known, "cause", "left").join(_titles(spark, warehouse), "cause", "left")
    found = [
        Recurrence(
            cause=row["cause"],
            title=row["title"] or row["cause"],
            is_new=not row["is_known"],
            first_seen_at=row["first"],
            last_seen_at=row["last"],
            days=row["days"],
            count=row["count"],
            deployments=tuple(row["deployments"]),
        )
        for row in _rows(rows)
    ]
    found.sort(key=lambda r: r.cause)
    found.sort(key=lambda r: r.last_seen_at.timestamp() if r.last_seen_at else 0.0, reverse=True)
    return tuple(sorted(found, key=lambda r: not r.is_new))


def compare(
    spark: SparkSession,
    warehouse: Warehouse,
    before: Period,
    after: Period,
    deployments: Sequence[str] = (),
) -> Comparison:
    """The change of each cause, worst first, and the options that changed.

    Raises ``UsageError`` if one period is a run and the other a window, if no run has been
    published, if the run of a period is not published, or if one of ``deployments`` is in neither
    period. A window contains the deployments with events that have a timestamp in it, and a run
    contains those that it diagnosed.
    """
    if (before.run_id is None) != (after.run_id is None):
        raise UsageError(
            f"compare: {before.name!r} and {after.name!r} are a run and a window; "
            "allowed: two run IDs, or two windows START..END"
        )
    _need_runs(spark, warehouse)
    for period in (before, after):
        _need_run(spark, warehouse, period)
    sides = [_counts(spark, warehouse, period) for period in (before, after)]
    hours = [_hours(spark, warehouse, period) for period in (before, after)]
    seen = [set(of) for of in hours]
    wanted = set(deployments) or seen[0] | seen[1]
    unknown = wanted - (seen[0] | seen[1])
    if unknown:
        known = ", ".join(sorted(seen[0] | seen[1])) or "none"
        raise UsageError(f"--deployment: {min(unknown)!r} is in neither period, allowed: {known}")
    titles = {row["cause"]: row["title"] for row in _rows(_titles(spark, warehouse))}
    changes = []
    for deployment, cause in sorted({*sides[0], *sides[1]}):
        if deployment in wanted:
            place = (deployment, cause)
            left, right = (
                _Side(counts.get(place, 0), of.get(deployment))
                for counts, of in zip(sides, hours, strict=True)
            )
            has_logs = deployment in seen[0] and deployment in seen[1]
            title = titles.get(cause) or cause
            changes.append(_cause_change(deployment, cause, title, left, right, has_logs=has_logs))
    changes.sort(key=lambda c: (_ORDER.index(c.change), -c.after, c.deployment, c.cause))
    both = wanted & seen[0] & seen[1]
    return Comparison(
        before, after, tuple(changes), _options(spark, warehouse, before, after, both)
    )


def _cause_change(
    deployment: str, cause: str, title: str, left: _Side, right: _Side, *, has_logs: bool
) -> CauseChange:
    return CauseChange(
        deployment,
        cause,
        title,
        _change(left, right) if has_logs else "no logs",
        left.count,
        right.count,
        left.per_hour,
        right.per_hour,
    )


def _change(left: _Side, right: _Side) -> _Change:
    if not left.count:
        return "new"
    if not right.count:
        return "gone"
    was = left.count if left.per_hour is None else left.per_hour
    is_ = right.count if right.per_hour is None else right.per_hour
    if is_ > _MUCH * was:
        return "worse"
    return "better" if was > _MUCH * is_ else "same"


# --- rows --------------------------------------------------------------------------------------


def _causes(incidents: DataFrame, deployments: DataFrame) -> DataFrame:
    """Rows ``run_id, deployment, cause`` of diagnoses at rank 1 and of unknown failures."""
    named = incidents.where(F.col("root_cause_signature").isNotNull()).select(
        "run_id", "deployment", F.col("root_cause_signature").alias("cause")
    )
    unnamed = deployments.select(
        "run_id",
        "deployment",
        F.explode(F.from_json("unknown_json", _UNKNOWN)["fingerprint"]).alias("cause"),
    )
    return named.unionByName(unnamed).distinct()


def _occurrences(spark: SparkSession, warehouse: Warehouse) -> DataFrame:
    """Rows ``deployment, cause, logged_at, occurrences`` of the events with a current cause."""
    now = _causes(
        warehouse.current(spark, INCIDENTS.name), warehouse.current(spark, DEPLOYMENTS.name)
    )
    causes = now.select("deployment", "cause").distinct()
    events = warehouse.current(spark, EVENTS.name)
    named = events.select(
        "deployment", "logged_at", "occurrences", F.explode("matches.signature").alias("cause")
    )
    unnamed = events.select(
        "deployment", "logged_at", "occurrences", F.col("fingerprint_root_cause").alias("cause")
    )
    return named.unionByName(unnamed).join(F.broadcast(causes), ["deployment", "cause"])


def _titles(spark: SparkSession, warehouse: Warehouse) -> DataFrame:
    """Rows ``cause, title``: the title of a signature, or the exception of an unknown failure."""
    named = warehouse.published(spark, DIAGNOSES).groupBy(F.col("signature").alias("cause"))
    unknown = warehouse.current(spark, DEPLOYMENTS.name).select(
        F.explode(F.from_json("unknown_json", _UNKNOWN)).alias("u")
    )
    unnamed = unknown.groupBy(F.col("u.fingerprint").alias("cause"))
    exception = F.coalesce(F.col("u.root_cause_type"), F.col("u.exception_type"))
    return named.agg(F.first("title").alias("title")).unionByName(
        unnamed.agg(F.first(exception).alias("title"))
    )


def _counts(
    spark: SparkSession, warehouse: Warehouse, period: Period
) -> dict[tuple[str, str], int]:
    """The number of occurrences in the period, by deployment and cause."""
    if period.run_id is None:
        rows = _occurrences(spark, warehouse).where(_inside("logged_at", period))
    else:
        rows = _found_by(spark, warehouse, period.run_id)
    counted = rows.groupBy("deployment", "cause").agg(F.sum("occurrences").alias("count"))
    return {(row["deployment"], row["cause"]): row["count"] for row in _rows(counted)}


def _found_by(spark: SparkSession, warehouse: Warehouse, run_id: str) -> DataFrame:
    """Rows ``deployment, cause, occurrences`` of the results that were current after the run.

    Only deployments that the run diagnosed are included.
    """
    touched = warehouse.published(spark, DEPLOYMENTS).where(F.col("run_id") == run_id)
    diagnoses = warehouse.current(spark, DIAGNOSES.name, warehouse.runs(spark, run_id)).join(
        F.broadcast(touched.select("deployment")), "deployment", "left_semi"
    )
    unknown = touched.select(
        "deployment", F.explode(F.from_json("unknown_json", _UNKNOWN)).alias("u")
    )
    return (
        diagnoses.where(F.col("rank") == 1)
        .select("deployment", F.col("signature").alias("cause"), "occurrences")
        .unionByName(
            unknown.select(
                "deployment",
                F.col("u.fingerprint").alias("cause"),
                F.col("u.count").alias("occurrences"),
            )
        )
    )


def _hours(spark: SparkSession, warehouse: Warehouse, period: Period) -> dict[str, float | None]:
    """The number of hours with logs in the period, by deployment; ``None`` if it is a run."""
    if period.run_id is not None:
        touched = warehouse.published(spark, DEPLOYMENTS).where(F.col("run_id") == period.run_id)
        return {row["deployment"]: None for row in _rows(touched.select("deployment"))}
    volume = warehouse.published(spark, LOG_VOLUME).where(_inside("minute", period, is_minute=True))
    minutes = volume.groupBy("deployment").agg(F.count_distinct("minute").alias("minutes"))
    return {row["deployment"]: row["minutes"] / 60 for row in _rows(minutes)}


def _inside(column: str, period: Period, *, is_minute: bool = False) -> Column:
    """Whether a time is in [start, end).

    With ``is_minute``, the minute that contains ``start`` is included.
    """
    at = F.col(column)
    condition = at.isNotNull()
    if period.start is not None:
        start = F.lit(period.start)
        condition &= at >= (F.date_trunc("minute", start) if is_minute else start)
    if period.end is not None:
        condition &= at < F.lit(period.end)
    return condition


def _options(
    spark: SparkSession, warehouse: Warehouse, before: Period, after: Period, deployments: set[str]
) -> tuple[OptionChange, ...]:
    left, right = (_effective(spark, warehouse, period) for period in (before, after))
    changes = []
    for deployment, key in sorted({*left, *right}):
        if deployment not in deployments:
            continue
        was, is_ = left.get((deployment, key)), right.get((deployment, key))
        # If no option of the deployment is known on one side, its options cannot be compared.
        is_known = all(any(d == deployment for d, _ in side) for side in (left, right))
        if was != is_ and is_known:
            changes.append(OptionChange(deployment, key, was, is_))
    return tuple(changes)


def _effective(
    spark: SparkSession, warehouse: Warehouse, period: Period
) -> dict[tuple[str, str], str]:
    """The last value before the end of the period, or after the run, by deployment and option."""
    if period.run_id is not None:
        touched = warehouse.published(spark, DEPLOYMENTS).where(F.col("run_id") == period.run_id)
        runs = warehouse.runs(spark, period.run_id)
        rows = warehouse.current(spark, FLINK_CONFIG.name, runs).select(
            "deployment", "key", "value"
        )
        rows = rows.join(F.broadcast(touched.select("deployment")), "deployment", "left_semi")
    else:
        events = warehouse.published(spark, EVENTS).where(
            "lifecycle.kind = 'config' AND lifecycle.key IS NOT NULL"
        )
        if period.end is not None:
            events = events.where(F.col("logged_at") < F.lit(period.end))
        # As in the view flink_config, values printed by a JobManager take precedence.
        order = F.struct(F.coalesce(F.col("role") == "jobmanager", F.lit(False)), "logged_at")
        rows = events.groupBy("deployment", F.col("lifecycle.key").alias("key")).agg(
            F.max_by(F.coalesce("lifecycle.value", F.lit("")), order).alias("value")
        )
    return {(row["deployment"], row["key"]): row["value"] for row in _rows(rows)}


def _rows(rows: DataFrame) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rows.toArrow().to_pylist()
    return found


def _need_runs(spark: SparkSession, warehouse: Warehouse) -> None:
    if not warehouse.exists(spark, RUNS) or warehouse.read(spark, RUNS).isEmpty():
        raise warehouse.unpublished()


def _need_run(spark: SparkSession, warehouse: Warehouse, period: Period) -> None:
    if period.run_id is None:
        return
    runs = warehouse.read(spark, RUNS).orderBy(F.desc("finished_at")).select("run_id").limit(5)
    is_known = F.col("run_id") == period.run_id
    if not warehouse.read(spark, RUNS).where(is_known).limit(1).toArrow().num_rows:
        newest = ", ".join(row["run_id"] for row in _rows(runs))
        raise UsageError(f"compare: run {period.run_id!r} is not published; newest runs: {newest}")
