"""Tests runs that are killed with SIGKILL and then repeated.

Afterwards, every numbered event is published once, the tables contain the output of one
uninterrupted run, and no unpublished rows remain. ``CRASH=all`` tests every failpoint, random
times, kills during recovery, first runs, maintenance, and rematching; otherwise, one failpoint is
tested. ``CRASH_BACKEND`` selects the location of the tables.
"""

from __future__ import annotations

import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from tests.crash.backends import BACKEND, only_local, tables_below
from tests.crash.rig import Crowd, Reader, Worker
from tests.crash.workload import (
    TABLES,
    folder_of,
    numbers_in,
    published,
    unpublished_rows,
    write_first,
    write_more,
)

IS_WHOLE = os.environ.get("CRASH") == "all"
SEED = int(os.environ.get("CRASH_SEED", "20261121"))
RANDOM_KILLS = 20
READ = tuple(table for table in TABLES if table != "diagnosed")
# Mostly in the order in which a run reaches them.
POINTS = (
    "listed",
    "held",
    "recovered",
    "planned",
    "append.batches",
    "stage.range",
    "stage.range.done",
    "appended.batches",
    "committed",
    "opened",
    *(f"append.{table}" for table in READ),
    *(f"appended.{table}" for table in READ),
    "append.news",
    "diagnose.deployment",
    "appended.news",
    "append.whole",
    "appended.whole",
    "verified",
    "append.runs",
    "appended.runs",
)
# The second kill hits the run that recovers from the first kill, and so on.
IN_RECOVERY = (
    ("committed", "opened"),
    ("appended.events", "append.log_files"),
    ("appended.news", "appended.whole"),
    ("appended.batches", "appended.events", "appended.whole", "append.runs"),
    ("append.runs", "appended.runs"),
    ("stage.range", "stage.range.done", "committed"),
)
SAMPLE = (("appended.events",),)
SCENARIOS = (*((point,) for point in POINTS), *IN_RECOVERY) if IS_WHOLE else SAMPLE
NOTHING_YET = ("created", "append.events", "appended.events", "append.runs") if IS_WHOLE else ()
UPKEEP = ("maintain.cleaned", "joined.events", "vacuumed.log_files")
REMATCH = ("rematch.batch", "rematched", "appended.rematches", "appended.whole")
DELAYS = random.Random(SEED)
DEATHS = sum(map(len, SCENARIOS))
if IS_WHOLE:
    DEATHS += len(NOTHING_YET) + len(UPKEEP) + len(REMATCH) + RANDOM_KILLS


class Rig:
    """The logs, a warehouse of their first state, and the output of an uninterrupted second run."""

    def __init__(self, folder: Path, tables: Path) -> None:
        self.folder, self.tables, self.logs = folder, tables, folder / "logs"
        self.worker: Worker | None = None
        self.pool = ThreadPoolExecutor(1)
        self.spares: list[Future[Worker]] = []
        self.started = 0
        self._start_one()
        self.first = write_first(self.logs)
        self.template = tables / "template"
        assert self.living().run(self.logs, self.template) == "done"
        self.numbers = write_more(self.logs)
        whole = self.copy("whole")
        started = time.monotonic()
        assert self.living().run(self.logs, whole) == "done"
        self.seconds = time.monotonic() - started
        self.reached = self.living().points_reached()
        self.whole = published(whole)
        self.reader = Reader([self.first, self.numbers])
        self.reader.start()

    def living(self) -> Worker:
        """The running worker; if it was killed, the next one."""
        if self.worker is None:
            self.worker = self.spares.pop().result()
            self._start_one()
        return self.worker

    def _start_one(self) -> None:
        """Start the next worker in advance, unless there are enough for all kills."""
        if self.started <= DEATHS:
            self.started += 1
            folder = self.folder / f"worker-{self.started}"
            self.spares.append(self.pool.submit(Worker, folder))

    def end(self) -> None:
        self.reader.is_over.set()
        self.reader.join()
        for worker in (self.living(), *(spare.result() for spare in self.spares)):
            worker.kill()

    def copy(self, name: str) -> Path:
        return Path(shutil.copytree(self.template, self.tables / name))

    def make_good(self, warehouse: Path) -> None:
        """Run again without an order; finish the killed run, or repeat it if it had no effect."""
        self.living().order.write_text("")
        assert self.living().run(self.logs, warehouse) == "done"


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    folder = tmp_path_factory.mktemp("crash")
    with tables_below(folder) as tables:
        made = Rig(folder, tables)
        yield made
        made.end()


def check(rig: Rig, warehouse: Path, expected: dict[str, list[str]]) -> None:
    assert numbers_in(warehouse) == Counter(rig.numbers)
    assert published(warehouse) == expected
    assert unpublished_rows(warehouse) == {}
    assert rig.reader.wrong == []


@only_local
@pytest.mark.skipif(IS_WHOLE, reason="test_at_once.py has more of them")
def test_two_runs_at_once_lose_and_double_nothing(rig: Rig) -> None:
    folder = rig.folder / "at-once"
    crowd = Crowd(folder, [rig.living(), rig.spares[0].result()])
    answers = crowd.run_rounds(folder / "warehouse", "locked", 1)
    assert set(answers) == {"done", "held"}
    assert numbers_in(folder / "warehouse") == Counter(range(crowd.number))


