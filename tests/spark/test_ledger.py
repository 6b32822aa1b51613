"""The plan of what is new, on real files; no session is started."""

from __future__ import annotations

import gzip
import os
import tracemalloc
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from flink_triage.model import Quarantined
from flink_triage.spark import content
from flink_triage.spark.content import HEAD_BYTES, hash_prefix, open_plain
from flink_triage.spark.ledger import LedgerEntry, WorkPlan, batch_id, plan_work

NOW = datetime(2030, 1, 1, tzinfo=timezone.utc)
FIRST = "".join(f"2026-01-01 00:00:{n % 60:02},000 INFO  a.B [] - line {n}\n" for n in range(9000))
MORE = "2026-01-01 01:00:00,000 ERROR a.B [] - more\n"
OTHER = FIRST.replace("line", "LINE")


@dataclass(frozen=True)
class File:
    path: str
    size_bytes: int
    modified_at: datetime


def listed(folder: Path) -> list[File]:
    return [
        File(str(p), p.stat().st_size, datetime.fromtimestamp(p.stat().st_mtime, timezone.utc))
        for p in sorted(folder.rglob("*"))
        if p.is_file()
    ]


def plan(folder: Path, entries: list[LedgerEntry]) -> WorkPlan:
    return plan_work(
        listed(folder),
        entries,
        open_plain,
        deployment_of=lambda file: str(Path(file.path).parent),
        now=NOW,
        settle_seconds=10,
    )


def consume(folder: Path, entries: list[LedgerEntry]) -> list[LedgerEntry]:
    """The ledger after a run that read all that was new."""
    known = {entry.path: entry for entry in entries}
    planned = plan(folder, entries)
    for work in planned.work:
        known[work.path] = LedgerEntry(
            path=work.path,
            file_id=work.file_id,
            generation=work.generation,
            state="done",
            size_bytes=work.size_bytes,
            modified_at=work.modified_at,
            head_bytes=work.head_bytes,
            head_sha256=work.head_sha256,
            consumed=hash_prefix(work.path, open_plain),
            consumed_lines=Path(work.path).read_bytes().count(b"\n"),
            deployment=str(Path(work.path).parent),
        )
    for alias in planned.aliases:
        known[alias.path] = replace(
            alias.entry, path=alias.path, size_bytes=alias.size_bytes, modified_at=alias.modified_at
        )
    return list(known.values())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "jm.log").write_text(FIRST)
    return tmp_path


def test_a_file_never_seen_is_read_from_its_start(folder: Path) -> None:
    (work,) = plan(folder, []).work
    assert (work.state, work.start, work.generation) == ("new", 0, 0)


def test_what_was_read_is_not_read_again(folder: Path) -> None:
    assert plan(folder, consume(folder, [])).is_empty


def test_a_touched_file_is_compared_and_not_read_again(folder: Path) -> None:
    entries = consume(folder, [])
    os.utime(folder / "jm.log", (1, 1))
    assert plan(folder, entries).work == ()


def test_an_append_is_read_from_where_reading_ended(folder: Path) -> None:
    entries = consume(folder, [])
    with (folder / "jm.log").open("a") as log:
        log.write(MORE)
    (work,) = plan(folder, entries).work
    assert (work.state, work.start, work.start_line) == ("append", len(FIRST), 9000)
    assert work.file_id == entries[0].file_id


def test_an_append_to_a_file_smaller_than_the_head_is_an_append(tmp_path: Path) -> None:
    (tmp_path / "jm.log").write_text(MORE)
    entries = consume(tmp_path, [])
    (tmp_path / "jm.log").write_text(MORE + MORE)
    (work,) = plan(tmp_path, entries).work
    assert (work.state, work.start) == ("append", len(MORE))


@pytest.mark.parametrize(
    "rewritten",
    [
        pytest.param(OTHER, id="with the same size"),
        pytest.param(OTHER + MORE, id="and grown beyond what was read"),
        pytest.param(FIRST[:500], id="by cutting it short"),
        pytest.param(FIRST[:-1] + "!", id="in its last byte"),
    ],
)
def test_a_file_rewritten_in_place_is_a_new_generation(folder: Path, rewritten: str) -> None:
    entries = consume(folder, [])
    (folder / "jm.log").write_text(rewritten)
    os.utime(folder / "jm.log", (1, 1))
    (work,) = plan(folder, entries).work
    assert (work.state, work.start, work.generation) == ("new-generation", 0, 1)
    assert work.file_id == entries[0].file_id


