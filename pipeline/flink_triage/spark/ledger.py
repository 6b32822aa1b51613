"""What is new: in go the listed files and the ledger, out come the bytes that nobody has read.

What is trusted: a path whose size, modification time and head (64 KiB) are those of the ledger is
taken to be unchanged.  Everything else is compared over the whole consumed prefix, first with what
its own path held.  Content whose path is gone or holds something else lives on in at most one other
file of its deployment: it was renamed, rotated or compressed.  Files that lie beside each other are
each read, whatever they share: a copy is an input like any other, as in the in-process runner.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol, TypeVar

from flink_triage.model import Quarantined
from flink_triage.spark.content import (
    Opener,
    Prefix,
    compare,
    read_head,
    sha256,
)

State = Literal["new", "append", "new-generation"]
NOTHING = Prefix(0)


class Listed(Protocol):
    """What the plan looks at in a listed file."""

    @property
    def path(self) -> str: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def modified_at(self) -> datetime: ...


L = TypeVar("L", bound=Listed)


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """The newest published state of one path."""

    path: str
    file_id: str
    generation: int
    state: str
    size_bytes: int
    modified_at: datetime | None
    head_bytes: int
    head_sha256: str
    consumed: Prefix
    consumed_lines: int
    deployment: str | None = None
    held_back_bytes: int = 0
    reason: str | None = None
    # The whole row, for what goes on counting.
    row: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FileWork:
    """Bytes of one file that are to be read: everything from ``start`` on."""

    path: str
    file_id: str
    generation: int
    state: State
    start: int
    start_line: int
    size_bytes: int
    modified_at: datetime
    head_bytes: int
    head_sha256: str
    known: Prefix = NOTHING
    row: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Alias:
    """A path whose whole content an earlier run read, as ``entry`` says: under another path, or
    under this one before its time or size changed."""

    path: str
    size_bytes: int
    modified_at: datetime
    entry: LedgerEntry


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A path that could not be opened, or that is no file."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class _Head:
    """What the plan needs of a file's first bytes; the bytes of all files are too much to hold.

    ``candidates`` are entries with whose heads the file begins, the most consumed first.
    """

    size_bytes: int
    sha256: str
    candidates: tuple[LedgerEntry, ...]


@dataclass(frozen=True, slots=True)
class WorkPlan:
    work: tuple[FileWork, ...] = ()
    aliases: tuple[Alias, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()
    unchanged: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.work or self.aliases or self.unreadable)


def plan_work(
    files: Sequence[L],
    entries: Iterable[LedgerEntry],
    open_file: Opener,
    *,
    deployment_of: Callable[[L], str],
    refused: Sequence[Quarantined] = (),
    now: datetime,
    settle_seconds: float,
) -> WorkPlan:
    """What of ``files`` is new to the ledger; pure but for reading the files.

    ``refused`` are paths that the listing already gave up on.
    """
    planner = _Planner(tuple(entries), open_file, now, settle_seconds)
    for bad in refused:
        planner.refuse(bad.path, bad.reason)
    elsewhere = [
        file
        for file in sorted(files, key=lambda file: file.path)
        if not planner.place_at_its_path(file)
    ]
    # Only now is it known which paths no longer hold what they held; and only when all that was
    # renamed is found, which of them were rewritten in place.
    planner.find_lost()
    fresh: list[tuple[L, _Head]] = []
    for file in elsewhere:
        head = planner.head_of(file, deployment_of(file))
        if head is not None and not planner.place_elsewhere(file, head):
            fresh.append((file, head))
    for file, head in fresh:
        planner.place_new(file, head)
    return planner.finish()


def batch_id(plan: WorkPlan, parser: str) -> str:
    """Identity of the plan: the same bytes read by the same parser are the same batch."""
    digest = hashlib.sha256(parser.encode())
    for work in sorted(plan.work, key=lambda work: (work.file_id, work.generation)):
        line = f"{work.file_id}\0{work.generation}\0{work.start}\0{work.size_bytes}\n"
        digest.update(line.encode())
    for alias in sorted(plan.aliases, key=lambda alias: alias.path):
        line = f"alias\0{alias.path}\0{alias.entry.path}\0{alias.size_bytes}\0{alias.modified_at}\n"
        digest.update(line.encode("utf-8", "surrogateescape"))
    for bad in sorted(plan.unreadable, key=lambda bad: bad.path):
        digest.update(f"unreadable\0{bad.path}\0{bad.reason}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


class _Planner:
    def __init__(
        self,
        entries: tuple[LedgerEntry, ...],
        open_file: Opener,
        now: datetime,
        settle_seconds: float,
    ) -> None:
        self._by_path = {entry.path: entry for entry in entries}
        # Entries by deployment, and in it by size and hash of their heads.
        self._lost: dict[str | None, dict[int, dict[str, list[LedgerEntry]]]] = {}
        self._generations: dict[str, int] = {}
        for entry in entries:
            newest = self._generations.get(entry.file_id, 0)
            self._generations[entry.file_id] = max(newest, entry.generation)
        self._open = open_file
        self._now = now
        self._settle_seconds = settle_seconds
        self._claimed: set[tuple[str, int]] = set()
        self._work: list[FileWork] = []
        self._aliases: list[Alias] = []
        self._unreadable: list[Unreadable] = []
        self._unchanged: list[str] = []

    def place_at_its_path(self, file: Listed) -> bool:
        """Whether the path still holds what the ledger says of it, with or without more.

        A file that cannot be opened is refused.
        """
        known = self._by_path.get(file.path)
        if known is None:
            return False
        head = self._read(file)
        if head is None:
            return True
        if sha256(head[: known.head_bytes]) != known.head_sha256:
            return False
        if self._is_unchanged(file, known):
            self._unchanged.append(file.path)
            self._claim(known)
            return True
        return self._is_continued(file, known)

    def find_lost(self) -> None:
        """What was read and stands at its path no longer may stand at another."""
        for entry in self._by_path.values():
            if entry.consumed.size_bytes and not self._is_claimed(entry):
                of_deployment = self._lost.setdefault(entry.deployment, {})
                of_size = of_deployment.setdefault(entry.head_bytes, {})
                of_size.setdefault(entry.head_sha256, []).append(entry)

    def head_of(self, file: Listed, deployment: str) -> _Head | None:
        """The head of ``file``; one that cannot be opened is refused."""
        data = self._read(file)
        if data is None:
            return None
        lost = self._lost.get(deployment, {})
        found: list[LedgerEntry] = []
        digest, at = hashlib.sha256(), 0
        for size in sorted(size for size in lost if size <= len(data)):
            digest.update(data[at:size])
            at = size
            found += lost[size].get(digest.copy().hexdigest(), ())
        digest.update(data[at:])
        found.sort(key=lambda entry: (-entry.consumed.size_bytes, entry.path))
        return _Head(len(data), digest.hexdigest(), tuple(found))

    def place_elsewhere(self, file: Listed, head: _Head) -> bool:
        """Whether the file holds what was read under a path that no longer holds it."""
        return any(self._is_continued(file, entry) for entry in head.candidates)

    def place_new(self, file: Listed, head: _Head) -> None:
        self._work.append(self._new(file, head))

    def _read(self, file: Listed) -> bytes | None:
        try:
            return read_head(file.path, self._open)
        except OSError as error:
            self.refuse(file.path, (error.strerror or str(error)).lower())
            return None

    def _claim(self, entry: LedgerEntry) -> None:
        self._claimed.add((entry.file_id, entry.generation))

    def _is_claimed(self, entry: LedgerEntry) -> bool:
        return (entry.file_id, entry.generation) in self._claimed

    def refuse(self, path: str, reason: str) -> None:
        known = self._by_path.get(path)
        if known is not None and known.reason == reason:
            self._unchanged.append(path)
        else:
            self._unreadable.append(Unreadable(path, reason))

    def _is_unchanged(self, file: Listed, known: LedgerEntry) -> bool:
        """Whether a file with the head of the ledger is the one that was read."""
        same_file = file.size_bytes == known.size_bytes and file.modified_at == known.modified_at
        # The last event of a file that has gone quiet is no longer held back.
        is_due = known.held_back_bytes > 0 and self._is_settled(file)
        return same_file and not is_due

    def _is_settled(self, file: Listed) -> bool:
        return (self._now - file.modified_at).total_seconds() > self._settle_seconds

    def _is_continued(self, file: Listed, entry: LedgerEntry) -> bool:
        """Whether ``file``, which has the head of ``entry``, begins with all that was consumed of
        it; if so it is planned."""
        if not entry.consumed.size_bytes or self._is_claimed(entry):
            return False
        goes_on = compare(file.path, self._open, entry.consumed)
        if goes_on is None:
            return False
        self._continue(file, entry, goes_on)
        return True

    def _continue(self, file: Listed, entry: LedgerEntry, goes_on: bool) -> None:
        self._claim(entry)
        is_own = file.path == entry.path
        due = entry.held_back_bytes == 0 or self._is_settled(file) or not is_own
        if not goes_on or (not due and file.size_bytes == entry.size_bytes):
            self._aliases.append(Alias(file.path, file.size_bytes, file.modified_at, entry))
            return
        self._work.append(
            FileWork(
                path=file.path,
                file_id=entry.file_id,
                generation=entry.generation,
                state="append",
                start=entry.consumed.size_bytes,
                start_line=entry.consumed_lines,
                size_bytes=file.size_bytes,
                modified_at=file.modified_at,
                head_bytes=entry.head_bytes,
                head_sha256=entry.head_sha256,
                known=entry.consumed,
                row=entry.row,
            )
        )

    def finish(self) -> WorkPlan:
        return WorkPlan(
            tuple(sorted(self._work, key=lambda work: work.path)),
            tuple(self._aliases),
            tuple(self._unreadable),
            tuple(self._unchanged),
        )

    def _new(self, file: Listed, head: _Head) -> FileWork:
        known = self._by_path.get(file.path)
        # A rotated file lives on under another name; one that does not was rewritten in place.
        if known is not None and not self._is_claimed(known):
            file_id, generation = known.file_id, known.generation + 1
            state: State = "new-generation"
        else:
            # Two contents may share their head: the path they were first seen under tells them
            # apart, and no later rename changes an identity once given.
            name = file.path.encode("utf-8", "surrogateescape")
            file_id = hashlib.sha256(head.sha256.encode() + b"\0" + name).hexdigest()[:32]
            generation = self._generations.get(file_id, -1) + 1
            state = "new"
        return FileWork(
            path=file.path,
            file_id=file_id,
            generation=generation,
            state=state,
            start=0,
            start_line=0,
            size_bytes=file.size_bytes,
            modified_at=file.modified_at,
            head_bytes=head.size_bytes,
            head_sha256=head.sha256,
        )
