"""What happens to log files in a year, in any order, against a model of a few lines.

The ledger, the plan, the probe, the reading and the hashing are the pipeline's own; only the tables
are lists here.  No session is started.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from flink_triage.local import Options, pack_of
from flink_triage.logs.files import deployment_of, list_inputs
from flink_triage.spark.content import open_plain
from flink_triage.spark.ledger import LedgerEntry, plan_work
from flink_triage.spark.ledger_rows import Row, entry_of, finished_rows
from flink_triage.spark.staging import stage_range
from flink_triage.spark.tasks import cut_ranges, prepare
from flink_triage.stages import Analyzer

OPTIONS = Options()
ANALYZER = Analyzer(pack_of(OPTIONS), OPTIONS.settings, timezone.utc)
SETTLE = OPTIONS.settings.settle_seconds
NUMBER = re.compile(rb"event (\d{6}) ")
# One deployment's files are as a container runtime leaves them, which are read line by line.
PREFIX = {"orders": b"", "clicks": b"2026-01-01T00:00:00.000000000Z stdout F "}
HEADER = re.compile(rb"^(?:\S+Z stdout F )?\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", re.MULTILINE)
DAWN = datetime(2026, 1, 1, tzinfo=timezone.utc)
# Enough INFO lines to make a file larger than the head by which it is known.
BULK = tuple(
    b"2026-01-01 00:00:%02d,000 INFO  org.apache.flink.runtime.Filler [] - line %05d of many\n"
    % (n % 60, n)
    for n in range(1000)
)
PATHS = tuple(
    f"{folder}/{name}" for folder in ("orders", "clicks") for name in ("jm.log", "tm.log")
)
PHASES = tuple(Phase) if os.environ.get("SHRINK") else (Phase.explicit, Phase.reuse, Phase.generate)
paths = st.sampled_from(PATHS)


# --- the pipeline, with lists for tables ---------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What a run would publish: ledger rows, and the numbers of the events it read."""

    ledger: tuple[Row, ...]
    numbers: tuple[int, ...]


@dataclass
class Store:
    """The published tables; ``runs`` counts the runs, each of which came after the one before."""

    ledger: dict[str, LedgerEntry] = field(default_factory=dict)
    numbers: Counter[int] = field(default_factory=Counter)
    runs: int = 0

    def publish(self, outcome: Outcome, base: int) -> bool:
        if base != self.runs:
            return False
        if outcome.ledger:
            self.runs += 1
        self.ledger |= {row["path"]: entry_of(row) for row in outcome.ledger}
        self.numbers.update(outcome.numbers)
        return True


def execute(logs: Path, store: Store, now: datetime) -> Outcome:
    listing = list_inputs([str(logs)])
    plan = plan_work(
        listing.files,
        store.ledger.values(),
        open_plain,
        deployment_of=deployment_of,
        refused=listing.quarantined,
        now=now,
        settle_seconds=SETTLE,
    )
    files = prepare(plan, listing, OPTIONS)
    tasks = cut_ranges(files, OPTIONS.settings, now)
    numbers: list[int] = []
    summaries: list[dict[str, Any]] = []
    for task in tasks:
        for batch in stage_range(task, ANALYZER, OPTIONS.settings):
            for row in batch.to_pylist():
                if row["kind"] == "event":
                    found = NUMBER.search(row["event"]["message"].encode() + b" ")
                    numbers += [int(found[1])] if found else []
                elif row["kind"] == "summary":
                    summaries.append({"range_number": task.number, **row["summary"]})
    return Outcome(tuple(finished_rows(plan, files, tasks, summaries, open_plain)), tuple(numbers))


# --- the model: whole contents instead of hashes, everything read again at each run --------------


@dataclass(frozen=True)
class Known:
    stream: int
    consumed: bytes
    size_bytes: int
    modified_at: int


