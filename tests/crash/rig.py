"""Starts, kills, and pauses worker processes, and reads their warehouses at the same time."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.crash.orders import POLL_SECONDS, VARIABLE, taken, trail_of
from tests.crash.workload import numbers_in, rows_of, write

WORKER = Path(__file__).with_name("worker.py")
# Its sitecustomize module installs the hook in every Python process of the session.
SITE = Path(__file__).with_name("site")
PROJECT = Path(__file__).parents[2]
ANSWERS = ("ready", "done", "held", "failed")


class Worker:
    """One process with its JVM and Python workers, all in one kernel session."""

    def __init__(self, folder: Path, settle_seconds: float = 10.0) -> None:
        folder.mkdir(exist_ok=True)
        self.order = folder / "order"
        self.order.write_text("")
        path = os.pathsep.join(map(str, (SITE, PROJECT / "pipeline", PROJECT)))
        environment = os.environ | {VARIABLE: str(self.order), "PYTHONPATH": path}
        environment["FLINK_TRIAGE_DRIVER_MEMORY"] = "1g"
        self.process = subprocess.Popen(
            [sys.executable, str(WORKER), str(settle_seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=folder,
            start_new_session=True,
        )
        assert self.answer() == "ready"

    def tell(self, logs: Path, warehouse: Path, guard: str = "locked", work: str = "run") -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([str(logs), str(warehouse), guard, work]) + "\n")
        self.process.stdin.flush()

    def answer(self) -> str:
        """The next of `ANSWERS`; empty if the process has terminated."""
        assert self.process.stdout is not None
        # The JVM writes warnings to the same output.
        for line in self.process.stdout:
            if line.strip() in ANSWERS:
                return line.strip()
        return ""

    def run(self, logs: Path, warehouse: Path, work: str = "run") -> str:
        self.tell(logs, warehouse, work=work)
        return self.answer()

    def points_reached(self) -> list[str]:
        trail = trail_of(self.order)
        return trail.read_text().split() if trail.exists() else []

    def run_and_die(self, logs: Path, warehouse: Path, point: str, work: str = "run") -> bool:
        """Whether the run reached the point and was killed there."""
        self.order.write_text(f"{point} kill {self.process.pid}")
        is_killed = self.run(logs, warehouse, work) == ""
        self.kill()
        return is_killed

    def run_and_pause(
        self, logs: Path, warehouse: Path, points: Sequence[str], meanwhile: Callable[[], None]
    ) -> str:
        """The answer of a run that waits at each point, in this order, while ``meanwhile`` runs."""
        self.order.write_text(f"{points[0]} pause")
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(self.run, logs, warehouse)
            try:
                for point, following in zip(points, [*points[1:], None], strict=True):
                    while not taken(self.order).exists():
                        assert not answer.done(), f"the run did not reach {point}"
                        time.sleep(POLL_SECONDS)
                    meanwhile()
                    self.order.write_text(f"{following} pause" if following else "")
                    taken(self.order).unlink()
            finally:
                self.order.write_text("")
                taken(self.order).unlink(missing_ok=True)
            return answer.result()

    def run_and_die_after(self, logs: Path, warehouse: Path, seconds: float) -> None:
        self.tell(logs, warehouse)
        time.sleep(seconds)
        self.kill()

    def kill(self) -> None:
        """Kill all remaining processes of the session, and wait until they have terminated."""
        session = self.process.pid
        while members := _members(session):
            for member in members:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(member, signal.SIGKILL)
            self.process.poll()
            time.sleep(0.02)
        self.process.wait()


def _members(session: int) -> list[int]:
    """The running processes of the session, according to /proc."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] not in "ZX":
            found.append(int(entry.name))
    return found


class Crowd:
    """Workers that start runs at the same time, and logs below ``folder`` that grow."""

    def __init__(self, folder: Path, workers: Sequence[Worker]) -> None:
        self.logs, self.workers = folder / "logs", workers
        self.number = 0

    def _grow(self) -> None:
        for name in ("orders", "clicks"):
            log = self.logs / name / "jobmanager.log"
            numbers = range(self.number, self.number + 10)
            write(log, numbers, is_appended=log.exists())
            self.number += 10

    def run_rounds(self, warehouse: Path, guard: str, rounds: int) -> Counter[str]:
        """Count the runs by outcome; after each round, one more run reads the remaining input."""
        answers: Counter[str] = Counter()
        for _ in range(rounds):
            for worker in self.workers:
                # Each worker has more logs to read than the previous one.
                self._grow()
                worker.tell(self.logs, warehouse, guard)
            answers.update(worker.answer() for worker in self.workers)
            self.workers[0].tell(self.logs, warehouse, guard)
            answers[self.workers[0].answer()] += 1
        print(f"{guard}: {len(self.workers)} processes, {rounds} rounds: {dict(answers)}")
        return answers


class Reader(threading.Thread):
    """Continuously reads the published events of the warehouses; records invalid states.

    In a valid state, the published events are none, all events of the first run, or all events of
    both runs. For each run, each table contains as many rows as the run reported in ``runs``.
    """

    def __init__(self, allowed: list[set[int]]) -> None:
        super().__init__(daemon=True)
        self.allowed = [Counter(numbers) for numbers in ([], *allowed)]
        self.warehouse: Path | None = None
        self.looks = 0
        self.wrong: list[str] = []
        self.is_over = threading.Event()

    def run(self) -> None:
        while not self.is_over.wait(0.25):
            warehouse = self.warehouse
            if warehouse is not None:
                self.look(warehouse)
                self.looks += 1

    def look(self, warehouse: Path) -> None:
        try:
            found = numbers_in(warehouse)
            for run in rows_of(warehouse, "runs"):
                for table, count in run["row_counts"]:
                    seen = sum(r["run_id"] == run["run_id"] for r in rows_of(warehouse, table))
                    if seen != count:
                        self.wrong.append(f"{table}: {seen} rows of {count}")
        except Exception as error:  # any error of a reader is a finding
            self.wrong.append(f"{warehouse.name}: {error!r}")
            return
        if found not in self.allowed:
            doubled = {number: count for number, count in found.items() if count > 1}
            self.wrong.append(f"{warehouse.name}: {len(found)} numbers, doubled: {doubled}")