@pytest.mark.skipif(BACKEND != "s3", reason="CRASH_BACKEND=s3")
def test_two_drivers_at_once_on_s3_lose_nothing(rig: Rig) -> None:
    """Events may be published twice, because no lock separates runs on S3 (docs/running.md)."""
    tables = rig.tables / "at-once"
    crowd = Crowd(rig.folder / "at-once", [rig.living(), rig.spares[0].result()])
    answers = crowd.run_rounds(tables, "locked", 1)
    assert rig.living().run(crowd.logs, tables) == "done"
    found = numbers_in(tables)
    print(f"{dict(answers)}, {sum(count > 1 for count in found.values())} events twice")
    assert found.keys() == {*range(crowd.number)}


def die(rig: Rig, warehouse: Path, point: str, work: str = "run") -> None:
    worker, rig.worker = rig.living(), None
    assert worker.run_and_die(rig.logs, warehouse, point, work), f"nothing came to {point}"


@pytest.mark.parametrize("points", SCENARIOS, ids=" then ".join)
def test_next_run_recovers_from_killed_runs(rig: Rig, points: tuple[str, ...]) -> None:
    warehouse = rig.copy("-".join(points))
    rig.reader.warehouse = warehouse
    for point in points:
        die(rig, warehouse, point)
    rig.make_good(warehouse)
    check(rig, warehouse, rig.whole)


@pytest.mark.parametrize("point", NOTHING_YET)
def test_killed_first_run_of_a_warehouse_is_recovered(rig: Rig, point: str) -> None:
    whole, warehouse = rig.tables / f"new-{point}-whole", rig.tables / f"new-{point}"
    rig.reader.warehouse = warehouse
    die(rig, warehouse, point)
    rig.make_good(warehouse)
    assert rig.living().run(rig.logs, whole) == "done"
    check(rig, warehouse, published(whole))


@pytest.mark.parametrize("point", UPKEEP if IS_WHOLE else ())
def test_upkeep_that_was_killed_changed_no_row_and_can_be_repeated(rig: Rig, point: str) -> None:
    warehouse = rig.copy(f"upkeep-{point}")
    rig.reader.warehouse = warehouse
    before = published(warehouse)
    die(rig, warehouse, point, "maintain")
    assert published(warehouse) == before
    assert rig.living().run(rig.logs, warehouse, "maintain") == "done"
    assert published(warehouse) == before
    rig.make_good(warehouse)
    check(rig, warehouse, rig.whole)


@pytest.mark.parametrize("point", REMATCH if IS_WHOLE else ())
def test_killed_rematch_is_recovered(rig: Rig, point: str) -> None:
    warehouse, whole = rig.copy(f"rematch-{point}"), rig.copy(f"rematch-{point}-whole")
    rig.reader.warehouse = warehouse
    before = published(warehouse)
    die(rig, warehouse, point, "rematch")
    assert published(warehouse) == before
    # The next command finishes the killed one, and then matches again.
    for each in (warehouse, whole, whole):
        assert rig.living().run(rig.logs, each, "rematch") == "done"
    assert published(warehouse) == published(whole)
    assert unpublished_rows(warehouse) == {}


@pytest.mark.parametrize("number", range(RANDOM_KILLS if IS_WHOLE else 0))
def test_run_killed_at_any_time_is_recovered(rig: Rig, number: int) -> None:
    warehouse = rig.copy(f"any-{number}")
    rig.reader.warehouse = warehouse
    seconds = DELAYS.uniform(0, rig.seconds)
    print(f"seed {SEED}, kill {number} after {seconds:.2f} s of about {rig.seconds:.2f}")
    worker, rig.worker = rig.living(), None
    worker.run_and_die_after(rig.logs, warehouse, seconds)
    rig.make_good(warehouse)
    check(rig, warehouse, rig.whole)


def test_reader_never_sees_a_partial_run(rig: Rig) -> None:
    assert rig.reader.looks > 10
    assert rig.reader.wrong == []


def test_reader_detects_a_partial_run(rig: Rig) -> None:
    """A control: the reader reports published runs with missing or duplicate rows."""
    for damage in ("less", "more"):
        warehouse = rig.copy(f"half-{damage}")
        events = DeltaTable(str(folder_of(warehouse, "events")))
        if damage == "less":
            events.delete("byte_offset > 1000")
        else:
            write_deltalake(events, events.to_pyarrow_table(), mode="append")
        reader = Reader([rig.first, rig.numbers])
        reader.look(warehouse)
        assert any(line.startswith("events:") for line in reader.wrong)
        assert any("numbers, doubled" in line for line in reader.wrong)


def test_every_failpoint_of_a_run_is_tested() -> None:
    tried = {*POINTS, *UPKEEP, *REMATCH, *(point for points in IN_RECOVERY for point in points)}
    assert len(tried) >= 25


def test_failpoints_are_those_that_a_run_reaches(rig: Rig) -> None:
    assert {*rig.reached} == {*POINTS, "created"}
