"""Reads a ``Result`` from the tables, which `report` renders without a new diagnosis."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from flink_triage.diagnosis import worst_first
from flink_triage.diagnosis.episodes.unknown_failures import merge_unknown
from flink_triage.diagnosis.incidents.cited_traces import cited_traces, shown_traces, whole_trace
from flink_triage.errors import UsageError
from flink_triage.json_values import decode
from flink_triage.logs.text.redact import redact_path
from flink_triage.model import (
    Coverage,
    Incident,
    Quarantined,
    Result,
    Run,
    SkippedSignature,
    Throwable,
    UnknownFailure,
    by_importance,
)
from flink_triage.settings import DEFAULT_SETTINGS
from flink_triage.spark.ingest.ledger import COUNTED
from flink_triage.spark.tables.published_runs import frame_of
from flink_triage.spark.tables.schemas import (
    DEPLOYMENTS,
    FLINK_CONFIG,
    INCIDENTS,
    LOG_FILES,
    RUNS,
    STACK_TRACES,
    TABLES,
)
from flink_triage.spark.tables.warehouse import Warehouse

# Columns of the runs that a result needs.
_OF_RUNS = (
    "run_id",
    "started_at",
    "finished_at",
    "tool_version",
    "signature_set",
    "signatures_evaluated",
    "signatures_skipped",
    "options_json",
    "undiagnosed",
)


def read_result(
    spark: SparkSession,
    warehouse: Warehouse | str,
    max_evidence: int = DEFAULT_SETTINGS.max_evidence,
) -> Result:
    """The result of all deployments, each from its newest published run.

    Raises ``UsageError`` if no run has been published.
    """
    warehouse = Warehouse.at(warehouse)
    if not warehouse.exists(spark, RUNS):
        raise warehouse.unpublished()
    rows = warehouse.read(spark, RUNS).select(*_OF_RUNS).toArrow().to_pylist()
    if not rows:
        raise warehouse.unpublished()
    rows.sort(key=itemgetter("finished_at", "run_id"))
    newest = rows[-1]
    # Every query joins the runs, so they are looked up once.
    known = frame_of(spark, [row["run_id"] for row in rows])
    # For each of these queries, planning on a single Spark thread takes longer than execution.
    with ThreadPoolExecutor() as beside:
        coverage = beside.submit(_coverage, spark, warehouse, newest, known)
        config = beside.submit(_config, spark, warehouse, known)
        incidents, unknown = _found(spark, warehouse, newest["run_id"], known)
        merged = merge_unknown(unknown, max_evidence)
        traces = _traces(spark, warehouse, cited_traces(incidents, merged), known)
        return Result(
            tool={"name": "flink-triage", "version": newest["tool_version"]},
            run=Run(
                newest["run_id"],
                newest["started_at"],
                newest["finished_at"],
                newest["signature_set"],
            ),
            coverage=coverage.result(),
            incidents=tuple(incidents),
            unknown=merged,
            effective_config=config.result(),
            stack_traces=traces,
        )


def _found(
    spark: SparkSession, warehouse: Warehouse, run_id: str, runs: DataFrame
) -> tuple[list[Incident], list[UnknownFailure]]:
    """The current incidents and unknown failures, with the statuses of the run ``run_id``."""
    if not warehouse.exists(spark, INCIDENTS):
        return [], []
    deployments = warehouse.current(spark, DEPLOYMENTS.name, runs)
    rows = deployments.select("deployment", "unknown_json").toArrow().to_pylist()
    unknown = [
        decode(UnknownFailure, value, "unknown_json")
        for row in sorted(rows, key=itemgetter("deployment"))
        for value in json.loads(row["unknown_json"])
    ]
    return _incidents(warehouse.current(spark, INCIDENTS.name, runs), run_id), unknown


def _incidents(rows: DataFrame, run_id: str) -> list[Incident]:
    """Incidents by deployment, worst first.

    Only incidents that the run ``run_id`` wrote can be new, worse or resolved.
    """
    columns = ("run_id", "is_closed", "status", "incident_json")
    found = []
    for row in rows.select(*columns).toArrow().to_pylist():
        incident = decode(Incident, json.loads(row["incident_json"]), "incident_json")
        status = row["status"]
        if row["run_id"] != run_id:
            goes_on = not row["is_closed"] and incident.outcome != "recovered"
            status = "ongoing" if goes_on and incident.is_failure else None
        found.append(replace(incident, status=status))
    return sorted(found, key=lambda incident: (incident.deployment, worst_first(incident)))


def _traces(
    spark: SparkSession, warehouse: Warehouse, wanted: Sequence[str], runs: DataFrame
) -> dict[str, str]:
    """The exemplar of each wanted trace, from its first occurrence."""
    if not wanted or not warehouse.exists(spark, STACK_TRACES):
        return {}
    names = spark.createDataFrame([(name,) for name in wanted], "fingerprint string")
    thrown = F.col("throwables")[0]
    rows = (
        warehouse.current(spark, STACK_TRACES.name, runs)
        .join(F.broadcast(names), "fingerprint", "left_semi")
        .select(
            "fingerprint",
            "exemplar",
            thrown["type"].alias("type"),
            thrown["message"].alias("message"),
        )
    )
    found = {
        row["fingerprint"]: whole_trace(
            Throwable(row["type"], row["message"] or "").text, row["exemplar"]
        )
        for row in rows.toArrow().to_pylist()
    }
    return shown_traces(found, DEFAULT_SETTINGS.max_trace_chars)


def read_table(spark: SparkSession, warehouse: Warehouse | str, name: str) -> DataFrame:
    """The published, current rows of a table of docs/tables.md.

    Raises ``UsageError`` for an unknown table, and if the warehouse has no tables.
    """
    warehouse = Warehouse.at(warehouse)
    if name not in TABLES:
        raise UsageError(f"unknown table {name!r}; tables: {', '.join(TABLES)}")
    if not warehouse.exists(spark, RUNS):
        raise warehouse.unpublished()
    return warehouse.current(spark, name)


def create_views(spark: SparkSession, warehouse: Warehouse | str) -> tuple[str, ...]:
    """Make the tables of docs/tables.md available to SQL; return their names.

    In a schema, they are views next to the stored tables; the first run of each release also
    creates these views. For a folder, they are temporary views of the session. Raises
    ``UsageError`` if the warehouse has no tables.
    """
    warehouse = Warehouse.at(warehouse)
    if not warehouse.exists(spark, RUNS):
        raise warehouse.unpublished()
    return warehouse.create_views(spark)


def cited_now(spark: SparkSession, warehouse: Warehouse, runs: DataFrame) -> tuple[str, ...]:
    """Fingerprints of the stack traces to which the newest results in ``runs`` refer."""
    return cited_traces(*_found(spark, warehouse, "", runs))


def _coverage(
    spark: SparkSession, warehouse: Warehouse, run: dict[str, Any], runs: DataFrame
) -> Coverage:
    files = _files(warehouse.current(spark, LOG_FILES.name, runs))
    named = files.filter(pc.is_valid(files.column("path"))).select(["path", "reason"])
    problems = [*named.to_pylist(), *pc.list_flatten(files.column("problems")).to_pylist()]
    bad = {Quarantined(redact_path(p["path"]), p["reason"]) for p in problems}
    bad |= {Quarantined(f["deployment"], f["reason"]) for f in run["undiagnosed"] or ()}
    masked = files.filter(pc.greater(files.column("redactions"), 0))
    kinds: Counter[str] = Counter()
    for of_file in masked.column("redactions_by_kind").to_pylist():
        kinds.update(dict(of_file or ()))
    fingerprints = 0
    if warehouse.exists(spark, STACK_TRACES):
        fingerprints = int(warehouse.current(spark, STACK_TRACES.name, runs).count())

    def total(column: str) -> int:
        return pc.sum(files.column(column)).as_py() or 0

    return Coverage(
        files=total("is_opened"),
        bytes=total("bytes_read"),
        events=total("event_count"),
        stack_traces=total("trace_count"),
        fingerprints=fingerprints,
        quarantined=by_importance(bad),
        truncated=total("truncated"),
        redactions=total("redactions"),
        redactions_by_kind=dict(sorted(kinds.items())),
        decode_errors=total("decode_errors"),
        signatures_evaluated=run["signatures_evaluated"],
        signatures_skipped=tuple(
            SkippedSignature(s["signature"], s["reason"]) for s in run["signatures_skipped"]
        ),
        assumed_timezone=json.loads(run["options_json"])["timezone"],
    )


def _files(rows: DataFrame) -> pa.Table:
    """The counts of each file; ``path`` is null unless the file itself is a problem.

    There may be a million files, so they stay Arrow columns.
    """
    # A path that could not be opened has no compression.
    is_opened = F.col("compression").isNotNull()
    is_whole = (F.col("state") == "quarantined") & is_opened
    has_problems = F.coalesce(F.size("problems"), F.lit(0)) > 0
    is_bad = (F.col("state") == "quarantined") | ((F.col("state") == "partial") & ~has_problems)
    return rows.select(
        is_opened.alias("is_opened"),
        # A file that was opened and quarantined counts with all its bytes.
        F.when(is_whole, F.col("size_bytes"))
        .otherwise(F.col("consumed_bytes") + F.col("held_back_bytes"))
        .alias("bytes_read"),
        F.when(is_bad, F.col("path")).alias("path"),
        "reason",
        "problems",
        "redactions_by_kind",
        *COUNTED,
    ).toArrow()


def _config(
    spark: SparkSession, warehouse: Warehouse, runs: DataFrame
) -> dict[str, dict[str, str]]:
    config: dict[str, dict[str, str]] = defaultdict(dict)
    if warehouse.exists(spark, FLINK_CONFIG):
        rows = warehouse.current(spark, FLINK_CONFIG.name, runs).select(
            "deployment", "key", "value"
        )
        for row in rows.orderBy("deployment", "key").toArrow().to_pylist():
            config[row["deployment"]][row["key"]] = row["value"]
    return dict(config)
