"""Tests logs that rotate between runs, concurrently with runs, and within runs.

Every event that is readable when the last run starts is published, and no event is published twice.
With ``CRASH=all``, each rotation mode is tested for three minutes, and at every failpoint before a
run is published. Otherwise, all modes are tested together for ten seconds and at two failpoints.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from tests.crash.backends import only_local
from tests.crash.rig import PROJECT, Worker
from tests.crash.rotation import NUMBERS, ROTATIONS, Writer, readable
from tests.crash.test_killed_runs import POINTS
from tests.crash.workload import event, events_in, settle, write

IS_WHOLE = os.environ.get("CRASH") == "all"
SEED = int(os.environ.get("CRASH_SEED", "20261125"))
MODES = tuple(ROTATIONS)
SETTLE_SECONDS = 10.0 if IS_WHOLE else 3.0
# The modes that share a writer process; how long and how fast the process writes to each log; and
# how many rotated files it keeps in the modes that delete old files.
BESIDE_RUNS = tuple((mode,) for mode in MODES) if IS_WHOLE else (MODES,)
SECONDS, BYTES_PER_SECOND, KEEP = (180, 1_500_000, 30) if IS_WHOLE else (10, 300_000, 12)
BEFORE_PUBLISHING = POINTS[: POINTS.index("append.runs") + 1]
# A run begins after this many steps of a rotation, which is finished at the first failpoint. At all
# other failpoints, and at the first if the number is 0, the logs are rotated completely.
WITHIN_RUNS: list[tuple[int, tuple[str, ...]]] = (
    [
        *((0, (point,)) for point in BEFORE_PUBLISHING),
        *((steps, ("planned",)) for steps in range(1, 9)),
    ]
    if IS_WHOLE
    else [(4, ("planned", "stage.range"))]
)
FILE_BYTES = 200_000
# More than the number of rotations during a run, so that no file is deleted before it is read.
FILES_KEPT = 4
QUIET = 999_999
# The location of the tables does not affect how logs are read.
pytestmark = only_local


class Rig:
    """A worker, and a warehouse whose tables exist."""

    def __init__(self, folder: Path) -> None:
        self.worker = Worker(folder / "worker", SETTLE_SECONDS)
        self.template = folder / "template"
        logs = folder / "logs"
        write(logs / "quiet" / "jobmanager.log", [QUIET])
        assert self.worker.run(logs, self.template) == "done"

    def copy(self, folder: Path) -> Path:
        return Path(shutil.copytree(self.template, folder / "warehouse"))


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    made = Rig(tmp_path_factory.mktemp("rotation"))
    yield made
    made.worker.kill()


@dataclass(frozen=True, slots=True)
class Account:
    """The number of published events of one writer, and the number of its events per error.

    ``lost``: readable but not published. ``doubled``: in more than one row. ``miscounted``: its
    `occurrences` do not add up to one. ``torn``: shorter or longer than written. ``unread``:
    deleted before a run read it, which is allowed.
    """

    published: int
    lost: int
    doubled: int
    miscounted: int
    torn: int
    unread: int

    @property
    def is_right(self) -> bool:
        return self.published > 0 and not (self.lost + self.doubled + self.miscounted + self.torn)


def account_of(folder: Path, warehouse: Path, numbers: range) -> Account:
    """Compare the published events of a writer with its files after it has stopped."""
    files = readable(folder)
    assert set(files.values()) == {1}
    events = [published for published in events_in(warehouse) if published.number in numbers]
    rows = Counter(published.number for published in events)
    unread = set(numbers) - rows.keys() - files.keys()
    occurrences: Counter[int] = Counter()
    for published in events:
        occurrences[published.number] += published.occurrences
    return Account(
        published=len(rows),
        lost=len(files.keys() - rows.keys()),
        doubled=sum(count > 1 for count in rows.values()),
        miscounted=sum(count != 1 for count in occurrences.values()),
        torn=len({e.number for e in events if e.size_bytes != len(event(e.number))}),
        unread=len(unread),
    )


def check(logs: Path, warehouse: Path, numbers: Mapping[str, range]) -> None:
    """Print the account of each mode, then assert that all are right."""
    accounts = {mode: account_of(logs / mode, warehouse, numbers[mode]) for mode in numbers}
    print("", *(f"{mode}: {account}" for mode, account in accounts.items()), sep="\n  ")
    assert [mode for mode, account in accounts.items() if not account.is_right] == []


@pytest.mark.parametrize("modes", BESIDE_RUNS, ids=" and ".join)
def test_logs_that_rotate_beside_runs_are_published_once(
    rig: Rig, tmp_path: Path, modes: tuple[str, ...]
) -> None:
    logs, warehouse = tmp_path / "logs", rig.copy(tmp_path)
    write(logs / "quiet" / "jobmanager.log", [QUIET])
    orders = json.dumps([str(logs), modes, SEED, SECONDS, BYTES_PER_SECOND, KEEP])
    answers: Counter[str] = Counter()
    with subprocess.Popen(
        [sys.executable, "-m", "tests.crash.rotation", orders],
        stdout=subprocess.PIPE,
        text=True,
        cwd=PROJECT,
        env=os.environ | {"PYTHONPATH": str(PROJECT / "pipeline")},
    ) as writer:
        while writer.poll() is None:
            answers[rig.worker.run(logs, warehouse)] += 1
        written = json.loads(writer.communicate()[0])
    finish(rig.worker, logs, warehouse)
    print(f"\nruns beside the writer: {dict(answers)}")
    check(logs, warehouse, {mode: range(*written[mode]) for mode in modes})
    assert set(answers) == {"done"}


def finish(worker: Worker, logs: Path, warehouse: Path) -> None:
    """Wait until the logs have settled, then run twice: the second run has nothing to read."""
    time.sleep(SETTLE_SECONDS + 1)
    assert [worker.run(logs, warehouse) for _ in range(2)] == ["done"] * 2


class Rotating:
    """One log per mode that was rotated, read by a run, and appended to."""

    def __init__(self, folder: Path, rig: Rig, scenario: str) -> None:
        self.worker, self.logs, self.warehouse = rig.worker, folder / "logs", rig.copy(folder)
        self.random = Random(f"{SEED} {scenario}")
        self.writers = [
            Writer(self.logs / mode, mode, SEED, number * NUMBERS, FILE_BYTES, FILES_KEPT)
            for number, mode in enumerate(MODES)
        ]
        for _ in range(FILES_KEPT):
            self.write()
            self.rotate()
        self.write()
        for writer in self.writers:
            writer.close()
        for path in self.logs.rglob("a.*"):
            settle(path)
        assert self.worker.run(self.logs, self.warehouse) == "done"
        self.write()
        # A new deployment, so that the run reaches every point.
        write(self.logs / "payments" / "jobmanager.log", [QUIET])

    def write(self) -> None:
        for writer in self.writers:
            writer.write(FILE_BYTES)

    def begin_to_rotate(self, steps: int) -> None:
        for writer in self.writers:
            writer.steps = writer.rotate()
            for _ in range(steps):
                next(writer.steps, None)

    def rotate(self) -> None:
        """Finish a rotation in progress or do a complete one; then write a random amount."""
        for writer in self.writers:
            if not writer.is_rotating:
                writer.steps = writer.rotate()
            writer.finish()
            writer.write(self.random.choice((0, FILE_BYTES // 2, 3 * FILE_BYTES)))

    def check(self) -> None:
        for writer in self.writers:
            writer.close()
        finish(self.worker, self.logs, self.warehouse)
        numbers = {w.mode: range(w.first, w.number) for w in self.writers}
        check(self.logs, self.warehouse, numbers)


@pytest.mark.parametrize(
    ("steps", "points"), WITHIN_RUNS, ids=[f"{n}-{' then '.join(p)}" for n, p in WITHIN_RUNS]
)
def test_logs_that_rotate_within_a_run_are_published_once(
    rig: Rig, tmp_path: Path, steps: int, points: tuple[str, ...]
) -> None:
    rotating = Rotating(tmp_path, rig, f"{steps} {points}")
    if steps:
        rotating.begin_to_rotate(steps)
    answer = rig.worker.run_and_pause(rotating.logs, rotating.warehouse, points, rotating.rotate)
    rotating.check()
    assert answer == "done"