@dataclass
class Model:
    known: dict[str, Known] = field(default_factory=dict)
    numbers: Counter[int] = field(default_factory=Counter)
    streams: int = 0

    def run(self, disk: dict[str, tuple[bytes, bytes, int]], now: int) -> None:
        """``disk`` has of each path its text, its bytes, and when it was written to."""
        taken: set[int] = set()
        before = dict(self.known)
        moved: list[str] = []
        for path, (text, data, at) in sorted(disk.items()):
            old = before.get(path)
            if old is None:
                moved.append(path)
            elif text.startswith(old.consumed) and (
                (old.size_bytes, old.modified_at) == (len(data), at)
                or (old.consumed and old.stream not in taken)
            ):
                taken.add(old.stream)
                self._read(path, disk[path], now, old.stream, old.consumed)
            else:
                moved.append(path)
        fresh: list[str] = []
        for path in moved:
            text = disk[path][0]
            heirs = [
                (-len(old.consumed), where, old)
                for where, old in before.items()
                if old.consumed
                and old.stream not in taken
                and text.startswith(old.consumed)
                and Path(where).parent == Path(path).parent
            ]
            if not heirs:
                fresh.append(path)
                continue
            old = min(heirs, key=lambda heir: heir[:2])[2]
            taken.add(old.stream)
            self._read(path, disk[path], now, old.stream, old.consumed)
        for path in fresh:
            self.streams += 1
            self._read(path, disk[path], now, self.streams, b"")

    def _read(
        self, path: str, file: tuple[bytes, bytes, int], now: int, stream: int, consumed: bytes
    ) -> None:
        text, data, at = file
        new = text[len(consumed) :]
        if now - at <= SETTLE and data == text:
            starts = [match.start() for match in HEADER.finditer(new)]
            new = new[: starts[-1]] if starts else b""
        self.numbers.update(int(number) for number in NUMBER.findall(new))
        self.known[path] = Known(stream, consumed + new, len(data), at)


# --- what may happen ------------------------------------------------------------------------------


