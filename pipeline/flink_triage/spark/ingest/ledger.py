"""Reads the ledger from the table `log_files`, and computes its new rows.

The ledger consists of the newest published row for each file content (``file_id`` and
``generation``), with the last path of that content. If a path had different contents over time,
only the newest is current. The others were displaced and may appear at a different path.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from flink_triage.logs.inputs.files import InputFile
from flink_triage.model import FileProfile, Process, Quarantined
from flink_triage.spark.ingest.changed_files import Alias, FileWork, LedgerEntry, WorkPlan
from flink_triage.spark.ingest.content_identity import DIGEST_BYTES, NOTHING, Mark, digest
from flink_triage.spark.ingest.ranges import RangeTask
from flink_triage.spark.tables.arrow_types import COUNT, TEXT, TIME
from flink_triage.spark.tables.published_runs import frame_of
from flink_triage.spark.tables.schemas import LOG_FILES, RUN_ID
from flink_triage.spark.tables.views import CONTENTS
from flink_triage.spark.tables.warehouse import Warehouse

COUNTED = ("event_count", "trace_count", "redactions", "truncated", "decode_errors")
_CARRIED = ("problems", "state", "redactions_by_kind")
# A size that no file has, so that the path is examined the next time it is listed.
NO_SIZE = -1
Row = dict[str, Any]


class TableLedger:
    """The ledger of earlier runs; empty before the first run.

    The rows stay in the table: queries join them there.
    """

    def __init__(self, spark: SparkSession, warehouse: Warehouse, run_ids: Sequence[str]) -> None:
        self._spark = spark
        # Spark Connect cannot create a DataFrame without rows.
        known = frame_of(spark, run_ids) if run_ids else None
        self._rows = None if known is None else warehouse.current(spark, CONTENTS, known)

    def changed(self, files: Sequence[InputFile]) -> Iterator[tuple[int, LedgerEntry | None]]:
        if self._rows is None:
            yield from ((index, None) for index in range(len(files)))
            return
        listed = {
            "index": pa.array(range(len(files)), COUNT),
            "path": pa.array([file.path for file in files], TEXT),
            "listed_bytes": pa.array([file.size_bytes for file in files], COUNT),
            "listed_at": pa.array([file.modified_at for file in files], TIME),
        }
        known = self._rows.where("is_current").withColumnRenamed("path", "known_path")
        is_same = (F.col("size_bytes") == F.col("listed_bytes")) & (
            F.col("modified_at") == F.col("listed_at")
        )
        is_unchanged = F.coalesce(is_same & (F.col("held_back_bytes") == 0), F.lit(False))
        found = (
            self._spark.createDataFrame(pa.table(listed))
            .join(known, F.col("path") == F.col("known_path"), "left")
            .where(~is_unchanged)
        )
        for row in found.toArrow().to_pylist():
            yield row["index"], entry_of(row) if row["known_path"] is not None else None

    def at(self, paths: Sequence[str]) -> Iterator[LedgerEntry]:
        if self._rows is None or not paths:
            return
        wanted = self._spark.createDataFrame(pa.table({"path": pa.array(paths, TEXT)}))
        known = self._rows.where("is_current").join(F.broadcast(wanted), "path", "left_semi")
        yield from map(entry_of, known.toArrow().to_pylist())

    def alike(self, heads: Sequence[tuple[str, bytes]]) -> Iterator[LedgerEntry]:
        """Match by the first digest; rows without digests match all heads of their deployment."""
        if self._rows is None or not heads:
            return
        keys = {(of, head[:DIGEST_BYTES]) for of, head in heads}
        keys |= {(of, b"") for of, _ in heads}
        wanted = {
            "deployment": pa.array([of for of, _ in keys], TEXT),
            "key": pa.array([key for _, key in keys], pa.binary()),
        }
        read = self._rows.where("consumed_bytes > 0")
        read = read.withColumn("key", F.substring("head_digests", 1, DIGEST_BYTES))
        frame = self._spark.createDataFrame(pa.table(wanted))
        known = read.join(F.broadcast(frame), ["deployment", "key"], "left_semi")
        yield from map(entry_of, known.toArrow().to_pylist())


def entry_of(row: Mapping[str, Any]) -> LedgerEntry:
    """Convert a stored row of the ledger to an entry for the plan."""
    return LedgerEntry(
        path=row.get("known_path") or row["path"],
        deployment=row["deployment"],
        file_id=row["file_id"],
        generation=row["generation"],
        size_bytes=row["size_bytes"],
        modified_at=row["modified_at"],
        mark=_mark_of(row),
        consumed_lines=row["consumed_lines"],
        held_back_bytes=row["held_back_bytes"],
        reason=row["reason"],
        profile=profile_of(row),
        is_current=row["is_current"],
        row={name: row[name] for name in (*COUNTED, *_CARRIED)},
    )


def _mark_of(row: Mapping[str, Any]) -> Mark:
    return Mark(row["consumed_bytes"], row["head_digests"] or b"", row["window_digest"] or b"")


def profile_of(row: Mapping[str, Any]) -> FileProfile | None:
    """The profile stored in the row; ``None`` for a path that could not be opened."""
    if row["compression"] is None:
        return None
    role: Process | None = row["role"]
    return FileProfile(
        path=row["path"],
        size_bytes=row["size_bytes"],
        compression=row["compression"],
        encoding=row["encoding"],
        carrier=row["carrier"],
        layout=row["layout"],
        layout_confidence=row["layout_confidence"],
        is_splittable=row["is_splittable"],
        process=role,
        host=row["host"],
        flink_version=row["flink_version"],
    )


# A row of the ledger before its ranges are read, with the numbers of these ranges.
PLANNED = pa.schema(
    [
        *((column.name, column.type) for column in LOG_FILES.columns if column is not RUN_ID),
        ("first_range", COUNT),
        ("range_count", COUNT),
    ]
)


def planned_rows(plan: WorkPlan, tasks: Iterable[RangeTask]) -> Iterator[Row]:
    """The planned rows of the ledger, in order of path.

    There is one row for each file to read, alias, and unreadable path. ``tasks`` is consumed
    immediately and not kept.
    """
    ranges: dict[str, tuple[int, int]] = {}
    for task in tasks:
        first, count = ranges.get(task.file.path, (task.number, 0))
        ranges[task.file.path] = first, count + 1
    return _rows_of(plan, ranges)


def _rows_of(plan: WorkPlan, ranges: Mapping[str, tuple[int, int]]) -> Iterator[Row]:
    rows: dict[str, Callable[[], Row]] = {}
    rows |= {work.path: partial(_work_row, work) for work in plan.work}
    rows |= {bad.path: partial(_unread_row, bad) for bad in plan.unreadable}
    rows |= {alias.path: partial(_alias_row, alias) for alias in plan.aliases}
    for path in sorted(rows):
        first, count = ranges.get(path, (0, 0))
        yield rows[path]() | {"first_range": first, "range_count": count}


def _work_row(work: FileWork) -> Row:
    """The row of a file whose new bytes have not been read yet."""
    profile = work.profile
    row = _row(work.path, work.deployment, work.file_id, work.generation, profile)
    row |= {"size_bytes": work.file.size_bytes, "modified_at": work.file.modified_at}
    row |= {name: work.row.get(name) or 0 for name in COUNTED}
    row["redactions_by_kind"] = work.row.get("redactions_by_kind") or []
    if profile.problem is not None:
        row |= {"state": "quarantined", "reason": profile.problem}
    return _marked(row, work.known, work.start_line)


def finished_row(planned: Mapping[str, Any], ranges: Sequence[Mapping[str, Any]]) -> Row:
    """The row of a path, completed with the summaries of its ranges."""
    row = {name: value for name, value in planned.items() if name in LOG_FILES.column_names}
    row["problems"] = list(row["problems"] or ())
    mark, lines = _mark_of(row), row["consumed_lines"]
    kinds = Counter(dict(row["redactions_by_kind"] or ()))
    for summary in ranges:
        if summary["failure"]:
            row |= {"state": "partial", "reason": summary["failure"], "size_bytes": NO_SIZE}
            break
        if summary["consumed_bytes"] > mark.consumed_bytes:
            mark = _mark_of(summary)
        lines += summary["newline_count"]
        row["problems"] += summary["problems"]
        row["held_back_bytes"] = summary["held_back_bytes"]
        for name in COUNTED:
            row[name] += summary[name]
        kinds.update(dict(summary["redactions_by_kind"] or ()))
        if summary["held_back_bytes"]:
            break
    if row["problems"] and row["state"] == "done":
        row |= {"state": "partial", "reason": row["problems"][0]["reason"]}
    row["redactions_by_kind"] = list(kinds.items())
    return _marked(row, mark, lines)


def _alias_row(alias: Alias) -> Row:
    """The ledger row for a path whose content earlier runs have read, with their counts."""
    entry = alias.entry
    row = _row(alias.path, entry.deployment, entry.file_id, entry.generation, entry.profile)
    row |= {"size_bytes": alias.size_bytes, "modified_at": alias.modified_at}
    row |= {**entry.row, "held_back_bytes": entry.held_back_bytes, "reason": entry.reason}
    if alias.path != entry.path:
        row |= {"state": "alias", "reason": f"same content as {entry.path}", "problems": []}
    elif entry.size_bytes == NO_SIZE:
        row |= {"state": "done", "reason": None}
    return _marked(row, entry.mark, entry.consumed_lines)


def _unread_row(bad: Quarantined) -> Row:
    name = bad.path.encode("utf-8", "surrogateescape")
    row = _row(bad.path, None, digest(name).hex(), 0, None)
    row |= {"state": "quarantined", "reason": bad.reason, "size_bytes": NO_SIZE}
    return _marked(row, NOTHING, 0)


def _row(
    path: str,
    deployment: str | None,
    file_id: str,
    generation: int,
    profile: FileProfile | None,
) -> Row:
    row: Row = {
        "deployment": deployment,
        "path": path,
        "file_id": file_id,
        "generation": generation,
        "state": "done",
        "reason": None,
        "modified_at": None,
        "held_back_bytes": 0,
        "problems": [],
        "redactions_by_kind": [],
        **dict.fromkeys(COUNTED, 0),
    }
    if profile is not None:
        row |= {
            "compression": profile.compression,
            "encoding": profile.encoding,
            "carrier": profile.carrier,
            "layout": profile.layout,
            "layout_confidence": profile.layout_confidence,
            "is_splittable": profile.is_splittable,
            "role": profile.process,
            "host": profile.host,
            "flink_version": profile.flink_version,
        }
    return row


def _marked(row: Row, mark: Mark, lines: int) -> Row:
    return row | {
        "consumed_bytes": mark.consumed_bytes,
        "consumed_lines": lines,
        "head_digests": mark.head,
        "window_digest": mark.window,
    }
