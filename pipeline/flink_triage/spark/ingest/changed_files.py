"""Compares a listing with the ledger to determine the unread bytes.

A path whose size and modification time match the ledger is unchanged, unless its last event was
held back and is now due. All other paths are opened. The file at such a path continues the content
that was read there, has content that was read at a different path, or has new content.

Content is searched for at other paths of its deployment only if its own path has different content
or no longer exists, that is, after a rename, a rotation or a compression. Copies that exist at the
same time are all read, as in the local runner. A copy that was written a moment ago is deferred to
the next run, because it may belong to a rotation that is about to truncate the original.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, Protocol

from flink_triage.logs.detect.profile import PROBE_BYTES
from flink_triage.logs.inputs.files import InputFile
from flink_triage.model import FileProfile, Quarantined
from flink_triage.spark.ingest.content_identity import NOTHING, Mark, digest, heads_agree
from flink_triage.spark.ingest.examine_files import Look, Wanted

State = Literal["new", "append", "new-generation"]
Looker = Callable[[Sequence[Wanted]], Sequence[Look]]


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """The last published state of one file content: the number of bytes read, and its path.

    ``is_current`` is false if different content was read from the path later. ``row`` has the
    counts to continue from.
    """

    path: str
    deployment: str | None
    file_id: str
    generation: int
    size_bytes: int
    modified_at: datetime | None
    mark: Mark
    consumed_lines: int
    held_back_bytes: int = 0
    reason: str | None = None
    profile: FileProfile | None = None
    is_current: bool = True
    row: Mapping[str, Any] = field(default_factory=dict)

    @property
    def identity(self) -> tuple[str, int]:
        return self.file_id, self.generation


class Ledger(Protocol):
    """Content that earlier runs read; each method may return more entries than requested."""

    def changed(self, files: Sequence[InputFile]) -> Iterable[tuple[int, LedgerEntry | None]]:
        """The index of each new or changed file, and the current entry of its path, if any.

        Size and time are compared with the entry; a file with held-back bytes counts as changed.
        """
        ...

    def at(self, paths: Sequence[str]) -> Iterable[LedgerEntry]:
        """The current entries of the paths."""
        ...

    def alike(self, heads: Sequence[tuple[str, bytes]]) -> Iterable[LedgerEntry]:
        """Entries whose heads agree with the head of a file of their deployment.

        A file that is too short for a digest matches only entries without digests.
        """
        ...


@dataclass(frozen=True, slots=True)
class FileWork:
    """Bytes of one file to read: everything after the part that ``known`` marks.

    ``file`` has the size and modification time of the file when it was examined, and ``tail``
    identifies the end of the file at that time.
    """

    file: InputFile
    deployment: str
    file_id: str
    generation: int
    state: State
    profile: FileProfile
    tail: bytes
    known: Mark = NOTHING
    start_line: int = 0
    row: Mapping[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return self.file.path


@dataclass(frozen=True, slots=True)
class Alias:
    """A path whose content earlier runs read, except held-back bytes, as recorded in ``entry``.

    The content was read at a different path, or at this path before its time or size changed.
    """

    path: str
    size_bytes: int
    modified_at: datetime
    entry: LedgerEntry


@dataclass(frozen=True, slots=True)
class WorkPlan:
    """The files to read, the aliases to record, and the paths that are not read.

    The ``unreadable`` paths are only reported: the listing rejected them, or they cannot be opened.
    The next run plans the ``deferred`` paths again.
    """

    work: tuple[FileWork, ...] = ()
    aliases: tuple[Alias, ...] = ()
    unreadable: tuple[Quarantined, ...] = ()
    deferred: tuple[str, ...] = ()
    unchanged_count: int = 0

    @property
    def is_empty(self) -> bool:
        return not (self.work or self.aliases or self.unreadable)


@dataclass(frozen=True, slots=True)
class _Examined:
    """A file that was opened and compared with the marks of ``entries``.

    ``is_replaced``: when the path was opened again, it had different content.
    """

    file: InputFile
    deployment: str
    entry: LedgerEntry | None
    entries: tuple[LedgerEntry, ...]
    look: Look
    is_replaced: bool = False


def plan_work(
    files: Sequence[InputFile],
    refused: Sequence[Quarantined],
    ledger: Ledger,
    look: Looker,
    *,
    deployment_of: Callable[[InputFile], str],
    now: datetime,
    settle_seconds: float,
    salt: str,
) -> WorkPlan:
    """The part of ``files`` that is not in the ledger; pure except for ``ledger`` and ``look``.

    ``refused`` are paths that the listing could not use. ``salt`` makes the ids of new files differ
    from the ids in other runs.
    """
    planner = _Planner(now, settle_seconds, salt)
    planner.refuse_all(refused, ledger.at([bad.path for bad in refused]))
    changed = [
        (files[index], entry)
        for index, entry in ledger.changed(files)
        if entry is None or not planner.is_unchanged(files[index], entry)
    ]
    changed.sort(key=lambda pair: pair[0].path)
    examined = _examined(changed, deployment_of, look)
    elsewhere = [one for one in examined if not planner.place(one)]
    # The paths that no longer have their earlier content are known only now.
    alike = _by_deployment(ledger.alike([(e.deployment, e.look.head.head) for e in elsewhere]))
    there = {file.path for file in files} - {file.path for file, _ in changed}
    found = (entry for entries in alike.values() for entry in entries)
    planner.claim_all(entry for entry in found if entry.is_current and entry.path in there)
    again = [_to_compare(e, _held(e, alike[e.deployment])) for e in elsewhere]
    fresh = [one for one in _looked_again(again, look) if not planner.place(one)]
    # All renamed files are found: the others were rewritten in place or are new.
    paths = {one.file.path for one in fresh}
    planner.place_new(fresh, [e for e in examined if e.file.path not in paths], alike)
    return planner.finish(len(files) - len(changed))


def _examined(
    changed: Sequence[tuple[InputFile, LedgerEntry | None]],
    deployment_of: Callable[[InputFile], str],
    look: Looker,
) -> list[_Examined]:
    """The changed files, each compared with the content that was read from its path."""
    own = [(e,) if e is not None and e.mark.consumed_bytes else () for _, e in changed]
    wanted = [
        Wanted(file, tuple(e.mark for e in entries), _known_profile(entries))
        for (file, _), entries in zip(changed, own, strict=True)
    ]
    return [
        _Examined(file, deployment_of(file), entry, entries, seen)
        for (file, entry), entries, seen in zip(changed, own, look(wanted), strict=True)
    ]


def _known_profile(entries: Sequence[LedgerEntry]) -> FileProfile | None:
    """The stored profile, if everything that determines a profile was already read."""
    is_known = entries and entries[0].mark.consumed_bytes >= PROBE_BYTES
    return entries[0].profile if is_known else None


def _by_deployment(entries: Iterable[LedgerEntry]) -> Mapping[str, list[LedgerEntry]]:
    """The entries of each deployment, in descending order of the bytes read."""
    found: dict[str, list[LedgerEntry]] = defaultdict(list)
    for entry in entries:
        if entry.deployment is not None:
            found[entry.deployment].append(entry)
    for of_one in found.values():
        of_one.sort(key=lambda entry: (-entry.mark.consumed_bytes, entry.path))
    return found


def _held(one: _Examined, entries: Sequence[LedgerEntry]) -> tuple[LedgerEntry, ...]:
    """Entries whose content the file may have, according to its head."""
    head = one.look.head.head
    return tuple(
        entry
        for entry in entries
        if len(entry.mark.head) <= len(head) and heads_agree(entry.mark.head, head)
    )


def _to_compare(one: _Examined, entries: tuple[LedgerEntry, ...]) -> _Examined:
    # Without entries, as for all files of a first run, there is nothing to compare.
    if not (entries or one.entries):
        return one
    return replace(one, entries=entries, look=replace(one.look, goes_on=()))


def _looked_again(files: Sequence[_Examined], look: Looker) -> list[_Examined]:
    """The files; files with entries are opened again and compared with the marks of the entries."""
    asked = [one for one in files if one.entries]
    marks = [(one.look.head, *(entry.mark for entry in one.entries)) for one in asked]
    looks = look([Wanted(one.file, of_one) for one, of_one in zip(asked, marks, strict=True)])
    seen = {one.file.path: again for one, again in zip(asked, looks, strict=True)}
    return [_compared(one, seen.get(one.file.path)) for one in files]


def _compared(one: _Examined, again: Look | None) -> _Examined:
    if again is None:
        return one
    is_same, *goes_on = again.goes_on or (True,)  # none if it cannot be opened
    look = replace(again, goes_on=tuple(goes_on))
    return replace(one, look=look, is_replaced=is_same is None)


class _Planner:
    def __init__(self, now: datetime, settle_seconds: float, salt: str) -> None:
        self._now = now
        self._settle_seconds = settle_seconds
        self._salt = salt
        self._claimed: set[tuple[str, int]] = set()
        self._work: list[FileWork] = []
        self._aliases: list[Alias] = []
        self._unreadable: list[Quarantined] = []
        self._deferred: list[str] = []

    def refuse_all(self, refused: Sequence[Quarantined], known: Iterable[LedgerEntry]) -> None:
        known_reasons = {entry.path: entry.reason for entry in known}
        self._unreadable += [bad for bad in refused if known_reasons.get(bad.path) != bad.reason]

    def is_unchanged(self, file: InputFile, entry: LedgerEntry) -> bool:
        """Whether size and time match the entry, and no held-back event is due."""
        same_file = file.size_bytes == entry.size_bytes and file.modified_at == entry.modified_at
        # The last event of a file is no longer held back once the file has settled.
        is_due = entry.held_back_bytes > 0 and not self._is_recent(file.modified_at)
        return same_file and not is_due

    def claim_all(self, entries: Iterable[LedgerEntry]) -> None:
        self._claimed.update(entry.identity for entry in entries)

    def place(self, one: _Examined) -> bool:
        """Plan the file if it starts with the content of an entry; return whether it is planned.

        An entry that another file continues is not used. A path that cannot be opened counts as
        planned; it is added to the unreadable paths, unless the ledger has the same problem.
        """
        if one.look.problem is not None:
            if one.entry is None or one.entry.reason != one.look.problem:
                self._unreadable.append(Quarantined(one.file.path, one.look.problem))
            return True
        for entry, goes_on in zip(one.entries, one.look.goes_on, strict=True):
            if goes_on is not None and entry.identity not in self._claimed:
                self._go_on(one, entry, goes_on=goes_on)
                return True
        return False

    def _go_on(self, one: _Examined, entry: LedgerEntry, *, goes_on: bool) -> None:
        self._claimed.add(entry.identity)
        look, path = one.look, one.file.path
        is_own = path == entry.path
        due = entry.held_back_bytes == 0 or not self._is_recent(look.modified_at) or not is_own
        if not goes_on or (not due and look.size_bytes == entry.size_bytes):
            self._aliases.append(Alias(path, look.size_bytes, look.modified_at, entry))
            return
        work = self._work_on(one, entry.file_id, entry.generation, "append")
        known, lines = entry.mark, entry.consumed_lines
        self._work.append(replace(work, known=known, start_line=lines, row=entry.row))

    def place_new(
        self,
        fresh: Sequence[_Examined],
        others: Sequence[_Examined],
        alike: Mapping[str, Sequence[LedgerEntry]],
    ) -> None:
        """Plan to read the files with new content; defer those that may be copies in progress.

        Content that replaced other content while the run was planning is deferred as well: it may
        have been read at a path that was opened before.
        """
        read = list(others)
        for is_recent in (False, True):
            for one in fresh:
                if self._is_recent(one.look.changed_at) != is_recent:
                    continue
                is_copy = is_recent and self._is_copy(one, alike[one.deployment], read)
                if one.is_replaced or is_copy:
                    self._deferred.append(one.file.path)
                    continue
                read.append(one)
                self._work.append(self._new(one))

    def _is_copy(
        self, one: _Examined, entries: Sequence[LedgerEntry], others: Sequence[_Examined]
    ) -> bool:
        """Whether the file, or the start of it, was or will be read at a different path."""
        if any(goes_on is not None for goes_on in one.look.goes_on):
            return True
        head = one.look.head.head
        longer = [e.mark.head for e in entries if e.mark.consumed_bytes > one.look.size_bytes]
        beside = [o.look.head.head for o in others if o.deployment == one.deployment]
        return any(other and head and heads_agree(head, other) for other in (*longer, *beside))

    def _is_recent(self, at: datetime) -> bool:
        return (self._now - at).total_seconds() <= self._settle_seconds

    def _new(self, one: _Examined) -> FileWork:
        known, head = one.entry, one.look.head
        # Two files may share a head, so the id includes the path where the content was first found.
        # A later rename does not change the id.
        name = one.file.path.encode("utf-8", "surrogateescape")
        seed = b"\0".join((self._salt.encode(), name, head.head + head.window))
        file_id = digest(seed).hex()
        # No other path has the earlier content, so this path was probably rewritten in place.
        if known and known.mark.consumed_bytes and known.identity not in self._claimed:
            return self._work_on(one, file_id, known.generation + 1, "new-generation")
        return self._work_on(one, file_id, 0, "new")

    def _work_on(self, one: _Examined, file_id: str, generation: int, state: State) -> FileWork:
        look, listed = one.look, one.file
        file = replace(listed, size_bytes=look.size_bytes, modified_at=look.modified_at)
        return FileWork(file, one.deployment, file_id, generation, state, look.profile, look.tail)

    def finish(self, unchanged_count: int) -> WorkPlan:
        return WorkPlan(
            tuple(sorted(self._work, key=lambda work: work.path)),
            tuple(self._aliases),
            tuple(self._unreadable),
            tuple(self._deferred),
            unchanged_count,
        )