class LogFolder(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="files-over-time-"))
        self.store, self.model = Store(), Model()
        self.clock, self.number = 1000, 0
        self.has_copies = False
        self.half: dict[str, bytes] = {}
        self.readable: set[int] = set()

    def teardown(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)

    # What the rules are made of.

    def _event(self, path: str) -> bytes:
        self.number += 1
        # Of equal events in a minute of a file only the first fifty have a row of their own.
        at = DAWN + timedelta(minutes=self.number)
        text = f"{at:%Y-%m-%d %H:%M:%S},000 WARN  org.apache.flink.runtime.Task [] - event "
        return PREFIX[path.split("/")[0]] + f"{text}{self.number:06} was slow\n".encode()

    def _bulk(self, path: str) -> bytes:
        return b"".join(PREFIX[path.split("/")[0]] + line for line in BULK)

    def _path(self, name: str) -> Path:
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        return path

    def _write(self, name: str, data: bytes, *, is_appended: bool = True) -> None:
        self.clock += 1
        path = self._path(name)
        with path.open("ab" if is_appended else "wb") as file:
            file.write(data)
        self._touch(path)

    def _touch(self, path: Path) -> None:
        os.utime(path, (self._time(), self._time()))

    def _time(self) -> float:
        return (DAWN + timedelta(seconds=self.clock)).timestamp()

    def _files(self) -> list[str]:
        return sorted(str(p.relative_to(self.root)) for p in self.root.rglob("*") if p.is_file())

    def _disk(self) -> dict[str, tuple[bytes, bytes, int]]:
        disk = {}
        for name in self._files():
            data = (self.root / name).read_bytes()
            text = gzip.decompress(data) if name.endswith(".gz") else data
            at = round((self.root / name).stat().st_mtime - DAWN.timestamp())
            disk[name] = (text, data, at)
        return disk

    def _free(self, name: str) -> str:
        """The next generation's name, as an appender would give it."""
        taken = {file.removesuffix(".gz") for file in self._files()}
        return next(f"{name}.{n}" for n in range(1, 1000) if f"{name}.{n}" not in taken)

    # Rules.

    @rule(path=paths, count=st.integers(1, 4))
    def write(self, path: str, count: int) -> None:
        end = self.half.pop(path, b"")
        self._write(path, end + b"".join(self._event(path) for _ in range(count)))

    @rule(path=paths)
    def write_much(self, path: str) -> None:
        self._write(path, self.half.pop(path, b"") + self._bulk(path) + self._event(path))

    @rule(path=paths)
    def write_half_a_line(self, path: str) -> None:
        event = self._event(path)
        # In the middle of the number, so that no half tells it.
        cut = event.index(b"- event ") + 11
        self._write(path, self.half.pop(path, b"") + event[:cut])
        self.half[path] = event[cut:]

    @rule(path=paths, is_packed=st.booleans())
    def rotate(self, path: str, is_packed: bool) -> None:
        if path not in self._files():
            return
        self.half.pop(path, None)
        target = self._path(self._free(path))
        self._path(path).rename(target)
        if is_packed:
            self._pack(target)

    @rule(path=paths)
    def rotate_by_copy_and_truncate(self, path: str) -> None:
        if path not in self._files():
            return
        self.half.pop(path, None)
        target = self._free(path)
        self._write(target, self._path(path).read_bytes(), is_appended=False)
        self._write(path, b"", is_appended=False)

    def _pack(self, path: Path) -> None:
        packed = path.with_name(path.name + ".gz")
        packed.write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        self.clock += 1
        self._touch(packed)
        path.unlink()

    @rule(data=st.data())
    def pack_a_rotated_file(self, data: st.DataObject) -> None:
        rotated = [file for file in self._files() if re.search(r"\.log\.\d+$", file)]
        if rotated:
            self._pack(self.root / data.draw(st.sampled_from(rotated)))

    @rule(path=paths)
    def truncate(self, path: str) -> None:
        if path in self._files():
            self.half.pop(path, None)
            self._write(path, b"", is_appended=False)

    @rule(path=paths)
    def rewrite_with_the_same_size(self, path: str) -> None:
        if path in self._files() and path not in self.half:
            text = self._path(path).read_bytes()
            renumbered = re.sub(NUMBER, lambda _: NUMBER.search(self._event(path))[0], text)  # type: ignore[index]
            self._write(path, renumbered, is_appended=False)

    @rule(data=st.data())
    def copy(self, data: st.DataObject) -> None:
        if files := self._files():
            source = data.draw(st.sampled_from(files))
            self.has_copies = True
            suffix = ".gz" if source.endswith(".gz") else ""
            target = self._free(f"{Path(source).parent}/copy.log") + suffix
            self._write(target, (self.root / source).read_bytes(), is_appended=False)

    @rule(data=st.data())
    def rename(self, data: st.DataObject) -> None:
        if files := self._files():
            source = data.draw(st.sampled_from(files))
            self.half.pop(source, None)
            suffix = ".gz" if source.endswith(".gz") else ""
            target = self._free(f"{Path(source).parent}/other.log") + suffix
            (self.root / source).rename(self.root / target)

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        if files := self._files():
            source = data.draw(st.sampled_from(files))
            self.half.pop(source, None)
            (self.root / source).unlink()

    @rule(data=st.data())
    def touch(self, data: st.DataObject) -> None:
        if files := self._files():
            self.clock += 1
            self._touch(self.root / data.draw(st.sampled_from(files)))

    @rule()
    def wait(self) -> None:
        self.clock += 60

    @rule()
    @precondition(lambda self: bool(self._files()))
    def run(self) -> None:
        self.clock += 1
        outcome = execute(self.root, self.store, DAWN + timedelta(seconds=self.clock))
        assert self.store.publish(outcome, self.store.runs)
        self._modelled()

    @rule()
    @precondition(lambda self: bool(self._files()))
    def run_and_be_killed(self) -> None:
        self.clock += 1
        execute(self.root, self.store, DAWN + timedelta(seconds=self.clock))

    @rule(path=paths)
    @precondition(lambda self: bool(self._files()))
    def run_twice_at_once(self, path: str) -> None:
        """Two runs begin after the same run; what is published second has to be thrown away."""
        self.clock += 1
        base = self.store.runs
        now = DAWN + timedelta(seconds=self.clock)
        first, second = (execute(self.root, self.store, now) for _ in range(2))
        assert self.store.publish(first, base)
        assert self.store.publish(second, base) is not bool(first.ledger)
        self._modelled()

    @rule()
    def forget_what_the_ledger_held_before(self) -> None:
        """What upkeep leaves of the ledger: the newest row of each path, as a table gives it."""
        self.store.ledger = {
            path: entry_of(dict(entry.row)) for path, entry in self.store.ledger.items()
        }

    def _modelled(self) -> None:
        disk = self._disk()
        self.model.run(disk, self.clock)
        for text, data, at in disk.values():
            starts = [match.start() for match in HEADER.finditer(text)]
            is_held = self.clock - at <= SETTLE and data == text
            end = starts[-1] if starts and is_held else len(text)
            self.readable |= {int(number) for number in NUMBER.findall(text[:end])}

    @invariant()
    def what_is_published_is_what_the_model_says(self) -> None:
        if hasattr(self, "store"):
            assert self.store.numbers == self.model.numbers

    @invariant()
    def nothing_is_lost_and_without_copies_nothing_is_doubled(self) -> None:
        if hasattr(self, "store"):
            assert set(self.store.numbers) >= self.readable
            if not self.has_copies:
                assert all(count == 1 for count in self.store.numbers.values())


def test_whatever_happens_to_the_files_each_event_is_read_as_the_model_says() -> None:
    run_state_machine_as_test(
        LogFolder,
        settings=settings(
            max_examples=int(os.environ.get("FILES_OVER_TIME_EXAMPLES", "40")),
            stateful_step_count=30,
            deadline=None,
            phases=PHASES,
            suppress_health_check=list(HealthCheck),
        ),
    )
