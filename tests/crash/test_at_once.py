"""Several processes on one warehouse at the same moment, while its logs grow.

Without the lock and without the order of publishing the same rounds double events: the check can
see what it is there to see.  ``CRASH=all`` takes six processes and five rounds.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.crash.rig import Worker
from tests.crash.workload import numbers_in, write

IS_WHOLE = os.environ.get("CRASH") == "all"
PROCESSES, ROUNDS = (6, 5) if IS_WHOLE else (2, 1)


class Crowd:
    """Workers that are told to run at the same moment, and logs to run over."""

    def __init__(self, folder: Path, count: int) -> None:
        self.logs, self.folder = folder / "logs", folder
        self.number = 0
        homes = [folder / f"process-{n}" for n in range(count)]
        for home in homes:
            home.mkdir()
        with ThreadPoolExecutor(count) as pool:
            self.workers = list(pool.map(Worker, homes))

    def grow(self) -> None:
        for name in ("orders", "clicks"):
            log = self.logs / name / "jobmanager.log"
            numbers = range(self.number, self.number + 10)
            write(log, numbers, is_appended=log.exists())
            self.number += 10

    def all_run(self, warehouse: Path, guard: str) -> list[str]:
        """One round; each finds other logs than the one before it."""
        for worker in self.workers:
            self.grow()
            worker.tell(self.logs, warehouse, guard)
        return [worker.answer() for worker in self.workers]

    def kill(self) -> None:
        for worker in self.workers:
            worker.kill()


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crowd]:
    made = Crowd(tmp_path_factory.mktemp("crowd"), PROCESSES)
    yield made
    made.kill()


def rounds(crowd: Crowd, guard: str) -> tuple[Counter[str], Path]:
    """How the processes ended; after each round one more run reads what is left."""
    answers: Counter[str] = Counter()
    warehouse = crowd.folder / guard
    for _ in range(ROUNDS):
        answers.update(crowd.all_run(warehouse, guard))
        crowd.workers[0].tell(crowd.logs, warehouse, guard)
        answers[crowd.workers[0].answer()] += 1
    print(f"{guard}: {PROCESSES} processes, {ROUNDS} rounds: {dict(answers)}")
    return answers, warehouse


def test_with_the_lock_nothing_is_lost_or_doubled(crowd: Crowd) -> None:
    answers, warehouse = rounds(crowd, "locked")
    assert numbers_in(warehouse) == Counter(range(crowd.number))
    assert set(answers) == {"done", "held"}


@pytest.mark.skipif(not IS_WHOLE, reason="CRASH=all")
def test_without_a_lock_the_order_of_publishing_loses_and_doubles_nothing(crowd: Crowd) -> None:
    answers, warehouse = rounds(crowd, "unlocked")
    assert set(answers) <= {"done", "held"}
    assert crowd.workers[0].run(crowd.logs, warehouse) == "done"
    assert numbers_in(warehouse) == Counter(range(crowd.number))


@pytest.mark.skipif(not IS_WHOLE, reason="CRASH=all")
def test_the_control_without_both_doubles_events(crowd: Crowd) -> None:
    _, warehouse = rounds(crowd, "unguarded")
    found = numbers_in(warehouse)
    assert max(found.values()) > 1
    print(f"control: {sum(found.values()) - len(found)} events too many")
