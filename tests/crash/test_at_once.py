"""Tests six processes that write to one warehouse at the same time, while its logs grow.

As a control, the same rounds without the lock and without the publication order duplicate events,
which shows that the check detects duplicates. These tests require ``CRASH=all`` and tables in a
local folder. Without ``CRASH=all``, ``test_killed_runs`` starts two processes at the same time.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.crash.backends import only_local
from tests.crash.rig import Crowd, Worker
from tests.crash.workload import numbers_in

PROCESSES, ROUNDS = 6, 5

pytestmark = [
    only_local,
    pytest.mark.skipif(os.environ.get("CRASH") != "all", reason="CRASH=all"),
]


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crowd]:
    folder = tmp_path_factory.mktemp("crowd")
    with ThreadPoolExecutor(PROCESSES) as pool:
        workers = list(pool.map(Worker, (folder / f"process-{n}" for n in range(PROCESSES))))
    yield Crowd(folder, workers)
    for worker in workers:
        worker.kill()


def test_with_the_lock_nothing_is_lost_or_doubled(crowd: Crowd, tmp_path: Path) -> None:
    answers = crowd.run_rounds(tmp_path / "warehouse", "locked", ROUNDS)
    assert numbers_in(tmp_path / "warehouse") == Counter(range(crowd.number))
    assert set(answers) == {"done", "held"}


def test_without_a_lock_the_order_of_publishing_loses_and_doubles_nothing(
    crowd: Crowd, tmp_path: Path
) -> None:
    answers = crowd.run_rounds(tmp_path / "warehouse", "unlocked", ROUNDS)
    assert set(answers) <= {"done", "held"}
    assert crowd.workers[0].run(crowd.logs, tmp_path / "warehouse") == "done"
    assert numbers_in(tmp_path / "warehouse") == Counter(range(crowd.number))


def test_the_control_without_both_doubles_events(crowd: Crowd, tmp_path: Path) -> None:
    crowd.run_rounds(tmp_path / "warehouse", "unguarded", ROUNDS)
    found = numbers_in(tmp_path / "warehouse")
    assert max(found.values()) > 1
    print(f"control: {sum(found.values()) - len(found)} events too many")
