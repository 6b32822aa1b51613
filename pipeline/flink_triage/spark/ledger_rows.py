"""Rows of `log_files`: read before a run as what is known, written after it as what was read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from flink_triage.spark.content import (
    CHUNK_BYTES,
    DIGEST_BYTES,
    Opener,
    Prefix,
    hash_prefix,
    sha256,
)
from flink_triage.spark.ledger import Alias, LedgerEntry, WorkPlan
from flink_triage.spark.schemas import LOG_FILES
from flink_triage.spark.staging import RangeTask
from flink_triage.spark.tables import Warehouse
from flink_triage.spark.tasks import FileToRead

COUNTED = ("event_count", "trace_count", "redactions", "truncated", "decode_errors")
Row = dict[str, Any]


def latest_files(spark: SparkSession, house: Warehouse, runs: DataFrame) -> DataFrame:
    """The newest row of each path that one of ``runs`` (`Warehouse.runs`) wrote."""
    rows = house.read(spark, LOG_FILES).join(F.broadcast(runs), "run_id")
    newest = Window.partitionBy("path").orderBy(F.desc("at"), F.desc("run_id"))
    rows = rows.withColumn("newest", F.row_number().over(newest)).where(F.col("newest") == 1)
    return rows.select(*LOG_FILES.column_names)


def read_entries(spark: SparkSession, house: Warehouse, runs: DataFrame) -> tuple[LedgerEntry, ...]:
    """The ledger as the last of ``runs`` (`Warehouse.runs`) left it."""
    if not house.exists(spark, LOG_FILES):
        return ()
    rows = latest_files(spark, house, runs).toArrow().to_pylist()
    return tuple(map(entry_of, rows))


def entry_of(row: Mapping[str, Any]) -> LedgerEntry:
    """What the plan is told of a path, out of its row."""
    consumed = Prefix(row["consumed_bytes"], row["chunk_digests"] or b"", row["tail_sha256"])
    return LedgerEntry(
        path=row["path"],
        file_id=row["file_id"],
        generation=row["generation"],
        state=row["state"],
        size_bytes=row["size_bytes"],
        modified_at=row["modified_at"],
        head_bytes=row["head_bytes"],
        head_sha256=row["head_sha256"],
        consumed=consumed,
        consumed_lines=row["consumed_lines"],
        deployment=row["deployment"],
        held_back_bytes=row["held_back_bytes"],
        reason=row["reason"],
        row={name: value for name, value in row.items() if name != "run_id"},
    )


def finished_rows(
    plan: WorkPlan,
    files: Sequence[FileToRead],
    tasks: Sequence[RangeTask],
    summaries: Sequence[Mapping[str, Any]],
    open_file: Opener,
) -> list[Row]:
    """One row per path that the run looked at and did not find unchanged."""
    by_number = {summary["range_number"]: summary for summary in summaries}
    by_path: dict[str, list[tuple[RangeTask, Mapping[str, Any]]]] = defaultdict(list)
    for task in tasks:
        by_path[task.byte_range.profile.path].append((task, by_number[task.number]))
    rows = {file.work.path: _file_row(file, by_path[file.work.path], open_file) for file in files}
    for bad in plan.unreadable:
        rows[bad.path] = _unread_row(bad.path, bad.reason)
    for alias in plan.aliases:
        rows[alias.path] = _alias_row(alias)
    return [rows[path] for path in sorted(rows)]


def _file_row(
    file: FileToRead, ranges: Sequence[tuple[RangeTask, Mapping[str, Any]]], open_file: Opener
) -> Row:
    work, profile = file.work, file.profile
    row: Row = {
        "deployment": file.deployment,
        "path": work.path,
        "file_id": work.file_id,
        "generation": work.generation,
        "state": "quarantined" if profile.problem else "done",
        "reason": profile.problem,
        "size_bytes": work.size_bytes,
        "modified_at": work.modified_at,
        "head_bytes": work.head_bytes,
        "head_sha256": work.head_sha256,
        "chunk_bytes": CHUNK_BYTES,
        "held_back_bytes": 0,
        "compression": profile.compression,
        "encoding": profile.encoding,
        "carrier": profile.carrier,
        "layout": profile.layout,
        "layout_confidence": profile.layout_confidence,
        "role": profile.process,
        "host": profile.host,
        "flink_version": profile.flink_version,
        "problems": [],
    }
    row |= {name: work.row.get(name) or 0 for name in COUNTED}
    consumed, lines = work.start, work.start_line
    for _, summary in ranges:
        if summary["failure"]:
            row |= {"state": "partial", "reason": summary["failure"]}
            # Tried again when next seen: a size that no file has.
            row["size_bytes"] = -1
            break
        consumed += sum(summary[f"{kind}_bytes"] for kind in ("event", "counted", "quarantined"))
        lines += summary["newline_count"]
        row["problems"] += summary["problems"]
        row["held_back_bytes"] = summary["held_back_bytes"]
        for name in COUNTED:
            row[name] += summary[name]
        if summary["held_back_bytes"]:
            break
    if row["problems"] and row["state"] == "done":
        row |= {"state": "partial", "reason": row["problems"][0]["reason"]}
    prefix = _prefix(file, ranges, consumed, open_file)
    row |= {
        "consumed_bytes": prefix.size_bytes,
        "consumed_lines": lines,
        "chunk_digests": prefix.digests,
        "tail_sha256": prefix.tail_sha256,
    }
    if 0 < consumed < work.head_bytes:
        # What was not read yet may be gone when the file is next seen, and tells nothing of it.
        row |= {"head_bytes": consumed, "head_sha256": prefix.tail_sha256}
    return row


def _prefix(
    file: FileToRead,
    ranges: Sequence[tuple[RangeTask, Mapping[str, Any]]],
    consumed: int,
    open_file: Opener,
) -> Prefix:
    """What was consumed, out of the digests of the workers; hashed here where they do not fit."""
    if consumed == 0:
        return Prefix(0)
    known = file.work.known.digests
    digests = {i: known[at : at + DIGEST_BYTES] for i, at in enumerate(_offsets(known))}
    tail: str | None = None
    for _, summary in ranges:
        hashed = summary["chunk_digests"] or b""
        for i, at in enumerate(_offsets(hashed)):
            digests[summary["first_chunk"] + i] = hashed[at : at + DIGEST_BYTES]
        if summary["tail_end"] == consumed:
            tail = summary["tail_sha256"]
    wanted = range(consumed // CHUNK_BYTES)
    if tail is None or any(index not in digests for index in wanted):
        return hash_prefix(file.work.path, open_file, consumed)
    return Prefix(consumed, b"".join(digests[index] for index in wanted), tail)


def _offsets(digests: bytes) -> range:
    return range(0, len(digests), DIGEST_BYTES)


def _unread_row(path: str, reason: str) -> Row:
    name = path.encode("utf-8", "surrogateescape")
    return {
        "path": path,
        "file_id": sha256(name)[:32],
        "generation": 0,
        "state": "quarantined",
        "reason": reason,
        # No file has this size or head: what becomes readable is new.
        "size_bytes": -1,
        "head_bytes": 0,
        "head_sha256": "",
        "consumed_bytes": 0,
        "consumed_lines": 0,
        "chunk_bytes": CHUNK_BYTES,
        "chunk_digests": b"",
        "tail_sha256": Prefix(0).tail_sha256,
        "held_back_bytes": 0,
        "problems": [],
        **dict.fromkeys(COUNTED, 0),
    }


def _alias_row(alias: Alias) -> Row:
    """What was consumed, under the path that holds it now.

    Counts go along: the path that it was read under may tell of another content by now.
    """
    entry = alias.entry
    row = {**entry.row, "size_bytes": alias.size_bytes, "modified_at": alias.modified_at}
    if alias.path != entry.path:
        row |= {
            "path": alias.path,
            "state": "alias",
            "reason": f"same content as {entry.path}",
            "problems": [],
        }
    return row