def test_rotation_reads_only_the_new_file(folder: Path) -> None:
    entries = consume(folder, [])
    (folder / "jm.log").rename(folder / "jm.log.1")
    (folder / "jm.log").write_text(OTHER)
    planned = plan(folder, entries)
    (work,) = planned.work
    assert (Path(work.path).name, work.state) == ("jm.log", "new")
    assert [Path(alias.path).name for alias in planned.aliases] == ["jm.log.1"]
    assert work.file_id != entries[0].file_id or work.generation == 1


def test_gzip_of_a_rotated_file_adds_nothing(folder: Path) -> None:
    entries = consume(folder, [])
    (folder / "jm.log").unlink()
    (folder / "jm.log.1.gz").write_bytes(gzip.compress(FIRST.encode()))
    planned = plan(folder, entries)
    assert planned.work == ()
    assert plan(folder, consume(folder, entries)).is_empty


COPIES = [
    pytest.param(FIRST, id="whole"),
    pytest.param(FIRST[:300_000], id="cut short"),
]


@pytest.mark.parametrize("copied", COPIES)
@pytest.mark.parametrize("place", ["copy.log", "other/jm.log", "old/jm.log"])
def test_a_copy_is_an_input_like_any_other_and_known_afterwards(
    folder: Path, copied: str, place: str
) -> None:
    copy = folder / place
    copy.parent.mkdir(exist_ok=True)
    copy.write_text(copied)
    planned = plan(folder, [])
    assert {Path(work.path) for work in planned.work} == {copy, folder / "jm.log"}
    assert len({work.file_id for work in planned.work}) == 2
    assert plan(folder, consume(folder, [])).is_empty


@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_that_is_made_later_is_read_while_its_original_stays(
    folder: Path, copied: str
) -> None:
    entries = consume(folder, [])
    (folder / "copy.log").write_text(copied)
    (work,) = plan(folder, entries).work
    assert (Path(work.path).name, work.start) == ("copy.log", 0)
    assert plan(folder, consume(folder, entries)).is_empty


def test_a_copy_of_what_a_growing_file_held_is_read(folder: Path) -> None:
    entries = consume(folder, [])
    (folder / "copy.log").write_text(FIRST)
    with (folder / "jm.log").open("a") as log:
        log.write(MORE)
    starts = {Path(work.path).name: work.start for work in plan(folder, entries).work}
    assert starts == {"copy.log": 0, "jm.log": len(FIRST)}
    assert plan(folder, consume(folder, entries)).is_empty


def test_a_file_moved_to_another_deployment_is_read_there(folder: Path) -> None:
    entries = consume(folder, [])
    (folder / "other").mkdir()
    (folder / "jm.log").rename(folder / "other" / "jm.log")
    (work,) = plan(folder, entries).work
    assert (Path(work.path).parent.name, work.start) == ("other", 0)


def test_of_two_files_that_hold_what_is_gone_one_is_known(folder: Path) -> None:
    entries = consume(folder, [])
    (folder / "jm.log").rename(folder / "jm.log.1")
    (folder / "jm.log.2").write_text(FIRST)
    planned = plan(folder, entries)
    assert (len(planned.aliases), [work.start for work in planned.work]) == (1, [0])
    assert plan(folder, consume(folder, entries)).is_empty


def test_what_is_rotated_while_it_grows_is_read_on_under_its_new_name(folder: Path) -> None:
    entries = consume(folder, [])
    (folder / "jm.log").rename(folder / "jm.log.1")
    with (folder / "jm.log.1").open("a") as log:
        log.write(MORE)
    (folder / "jm.log").write_text(OTHER)
    starts = {Path(work.path).name: work.start for work in plan(folder, entries).work}
    assert starts == {"jm.log": 0, "jm.log.1": len(FIRST)}


