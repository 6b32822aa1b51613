"""Tests runs over files that end in damaged data, and files that end in a storage error."""

from __future__ import annotations

import errno
import gzip
import io
import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from flink_triage.analyzer import Analyzer
from flink_triage.local import Options, pack_of, run_local
from flink_triage.logs.inputs.files import list_inputs
from flink_triage.settings import Settings
from flink_triage.spark.ingest.changed_files import WorkPlan
from flink_triage.spark.ingest.content_identity import OpenFile
from flink_triage.spark.ingest.ranges import cut_ranges
from flink_triage.spark.ingest.read import stage_range
from tests.spark.memory_ledger import MemoryLedger, plan_over, rows_after

OPTIONS = Options(settings=Settings(settle_seconds=-1e9))
ANALYZER = Analyzer(pack_of(OPTIONS), OPTIONS.settings, UTC)
NOW = datetime(2030, 1, 1, tzinfo=UTC)
LINE = "2026-01-01 00:00:00,{:03} ERROR a.B [] - the disk failed at {:07}\n"
# The offsets of the checksum and the size in an entry of the central directory of a ZIP file.
CHECKSUM_AT, SIZE_AT = 16, 24


@dataclass(frozen=True)
class Run:
    """The rows that a run published for one path, and its report."""

    plan: WorkPlan
    event_count: int
    rows: list[dict[str, Any]]


def run(folder: Path, ledger: MemoryLedger) -> Run:
    """One run of the planner and the reading task over real files."""
    plan = plan_over(list_inputs([str(folder)], OPTIONS.settings), ledger, OPTIONS.settings, NOW)
    tasks = cut_ranges(plan.work, OPTIONS.settings, NOW)
    parts = [p for t in tasks for p in stage_range(t, ANALYZER, OPTIONS.settings, set())]
    summaries = [{"failure": None} | part.items[0] for part in parts if part.kind == "summary"]
    rows = rows_after(plan, tasks, summaries)
    ledger.rows.extend(rows)
    return Run(plan, sum(one.get("event_count", 0) for one in summaries), rows)


def lines(count: int) -> bytes:
    return "".join(LINE.format(n % 1000, n) for n in range(count)).encode()


def zip_of(folder: Path, text: bytes) -> Path:
    folder.mkdir()
    with zipfile.ZipFile(folder / "logs.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("taskmanager.log", text)
    return folder / "logs.zip"


def resized(by: int) -> Callable[[bytearray, int], None]:
    def change(data: bytearray, at: int) -> None:
        (size,) = struct.unpack_from("<I", data, at + SIZE_AT)
        struct.pack_into("<I", data, at + SIZE_AT, size + by)

    return change


def miscounted(data: bytearray, at: int) -> None:
    data[at + CHECKSUM_AT] ^= 0xFF


@pytest.mark.parametrize("count", [20, 5_000], ids=["within the head", "beyond the head"])
@pytest.mark.parametrize(
    ("change", "reason", "kept"),
    [
        (resized(+1000), "ends after", 0),
        (resized(-100), "continues after", -2),
        (miscounted, "checksum", 0),
    ],
    ids=["shorter than stated", "longer than stated", "other checksum"],
)
def test_the_part_of_a_damaged_member_that_can_be_read_is_read_once(
    tmp_path: Path,
    count: int,
    change: Callable[[bytearray, int], None],
    reason: str,
    kept: int,
) -> None:
    path = zip_of(tmp_path / "in", lines(count))
    data = bytearray(path.read_bytes())
    change(data, data.rindex(b"PK\x01\x02"))
    path.write_bytes(data)
    ledger = MemoryLedger()
    first = run(path.parent, ledger)
    (row,) = first.rows
    assert row["state"] == "partial"
    assert reason in row["reason"]
    assert count + kept <= first.event_count <= count
    expected = run_local([str(path.parent)], OPTIONS).coverage
    assert (first.event_count, row["reason"]) == (expected.events, expected.quarantined[0].reason)
    assert run(path.parent, ledger).plan.is_empty


class _Failing(io.RawIOBase):
    """A file whose bytes from ``end`` on temporarily cannot be read."""

    def __init__(self, path: str, end: int) -> None:
        self._file, self._end = open(path, "rb"), end  # noqa: SIM115

    def read(self, size: int = -1, /) -> bytes:
        if self._file.tell() + size > self._end:
            raise OSError(errno.EIO, "Input/output error")
        return self._file.read(size)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()


@pytest.mark.parametrize("is_packed", [False, True], ids=["plain", "gzip"])
def test_a_file_that_the_storage_cannot_read_now_is_read_by_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_packed: bool
) -> None:
    text = lines(40_000)
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "taskmanager.log"
    path.write_bytes(gzip.compress(text) if is_packed else text)
    ledger = MemoryLedger()

    def rewound(file: OpenFile) -> Any:
        return _Failing(str(path), path.stat().st_size // 2)

    with monkeypatch.context() as now:
        now.setattr(OpenFile, "rewound", rewound)
        (row,) = run(tmp_path / "in", ledger).rows
    assert row["reason"] == "not read: Input/output error"
    assert run(tmp_path / "in", ledger).event_count == 40_000
    assert run(tmp_path / "in", ledger).plan.is_empty
