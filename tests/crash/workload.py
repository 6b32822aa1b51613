"""Writes logs with numbered events, and reads their published tables without Spark."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.compute as pc
from deltalake import DeltaTable

# The stored tables that a run derives from its batch, and those in the folder ``_state``.
TABLES = ("log_files", "events", "stack_traces", "log_volume", "diagnosed")
STATE = ("batches", "log_files")
JOB = "d1dfe4261f7c4f3fa0f0d6a5b5c2e7aa"
NUMBER = re.compile(r"event (\d{6})")
START = datetime(2026, 3, 1, 6)
# Old enough that no last event is held back.
QUIET_SINCE = 1_770_000_000
# These columns may differ between two equivalent runs.
OF_THE_RUN = ("run_id", "whole_run_id", "started_at", "finished_at")


def event(number: int) -> str:
    """A notable event: every fourth has a stack trace, and every eighth reports a full disk.

    No minute has more than two events, so none is folded into another one.
    """
    at = (START + timedelta(seconds=30 * number)).strftime("%Y-%m-%d %H:%M:%S,123")
    name = f"event {number:06}"
    if number % 4:
        return f"{at} WARN  org.apache.flink.runtime.taskmanager.Task [] - {name} was slow\n"
    what = "No space left on device" if number % 8 else f"broken {name}"
    return (
        f"{at} WARN  org.apache.flink.runtime.checkpoint.CheckpointFailureManager [] - "
        f"Failed to trigger checkpoint {number} for job {JOB}, {name}.\n"
        f"org.apache.flink.util.FlinkException: {name}\n"
        "\tat org.apache.flink.runtime.checkpoint.A.b(A.java:1)\n"
        f"Caused by: java.io.IOException: {what}\n"
        "\tat java.io.FileOutputStream.writeBytes(Native Method)\n"
    )


def head() -> str:
    at = START.strftime("%Y-%m-%d %H:%M:%S,000")
    logger = "org.apache.flink.configuration.GlobalConfiguration"
    return f"{at} INFO  {logger} [] - Loading configuration property: state.backend, rocksdb\n"


def write(path: Path, numbers: Iterable[int], *, is_appended: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a" if is_appended else "w", encoding="utf-8") as file:
        file.write("" if is_appended else head())
        file.writelines(map(event, numbers))
    settle(path)


def settle(path: Path) -> None:
    os.utime(path, (QUIET_SINCE, QUIET_SINCE))


def write_first(logs: Path) -> set[int]:
    """Write two deployments; return the numbers of all events."""
    write(logs / "orders" / "jobmanager.log", range(40))
    write(logs / "clicks" / "taskmanager.log", range(40, 80))
    return set(range(80))


def write_more(logs: Path) -> set[int]:
    """Append, rotate with gzip, and add a deployment; return the numbers of all events."""
    write(logs / "orders" / "jobmanager.log", range(80, 100), is_appended=True)
    rotated = logs / "clicks" / "taskmanager.log"
    packed = rotated.with_name("taskmanager.log.1.gz")
    packed.write_bytes(gzip.compress(rotated.read_bytes(), mtime=0))
    settle(packed)
    write(rotated, range(100, 120))
    write(logs / "payments" / "jobmanager.log", range(120, 140))
    return set(range(140))


def folder_of(warehouse: Path, name: str) -> Path:
    """The folder of a stored table, in a warehouse or in the folder of a schema."""
    kind = "state" if name in STATE else "raw"
    of_schema = warehouse / f"{kind}_{name}"
    return of_schema if of_schema.exists() else warehouse / f"_{kind}" / name


def rows_of(warehouse: Path, name: str) -> list[dict[str, Any]]:
    """All rows of a table; empty if the table does not exist yet."""
    folder = folder_of(warehouse, name)
    if not any((folder / "_delta_log").glob("[0-9]*.json")):
        return []
    return list(DeltaTable(str(folder)).to_pyarrow_dataset().to_table().to_pylist())


def published(warehouse: Path) -> dict[str, list[str]]:
    """The published rows of each table, as sorted JSON without columns that identify the run."""
    runs = rows_of(warehouse, "runs")
    counted = {run["run_id"] for run in runs}
    found = {"runs": _as_json(runs)}
    for name in TABLES:
        found[name] = _as_json(r for r in rows_of(warehouse, name) if r["run_id"] in counted)
    return found


def _as_json(rows: Iterable[dict[str, Any]]) -> list[str]:
    kept = (_without_run(row) for row in rows)
    return sorted(json.dumps(row, default=str, sort_keys=True) for row in kept)


def _without_run(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {k: _without_run(v) for k, v in value.items() if k not in OF_THE_RUN}


def numbers_in(warehouse: Path) -> Counter[int]:
    """The number of times that each number occurs among the published events."""
    return Counter(found.number for found in events_in(warehouse))


class PublishedEvent(NamedTuple):
    number: int
    occurrences: int
    size_bytes: int


def events_in(warehouse: Path) -> list[PublishedEvent]:
    """The published events with a number."""
    runs = {row["run_id"] for row in rows_of(warehouse, "runs")}
    if not runs:
        return []
    table = (
        DeltaTable(str(folder_of(warehouse, "events")))
        .to_pyarrow_dataset()
        .to_table(
            columns=["message", "occurrences", "size_bytes"],
            filter=pc.field("run_id").isin(sorted(runs)),
        )
    )
    found = []
    for message, occurrences, size_bytes in zip(*table.to_pydict().values(), strict=True):
        if match := NUMBER.search(message or ""):
            found.append(PublishedEvent(int(match[1]), occurrences, size_bytes))
    return found


def unpublished_rows(warehouse: Path) -> dict[str, int]:
    """Rows of runs that were never published, by table."""
    runs = {row["run_id"] for row in rows_of(warehouse, "runs")}
    counts = {n: sum(r["run_id"] not in runs for r in rows_of(warehouse, n)) for n in TABLES}
    return {name: count for name, count in counts.items() if count}


def live_files(warehouse: Path, name: str) -> list[str]:
    """The data files of the newest version of a table."""
    table = DeltaTable(str(folder_of(warehouse, name)))
    return sorted(file.split("/")[-1] for file in table.file_uris())