def test_rotation_through_several_names_reads_only_the_newest(folder: Path) -> None:
    (folder / "jm.log.1").write_text(OTHER)
    entries = consume(folder, [])
    (folder / "jm.log.1").rename(folder / "jm.log.2")
    (folder / "jm.log").rename(folder / "jm.log.1")
    (folder / "jm.log").write_text(FIRST.replace("line", "Line"))
    planned = plan(folder, entries)
    assert [(Path(work.path).name, work.state) for work in planned.work] == [("jm.log", "new")]
    assert {Path(alias.path).name for alias in planned.aliases} == {"jm.log.1", "jm.log.2"}


def test_two_files_with_one_head_are_two(folder: Path) -> None:
    (folder / "tm.log").write_text(FIRST[:-1] + "!")
    planned = plan(folder, [])
    assert len({work.file_id for work in planned.work}) == 2


def test_the_heads_of_many_files_are_not_held(folder: Path) -> None:
    count = 200
    for number in range(count):
        (folder / f"tm-{number}.log").write_text(f"{number}\n{FIRST}")
    for entries in ([], consume(folder, [])[:1]):
        tracemalloc.start()
        try:
            planned = plan(folder, entries)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert len(planned.work) >= count
        assert peak < count * HEAD_BYTES / 4


def test_a_head_is_found_among_heads_of_other_sizes(tmp_path: Path) -> None:
    for number in range(1, 40):
        (tmp_path / f"tm-{number}.log").write_text(FIRST[: 100 * number])
    entries = consume(tmp_path, [])
    for entry in entries:
        os.rename(entry.path, f"{entry.path}.1")
    (tmp_path / "tm-17.log.1").write_text(FIRST[:1700] + MORE)
    planned = plan(tmp_path, entries)
    assert [(Path(w.path).name, w.state, w.start) for w in planned.work] == [
        ("tm-17.log.1", "append", 1700)
    ]
    assert len(planned.aliases) == 38


def test_empty_files_are_not_taken_for_copies_of_each_other(tmp_path: Path) -> None:
    (tmp_path / "a.log").touch()
    (tmp_path / "b.log").touch()
    planned = plan(tmp_path, [])
    assert len(planned.work) == 2
    assert plan(tmp_path, consume(tmp_path, [])).is_empty


def test_a_held_back_event_is_read_once_its_file_is_quiet(folder: Path) -> None:
    (entry,) = consume(folder, [])
    short = hash_prefix(entry.path, open_plain, len(FIRST) - 40)
    (work,) = plan(folder, [replace(entry, consumed=short, held_back_bytes=40)]).work
    assert (work.state, work.start) == ("append", len(FIRST) - 40)


def test_a_refused_path_is_said_once() -> None:
    bad = Quarantined("/nowhere/x.log", "permission denied")
    first = plan_work(
        [],
        [],
        open_plain,
        deployment_of=lambda file: "",
        refused=[bad],
        now=NOW,
        settle_seconds=10,
    )
    assert [(u.path, u.reason) for u in first.unreadable] == [(bad.path, bad.reason)]


def test_the_batch_is_known_by_what_is_read(folder: Path) -> None:
    first = batch_id(plan(folder, []), "1")
    assert first == batch_id(plan(folder, []), "1")
    assert first != batch_id(plan(folder, []), "2")
    with (folder / "jm.log").open("a") as log:
        log.write(MORE)
    assert first != batch_id(plan(folder, []), "1")


@pytest.mark.parametrize("size", [0, 1, 99, 100, 101, 250, 300])
def test_chunks_hashed_apart_are_those_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(content, "CHUNK_BYTES", 100)
    path = tmp_path / "x"
    path.write_bytes(os.urandom(size))
    whole = content.hash_prefix(str(path), open_plain)
    first, some = content.hash_chunks(str(path), open_plain, 0, 130)
    second, rest = content.hash_chunks(str(path), open_plain, 130, 1000)
    assert (first, second) == (0, 2)
    assert some + rest == whole.digests
    assert whole.size_bytes == size


def test_settled_means_older_than_the_limit(folder: Path) -> None:
    (entry,) = consume(folder, [])
    held = replace(entry, held_back_bytes=5)
    just_now = entry.modified_at + timedelta(seconds=5) if entry.modified_at else NOW
    planned = plan_work(
        listed(folder),
        [held],
        open_plain,
        deployment_of=lambda file: str(folder),
        now=just_now,
        settle_seconds=10,
    )
    assert planned.is_empty
