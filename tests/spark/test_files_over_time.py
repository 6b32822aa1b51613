"""Tests random sequences of log file operations against a simple model.

The ledger, planning, probing, reading and hashing are those of the pipeline; only the tables are
replaced by lists. No session is started.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
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

from flink_triage.analyzer import Analyzer
from flink_triage.local import Options, pack_of
from flink_triage.logs.inputs.files import list_inputs
from flink_triage.match_stored import rematch
from flink_triage.model import Observation
from flink_triage.signatures import Matcher, SignaturePack
from flink_triage.signatures.pack import build_pack
from flink_triage.signatures.signature import Alternative, RemediationSpec, Signature
from flink_triage.spark.ingest.content_identity import HEAD_STEPS
from flink_triage.spark.ingest.ledger import Row
from flink_triage.spark.ingest.ranges import cut_ranges
from flink_triage.spark.ingest.read import batches_of, stage_range
from flink_triage.spark.tables.parcels import unpacked
from flink_triage.spark.tables.row_codec import observations_of
from tests.spark.memory_ledger import MemoryLedger, plan_over, rows_after

OPTIONS = Options()
# Two packs that alternate. A signature of the second pack matches every numbered event.
SLOW = "test/slow"
BUILT_IN = pack_of(OPTIONS)
NAMING = build_pack(
    [
        *BUILT_IN.signatures.values(),
        Signature(
            SLOW,
            "Something was slow",
            "minor",
            "symptom",
            "any",
            (Alternative(literals=("was slow",)),),
            "",
            RemediationSpec(""),
        ),
    ]
)
ANALYZERS = {pack.digest: Analyzer(pack, OPTIONS.settings, UTC) for pack in (BUILT_IN, NAMING)}
SETTLE = OPTIONS.settings.settle_seconds
NUMBER = re.compile(rb"event (\d{6}) ")
LOGGER = re.compile(rb"\.r(untime|\d{6})\.")
# The files of one deployment have the format of a container runtime and are read line by line.
PREFIX = {"orders": b"", "clicks": b"2026-01-01T00:00:00.000000000Z stdout F "}
HEADER = re.compile(rb"^(?:\S+Z stdout F )?\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", re.MULTILINE)
DAWN = datetime(2026, 1, 1, tzinfo=UTC)
# Enough INFO lines to make a file larger than the head that identifies it.
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
    """The output of a run: ledger rows, and the numbered events that it read."""

    ledger: tuple[Row, ...]
    events: tuple[Observation, ...]


@dataclass
class Store:
    """The published tables; ``runs`` counts the runs, each of which follows the previous one."""

    ledger: MemoryLedger = field(default_factory=MemoryLedger)
    events: list[Observation] = field(default_factory=list)
    runs: int = 0

    @property
    def numbers(self) -> Counter[int]:
        return Counter(map(number_of, self.events))

    @property
    def named(self) -> Counter[int]:
        """Events in which the signature for slow events matched."""
        return Counter(
            number_of(o) for o in self.events if any(m.signature == SLOW for m in o.matches)
        )

    def publish(self, outcome: Outcome, base: int) -> bool:
        if base != self.runs:
            return False
        if outcome.ledger:
            self.runs += 1
        self.ledger.rows += outcome.ledger
        self.events += outcome.events
        return True

    def match_again(self, pack: SignaturePack) -> None:
        """Publish the result of a rematch, without reading the logs."""
        matcher = Matcher(pack)
        found = [rematch(event, None, matcher, pack) for event in self.events]
        assert not any(again.unknown_count for again in found)
        self.events = [
            replace(event, matches=again.matches)
            for event, again in zip(self.events, found, strict=True)
        ]


def number_of(observation: Observation) -> int:
    found = NUMBER.search(observation.event.message.encode() + b" ")
    assert found is not None
    return int(found[1])


def execute(logs: Path, store: Store, now: datetime, pack: SignaturePack) -> Outcome:
    listing = list_inputs([str(logs)])
    plan = plan_over(listing, store.ledger, OPTIONS.settings, now)
    tasks = cut_ranges(plan.work, OPTIONS.settings, now)
    events: list[Observation] = []
    summaries: list[dict[str, Any]] = []
    for task in tasks:
        parts = stage_range(task, ANALYZERS[pack.digest], OPTIONS.settings, set())
        for batch in batches_of(parts):
            for row in batch.to_pylist():
                rows = unpacked(row["rows"])
                if row["kind"] == "event":
                    events += observations_of(rows)
                elif row["kind"] == "summary":
                    summaries += rows.to_pylist()
    ledger = rows_after(plan, tasks, summaries)
    numbered = (o for o in events if NUMBER.search(o.event.message.encode() + b" "))
    return Outcome(tuple(ledger), tuple(numbered))


# --- the model: whole contents instead of hashes, everything reread in each run ------------------


@dataclass(frozen=True)
class Known:
    stream: int
    path: str
    consumed: bytes
    size_bytes: int
    modified_at: int


@dataclass
class Model:
    # The newest content of each stream; the last content inserted for a path is its current one.
    known: dict[int, Known] = field(default_factory=dict)
    numbers: Counter[int] = field(default_factory=Counter)
    # Events that the pack matched when they were read, or when all events were matched again.
    named: Counter[int] = field(default_factory=Counter)
    is_naming: bool = False
    streams: int = 0
    # Copies that the last run deferred to the next run.
    deferred: set[str] = field(default_factory=set)

    def match_again(self) -> None:
        self.named = self.numbers.copy() if self.is_naming else Counter()

    def run(self, disk: dict[str, tuple[bytes, bytes, int]], now: int) -> None:
        """``disk`` maps each path to its text, its bytes and its modification time."""
        own = {known.path: known for known in self.known.values()}
        before = list(self.known.values())
        taken: set[int] = set()
        moved: list[str] = []
        looked: list[str] = []
        for path, (text, data, at) in sorted(disk.items()):
            old = own.get(path)
            is_same = old is not None and (old.size_bytes, old.modified_at) == (len(data), at)
            goes_on = old is not None and old.consumed and text.startswith(old.consumed)
            if old is not None and (is_same or (goes_on and old.stream not in taken)):
                taken.add(old.stream)
                is_due = old.consumed != text and now - at > SETTLE
                looked += [path] if is_due or not is_same else []
                self._read(path, disk[path], now, old.stream, old.consumed)
            else:
                moved.append(path)
        fresh: list[str] = []
        for path in moved:
            text = disk[path][0]
            heirs = [
                (-len(old.consumed), old.path, old.stream, old)
                for old in before
                if old.consumed
                and old.stream not in taken
                and text.startswith(old.consumed)
                and Path(old.path).parent == Path(path).parent
            ]
            if not heirs:
                fresh.append(path)
                continue
            old = min(heirs, key=lambda heir: heir[:3])[-1]
            taken.add(old.stream)
            self._read(path, disk[path], now, old.stream, old.consumed)
        self.deferred = set()
        looked += [path for path in moved if path not in fresh]
        for path in sorted(fresh, key=lambda path: (now - disk[path][2] <= SETTLE, path)):
            text, data, at = disk[path]
            near = [old for old in before if Path(old.path).parent == Path(path).parent]
            is_copy = any(
                (old.consumed and text.startswith(old.consumed))
                or (len(old.consumed) > len(data) and begin_alike(text, old.consumed))
                for old in near
            )
            is_copy |= any(
                begin_alike(text, disk[other][0])
                for other in looked
                if Path(other).parent == Path(path).parent
            )
            if now - at <= SETTLE and is_copy:
                self.deferred.add(path)
                continue
            looked.append(path)
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
        numbers = [int(number) for number in NUMBER.findall(new)]
        self.numbers.update(numbers)
        self.named.update(numbers if self.is_naming else ())
        self.known.pop(stream, None)
        self.known[stream] = Known(stream, path, consumed + new, len(data), at)


def begin_alike(one: bytes, other: bytes) -> bool:
    """Whether both start alike, compared at the head lengths that both reach."""
    common = [step for step in HEAD_STEPS if step <= min(len(one), len(other))]
    return bool(common) and one[: common[-1]] == other[: common[-1]]


# --- operations -----------------------------------------------------------------------------------


class LogFolder(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="files-over-time-"))
        self.store, self.model = Store(), Model()
        self.clock, self.number = 1000, 0
        self.has_copies = False
        self.half: dict[str, bytes] = {}
        self.half_number: dict[str, int] = {}
        self.readable: set[int] = set()
        # Events that were read while incomplete, in a file that had already settled.
        self.torn: set[int] = set()
        self.pack = BUILT_IN

    def teardown(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)

    # Building blocks of the rules.

    def _event(self, path: str) -> bytes:
        self.number += 1
        # Only the first ten of equal events in a minute of a file have separate rows.
        at = DAWN + timedelta(minutes=self.number)
        text = f"{at:%Y-%m-%d %H:%M:%S},000 WARN  org.apache.flink.runtime.Task [] - event "
        return PREFIX[path.split("/")[0]] + f"{text}{self.number:06} was slow\n".encode()

    def _bulk(self, path: str) -> bytes:
        # Unique for each file: the plan treats two files with equal head and window as one.
        own = f"line {self.number:06}-".encode()
        prefix = PREFIX[path.split("/")[0]]
        return b"".join(prefix + line.replace(b"line ", own) for line in BULK)

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
        """The name of the next generation, as an appender would choose it."""
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
        # Cut in the middle of the number, so that neither half contains it.
        cut = event.index(b"- event ") + 11
        self._write(path, self.half.pop(path, b"") + event[:cut])
        self.half[path] = event[cut:]
        self.half_number[path] = self.number

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
            renumbered = re.sub(NUMBER, lambda old: self._another(path, int(old[1])), text)
            # Change the head as well: an edit between the head and the window is not detected.
            renumbered = re.sub(LOGGER, f".r{self.number:06}.".encode(), renumbered)
            self._write(path, renumbered, is_appended=False)

    def _another(self, path: str, old: int) -> bytes:
        """The words of a new event that replaces the old one; torn if the old one was torn."""
        words = NUMBER.search(self._event(path))
        assert words is not None
        if old in self.torn:
            self.torn.add(self.number)
        return words[0]

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
        outcome = execute(self.root, self.store, DAWN + timedelta(seconds=self.clock), self.pack)
        assert self.store.publish(outcome, self.store.runs)
        self._modelled()

    @rule()
    @precondition(lambda self: bool(self._files()))
    def run_and_be_killed(self) -> None:
        self.clock += 1
        execute(self.root, self.store, DAWN + timedelta(seconds=self.clock), self.pack)

    @rule(path=paths)
    @precondition(lambda self: bool(self._files()))
    def run_twice_at_once(self, path: str) -> None:
        """Two runs begin after the same run. If one publishes rows, the other must be discarded."""
        self.clock += 1
        base = self.store.runs
        now = DAWN + timedelta(seconds=self.clock)
        first, second = (execute(self.root, self.store, now, self.pack) for _ in range(2))
        assert self.store.publish(first, base)
        assert self.store.publish(second, base) is not bool(first.ledger)
        self._modelled()

    @rule()
    @precondition(lambda self: bool(self.store.events))
    def change_the_pack(self) -> None:
        self.pack = BUILT_IN if self.pack is NAMING else NAMING
        self.model.is_naming = self.pack is NAMING

    @rule(is_changed=st.booleans())
    @precondition(lambda self: bool(self.store.events))
    def match_again(self, is_changed: bool) -> None:
        if is_changed:
            self.change_the_pack()
        self.store.match_again(self.pack)
        self.model.match_again()

    @rule()
    @precondition(lambda self: bool(self.store.events))
    def match_again_and_be_killed(self) -> None:
        Store(MemoryLedger(list(self.store.ledger.rows)), list(self.store.events)).match_again(
            self.pack
        )

    @rule()
    def forget_what_the_ledger_held_before(self) -> None:
        """Apply the effect of maintenance on the ledger: keep the newest row of each content."""
        newest = {(row["file_id"], row["generation"]): row for row in self.store.ledger.rows}
        self.store.ledger.rows = [
            row
            for row in self.store.ledger.rows
            if newest[row["file_id"], row["generation"]] is row
        ]

    def _modelled(self) -> None:
        disk = self._disk()
        self.model.run(disk, self.clock)
        for name, (text, data, at) in disk.items():
            if name in self.model.deferred:
                continue
            starts = [match.start() for match in HEADER.finditer(text)]
            is_held = self.clock - at <= SETTLE and data == text
            end = starts[-1] if starts and is_held else len(text)
            if name in self.half and not is_held:
                self.torn.add(self.half_number[name])
            self.readable |= {int(number) for number in NUMBER.findall(text[:end])}

    @invariant()
    def what_is_published_is_what_the_model_says(self) -> None:
        if hasattr(self, "store"):
            assert self.store.numbers == self.model.numbers
            assert self.store.named == self.model.named

    @invariant()
    def nothing_is_lost_and_without_copies_nothing_is_doubled(self) -> None:
        if hasattr(self, "store"):
            assert set(self.store.numbers) >= self.readable - self.torn
            if not self.has_copies:
                assert all(count == 1 for count in self.store.numbers.values())


def test_published_events_match_the_model_after_any_file_operations() -> None:
    run_state_machine_as_test(
        LogFolder,
        settings=settings(
            max_examples=int(os.environ.get("FILES_OVER_TIME_EXAMPLES", "25")),
            stateful_step_count=30,
            deadline=None,
            phases=PHASES,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_a_changed_pack_reaches_what_was_read_before_it() -> None:
    """A fixed sequence that random sequences rarely contain, so that every test run covers it."""
    machine = LogFolder()
    machine.begin()
    for is_changed in (True, True, False):
        machine.write("orders/jm.log", 3)
        machine.write_half_a_line("clicks/jm.log")
        machine.run()
        machine.match_again(is_changed)
        machine.wait()
        machine.run()
        machine.what_is_published_is_what_the_model_says()
    assert machine.store.named == Counter()
    machine.match_again(True)
    machine.what_is_published_is_what_the_model_says()
    assert sum(machine.store.named.values()) == sum(machine.store.numbers.values()) > 8
    machine.teardown()


def test_held_back_event_may_vanish_and_nothing_is_read_again() -> None:
    machine = LogFolder()
    machine.begin()
    machine.write("clicks/jm.log", 4)
    machine.run()
    path = machine._path("clicks/jm.log")
    read = b"".join(path.read_bytes().splitlines(keepends=True)[:3])
    machine._write("clicks/jm.log", read, is_appended=False)
    for _ in range(2):
        machine.run()
        machine.what_is_published_is_what_the_model_says()
    machine.write("clicks/jm.log", 2)
    machine.wait()
    machine.run()
    machine.what_is_published_is_what_the_model_says()
    assert sorted(machine.store.numbers.elements()) == [1, 2, 3, 5, 6]
    machine.teardown()
