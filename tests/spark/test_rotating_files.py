"""Tests that each line is read once if files rotate during a run; no session is started."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from flink_triage.logs.inputs.files import list_inputs
from flink_triage.settings import Settings
from flink_triage.spark.ingest.content_identity import OpenFile
from flink_triage.spark.ingest.examine_files import Look, Wanted, look_at
from flink_triage.spark.ingest.ledger import Row
from flink_triage.spark.ingest.ranges import RangeTask, cut_ranges
from flink_triage.spark.ingest.read import _Changed, _verify
from tests.spark.memory_ledger import MemoryLedger, plan_over, rows_after

SETTINGS = Settings(settle_seconds=3600)
SETTLED = Settings(settle_seconds=-3600)
RUNS = 5


class Rotating:
    """A folder whose log may be rotated or extended whenever a run opens one of its files."""

    def __init__(self, folder: Path, seed: int, *, has_same_head: bool) -> None:
        self.folder, self.random = folder, random.Random(seed)
        self.head = "2026-01-01 00:00:00,000 INFO  a.B [] - head\n" * (
            1_600 if has_same_head else 0
        )
        self.count = self.lines = 0
        self.is_rotating = True
        self.ledger = MemoryLedger()
        self.read: Counter[str] = Counter()
        self.begin()
        for _ in range(self.random.randint(2, 6)):
            self.rotate()

    @property
    def log(self) -> Path:
        return self.folder / "a.log"

    def begin(self) -> None:
        self.log.write_text(self.head)
        self.write()

    def write(self) -> None:
        with self.log.open("a") as file:
            for _ in range(self.random.choice((1, 3, 20, 150))):
                file.write(f"2026-01-01 00:00:00,000 WARN  a.B [] - line {self.lines:0500}\n")
                self.lines += 1

    def rotate(self) -> None:
        self.count += 1
        for number in range(self.count, 1, -1):
            (self.folder / f"a.log.{number - 1}").rename(self.folder / f"a.log.{number}")
        self.log.rename(self.folder / "a.log.1")
        self.begin()

    def something_happens(self) -> None:
        if self.is_rotating and (drawn := self.random.random()) < 0.3:
            (self.rotate if drawn < 0.2 else self.write)()

    def look_at(self, wanted: Wanted) -> Look:
        self.something_happens()
        return look_at(wanted, SETTINGS)

    def run(self, settings: Settings = SETTINGS) -> None:
        listing = list_inputs([str(self.folder)], settings)
        now = datetime.now(UTC)
        planned = plan_over(listing, self.ledger, settings, now, lambda _: "orders", self.look_at)
        tasks = cut_ranges(planned.work, settings, now)
        summaries = [self.summary(task) for task in tasks]
        self.ledger.rows += rows_after(planned, tasks, summaries)

    def summary(self, task: RangeTask) -> Row:
        """The summary of a task that read the file up to its end."""
        self.something_happens()
        try:
            with OpenFile(task.file, SETTINGS.max_file_bytes) as file:
                _verify(file, task)
                text = file.read_at(0, 1 << 30)
                mark = file.mark(len(text))
        except (OSError, _Changed) as error:
            return {"failure": str(error)}
        assert mark is not None
        new = text[task.known.consumed_bytes :].decode().splitlines()
        self.read.update(line for line in new if " line " in line)
        marks = {"head_digests": mark.head, "window_digest": mark.window}
        nothing = dict.fromkeys(("event_count", "trace_count", "redactions", "truncated"), 0)
        nothing |= {"newline_count": len(new), "held_back_bytes": 0, "decode_errors": 0}
        told: Row = {"failure": None, "consumed_bytes": mark.consumed_bytes, "problems": []}
        return told | marks | nothing | {"redactions_by_kind": []}


@pytest.mark.parametrize("has_same_head", [False, True], ids=["heads differ", "one head"])
@pytest.mark.parametrize("seed", range(8))
def test_each_line_is_read_once(tmp_path: Path, seed: int, has_same_head: bool) -> None:
    rotating = Rotating(tmp_path, seed, has_same_head=has_same_head)
    for _ in range(RUNS):
        rotating.run()
    rotating.is_rotating = False
    for _ in range(2):
        rotating.run(SETTLED)
    assert len(rotating.read) == rotating.lines
    assert rotating.read.most_common(1)[0][1] == 1
