"""Tests the plan of unread bytes on real files; no session is started."""

from __future__ import annotations

import gc
import gzip
import os
import random
import tracemalloc
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flink_triage.logs.inputs.files import InputFile, Listing, list_inputs
from flink_triage.model import Quarantined
from flink_triage.settings import DEFAULT_SETTINGS, Settings
from flink_triage.spark.ingest.changed_files import WorkPlan
from flink_triage.spark.ingest.content_identity import HEAD_BYTES, OpenFile
from flink_triage.spark.ingest.examine_files import Look, Wanted, look_at
from flink_triage.spark.ingest.ledger import Row
from flink_triage.spark.ingest.ranges import RangeTask, cut_ranges
from tests.spark.memory_ledger import MemoryLedger, plan_over, rows_after

NOW = datetime(2030, 1, 1, tzinfo=UTC)
SETTINGS = Settings()
FIRST = "".join(f"2026-01-01 00:00:{n % 60:02},000 INFO  a.B [] - line {n}\n" for n in range(9000))
MORE = "2026-01-01 01:00:00,000 ERROR a.B [] - more\n"
OTHER = FIRST.replace("line", "LINE")


def listed(folder: Path) -> Listing:
    return list_inputs([str(folder)], SETTINGS)


def folder_of(file: InputFile) -> str:
    return str(Path(file.path).parent)


def plan(folder: Path, ledger: MemoryLedger, now: datetime = NOW) -> WorkPlan:
    return plan_over(listed(folder), ledger, SETTINGS, now, folder_of)


def starts(planned: WorkPlan) -> dict[str, int]:
    return {Path(work.path).name: work.known.consumed_bytes for work in planned.work}


def consume(folder: Path, ledger: MemoryLedger, but: int = 0) -> MemoryLedger:
    """The ledger after a run that read all new bytes, except ``but`` held-back bytes."""
    return MemoryLedger([*ledger.rows, *read(plan(folder, ledger), but)])


def read(planned: WorkPlan, but: int = 0) -> list[Row]:
    """Rows of the ledger after the plan was executed."""
    tasks = cut_ranges(planned.work, SETTINGS, NOW)
    return rows_after(planned, tasks, [summary(task, but) for task in tasks])


def summary(task: RangeTask, but: int) -> dict[str, object]:
    with OpenFile(task.file, DEFAULT_SETTINGS.max_file_bytes) as file:
        text = file.read_at(0, 1 << 30)
        mark = file.mark(len(text) - but)
    assert mark is not None
    return {
        "failure": None,
        "consumed_bytes": mark.consumed_bytes,
        "head_digests": mark.head,
        "window_digest": mark.window,
        "newline_count": text[task.known.consumed_bytes :].count(b"\n"),
        "held_back_bytes": but,
        "problems": [],
        "event_count": 1,
        "trace_count": 0,
        "redactions": 0,
        "redactions_by_kind": [],
        "truncated": 0,
        "decode_errors": 0,
    }


NOTHING = MemoryLedger()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "jm.log").write_text(FIRST)
    return tmp_path


def test_new_file_is_read_from_its_start(folder: Path) -> None:
    (work,) = plan(folder, NOTHING).work
    assert (work.state, work.known.consumed_bytes, work.generation) == ("new", 0, 0)


def test_unchanged_file_is_not_read_again(folder: Path) -> None:
    assert plan(folder, consume(folder, NOTHING)).is_empty


def test_a_touched_file_is_compared_and_not_read_again(folder: Path) -> None:
    entries = consume(folder, NOTHING)
    os.utime(folder / "jm.log", (1, 1))
    assert plan(folder, entries).work == ()


def test_an_append_is_read_from_where_reading_ended(folder: Path) -> None:
    entries = consume(folder, NOTHING)
    with (folder / "jm.log").open("a") as log:
        log.write(MORE)
    (work,) = plan(folder, entries).work
    assert (work.state, work.known.consumed_bytes, work.start_line) == ("append", len(FIRST), 9000)
    assert work.file_id == entries.rows[0]["file_id"]


def test_an_append_to_a_file_smaller_than_the_head_is_an_append(tmp_path: Path) -> None:
    (tmp_path / "jm.log").write_text(MORE)
    entries = consume(tmp_path, NOTHING)
    (tmp_path / "jm.log").write_text(MORE + MORE)
    (work,) = plan(tmp_path, entries).work
    assert (work.state, work.known.consumed_bytes) == ("append", len(MORE))


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
    entries = consume(folder, NOTHING)
    (folder / "jm.log").write_text(rewritten)
    os.utime(folder / "jm.log", (1, 1))
    (work,) = plan(folder, entries).work
    assert (work.state, work.known.consumed_bytes, work.generation) == ("new-generation", 0, 1)
    assert work.file_id != entries.rows[0]["file_id"]


def test_rotation_reads_only_the_new_file(folder: Path) -> None:
    entries = consume(folder, NOTHING)
    (folder / "jm.log").rename(folder / "jm.log.1")
    (folder / "jm.log").write_text(OTHER)
    planned = plan(folder, entries)
    (work,) = planned.work
    assert (Path(work.path).name, work.state) == ("jm.log", "new")
    assert [Path(alias.path).name for alias in planned.aliases] == ["jm.log.1"]
    assert work.file_id != entries.rows[0]["file_id"] or work.generation == 1


def test_identity_is_that_of_the_decompressed_content(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(FIRST.encode())
    (tmp_path / "a.log.1.gz").write_bytes(gzip.compress(FIRST.encode()))
    marks = []
    for file in listed(tmp_path).files:
        with OpenFile(file, DEFAULT_SETTINGS.max_file_bytes) as opened:
            marks.append((opened.mark_of_head(), opened.mark(len(FIRST))))
    assert len(marks) == 2
    assert marks[0] == marks[1]


def test_known_digests_of_the_head_do_not_change_a_mark(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(random.Random(1).randbytes(200_000))
    (file,) = listed(tmp_path).files
    with OpenFile(file, DEFAULT_SETTINGS.max_file_bytes) as opened:
        whole = opened.mark(200_000)
        assert whole is not None
        for consumed in (100, HEAD_BYTES, HEAD_BYTES + 1, 150_000):
            mark = opened.mark(consumed)
            assert mark is not None
            assert opened.mark(consumed, whole.head) == mark
        assert opened.mark(200_001, whole.head) is None


def test_gzip_of_a_rotated_file_adds_nothing(folder: Path) -> None:
    entries = consume(folder, NOTHING)
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
    planned = plan(folder, NOTHING)
    assert {Path(work.path) for work in planned.work} == {copy, folder / "jm.log"}
    assert len({work.file_id for work in planned.work}) == 2
    assert plan(folder, consume(folder, NOTHING)).is_empty


@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_that_is_made_later_is_read_while_its_original_stays(
    folder: Path, copied: str
) -> None:
    entries = consume(folder, NOTHING)
    (folder / "copy.log").write_text(copied)
    (work,) = plan(folder, entries).work
    assert (Path(work.path).name, work.known.consumed_bytes) == ("copy.log", 0)
    assert plan(folder, consume(folder, entries)).is_empty


def test_a_copy_of_what_a_growing_file_held_is_read(folder: Path) -> None:
    entries = consume(folder, NOTHING)
    (folder / "copy.log").write_text(FIRST)
    with (folder / "jm.log").open("a") as log:
        log.write(MORE)
    assert starts(plan(folder, entries)) == {"copy.log": 0, "jm.log": len(FIRST)}
    assert plan(folder, consume(folder, entries)).is_empty


def test_a_file_moved_to_another_deployment_is_read_there(folder: Path) -> None:
    entries = consume(folder, NOTHING)
    (folder / "other").mkdir()
    (folder / "jm.log").rename(folder / "other" / "jm.log")
    (work,) = plan(folder, entries).work
    assert (Path(work.path).parent.name, work.known.consumed_bytes) == ("other", 0)


def test_one_of_two_copies_of_a_missing_file_is_known(folder: Path) -> None:
    entries = consume(folder, NOTHING)
    (folder / "jm.log").rename(folder / "jm.log.1")
    (folder / "jm.log.2").write_text(FIRST)
    planned = plan(folder, entries)
    assert (len(planned.aliases), [w.known.consumed_bytes for w in planned.work]) == (1, [0])
    assert plan(folder, consume(folder, entries)).is_empty


def test_file_that_grew_before_rotation_is_continued_under_its_new_name(folder: Path) -> None:
    entries = consume(folder, NOTHING)
    (folder / "jm.log").rename(folder / "jm.log.1")
    with (folder / "jm.log.1").open("a") as log:
        log.write(MORE)
    (folder / "jm.log").write_text(OTHER)
    assert starts(plan(folder, entries)) == {"jm.log": 0, "jm.log.1": len(FIRST)}


def test_rotation_through_several_names_reads_only_the_newest(folder: Path) -> None:
    (folder / "jm.log.1").write_text(OTHER)
    entries = consume(folder, NOTHING)
    (folder / "jm.log.1").rename(folder / "jm.log.2")
    (folder / "jm.log").rename(folder / "jm.log.1")
    (folder / "jm.log").write_text(FIRST.replace("line", "Line"))
    planned = plan(folder, entries)
    assert [(Path(work.path).name, work.state) for work in planned.work] == [("jm.log", "new")]
    assert {Path(alias.path).name for alias in planned.aliases} == {"jm.log.1", "jm.log.2"}


def test_two_files_with_one_head_are_two(folder: Path) -> None:
    (folder / "tm.log").write_text(FIRST[:-1] + "!")
    planned = plan(folder, NOTHING)
    assert len({work.file_id for work in planned.work}) == 2


def test_the_heads_of_many_files_are_not_held(folder: Path) -> None:
    count = 200
    for number in range(count):
        (folder / f"tm-{number}.log").write_text(f"{number}\n{FIRST}")
    for entries in (NOTHING, MemoryLedger(consume(folder, NOTHING).rows[:1])):
        plan(folder, entries)  # objects that are created once do not count
        gc.collect()
        tracemalloc.start()
        try:
            planned = plan(folder, entries)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert len(planned.work) >= count
        assert peak < count * HEAD_BYTES / 2


def test_a_head_is_found_among_heads_of_other_sizes(tmp_path: Path) -> None:
    for number in range(1, 40):
        (tmp_path / f"tm-{number}.log").write_text(FIRST[: 100 * number])
    entries = consume(tmp_path, NOTHING)
    for row in entries.rows:
        os.rename(row["path"], f"{row['path']}.1")
    (tmp_path / "tm-17.log.1").write_text(FIRST[:1700] + MORE)
    planned = plan(tmp_path, entries)
    assert [(Path(w.path).name, w.state, w.known.consumed_bytes) for w in planned.work] == [
        ("tm-17.log.1", "append", 1700)
    ]
    assert len(planned.aliases) == 38


def test_empty_files_are_not_copies_of_each_other(tmp_path: Path) -> None:
    (tmp_path / "a.log").touch()
    (tmp_path / "b.log").touch()
    planned = plan(tmp_path, NOTHING)
    assert len(planned.work) == 2
    assert plan(tmp_path, consume(tmp_path, NOTHING)).is_empty


def test_a_held_back_event_is_read_once_its_file_is_quiet(folder: Path) -> None:
    entries = consume(folder, NOTHING, but=40)
    (work,) = plan(folder, entries).work
    assert (work.state, work.known.consumed_bytes) == ("append", len(FIRST) - 40)


def test_settled_means_older_than_the_limit(folder: Path) -> None:
    entries = consume(folder, NOTHING, but=40)
    modified_at = listed(folder).files[0].modified_at
    assert plan(folder, entries, modified_at + timedelta(seconds=5)).is_empty
    assert plan(folder, entries, modified_at + timedelta(seconds=11)).work


def test_refused_path_is_reported_once() -> None:
    bad = Quarantined("/nowhere/x.log", "permission denied")
    listing = Listing((), (bad,), NOW)
    first = plan_over(listing, NOTHING, SETTINGS, NOW)
    assert first.unreadable == (bad,)
    known = MemoryLedger(read(first))
    assert plan_over(listing, known, SETTINGS, NOW).is_empty


def test_edit_that_keeps_size_and_time_or_head_and_window_is_not_detected(folder: Path) -> None:
    """A known limitation, because bytes that were read are not read again."""
    log = folder / "jm.log"
    entries = consume(folder, NOTHING)
    times = log.stat()
    log.write_text(OTHER)
    os.utime(log, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert plan(folder, entries).is_empty
    middle = HEAD_BYTES + 1_000
    log.write_text(FIRST[:middle] + "#" + FIRST[middle + 1 :] + MORE)
    assert starts(plan(folder, entries)) == {"jm.log": len(FIRST)}


# --- rotation in progress: files move between two examinations -----------------------------------


def just_now(folder: Path) -> datetime:
    return max(file.modified_at for file in listed(folder).files) + timedelta(seconds=1)


def test_a_copy_that_may_be_part_of_a_rotation_is_left_to_the_next_run(folder: Path) -> None:
    entries = consume(folder, NOTHING)
    (folder / "jm.log.1").write_text(FIRST)
    planned = plan(folder, entries, just_now(folder))
    assert (planned.work, [Path(path).name for path in planned.deferred]) == ((), ["jm.log.1"])
    (folder / "jm.log").write_text(MORE)
    assert starts(plan(folder, entries, just_now(folder))) == {"jm.log": 0}


def test_half_a_copy_of_what_was_read_is_left_to_the_next_run(folder: Path) -> None:
    entries = consume(folder, NOTHING)
    (folder / "jm.log.1").write_text(FIRST[: len(FIRST) // 3])
    planned = plan(folder, entries, just_now(folder))
    assert [Path(path).name for path in planned.deferred] == ["jm.log.1"]


def test_new_file_with_a_fresh_copy_is_read_once(folder: Path) -> None:
    (folder / "jm.log.1").write_text(FIRST)
    planned = plan(folder, NOTHING, just_now(folder))
    assert (len(planned.work), len(planned.deferred)) == (1, 1)


def test_file_rotated_before_its_new_name_is_listed_stays_known(folder: Path) -> None:
    """The files are renamed after they are listed and before they are examined."""
    (folder / "jm.log.1").write_text(OTHER)
    entries = consume(folder, NOTHING)
    files = listed(folder)
    (folder / "jm.log.1").rename(folder / "jm.log.2")
    (folder / "jm.log").rename(folder / "jm.log.1")
    (folder / "jm.log").write_text(MORE)
    stale = tuple(replace(file, size_bytes=file.size_bytes - 1) for file in files.files)
    planned = plan_over(replace(files, files=stale), entries, SETTINGS, NOW, folder_of)
    assert starts(planned) == {"jm.log": 0}
    later = MemoryLedger([*entries.rows, *read(planned)])
    assert plan(folder, later).work == ()
    assert [Path(alias.path).name for alias in plan(folder, later).aliases] == ["jm.log.2"]


def test_files_that_rotate_during_planning_are_left_to_the_next_run(folder: Path) -> None:
    """Afterwards, each path has content other than that found when it was first examined."""
    log = folder / "jm.log"
    for number in (3, 2, 1):
        (folder / f"jm.log.{number}").write_text(OTHER.replace("LINE", f"LINE of {number}"))
    before = consume(folder, NOTHING)

    def rotate() -> None:
        for number in range(4, 0, -1):
            path = folder / f"jm.log.{number}"
            if path.exists():
                path.rename(folder / f"jm.log.{number + 1}")
        log.rename(folder / "jm.log.1")
        log.write_text(MORE * 9_000)

    rotate()
    seen: set[str] = set()

    def look(wanted: Wanted) -> Look:
        if wanted.file.path in seen and not (folder / "jm.log.5").exists():
            rotate()
        seen.add(wanted.file.path)
        return look_at(wanted, SETTINGS)

    planned = plan_over(listed(folder), before, SETTINGS, NOW, folder_of, look)
    assert starts(planned) == {"jm.log": 0}
    deferred = sorted(Path(path).name for path in planned.deferred)
    assert deferred == ["jm.log.1", "jm.log.2", "jm.log.3", "jm.log.4"]
    # The next run finds all content that was read, and the lines written between the rotations.
    assert starts(plan(folder, before)) == dict.fromkeys(("jm.log", "jm.log.1"), 0)


def test_file_rewritten_twice_has_two_ids(folder: Path) -> None:
    """A file that was moved away returns under a new name and is rewritten like its successor."""
    log, rotated, aside = folder / "jm.log", folder / "jm.log.1", folder.parent / "aside"
    ledger = consume(folder, NOTHING)
    log.rename(aside)
    log.write_text(OTHER)
    ledger = consume(folder, ledger)
    aside.rename(rotated)
    ledger = consume(folder, ledger)
    rotated.write_text(OTHER + MORE)
    ledger = consume(folder, ledger)
    assert len({entry.identity for entry in ledger.entries}) == 3
    log.rename(folder / "jm.log.2")
    assert plan(folder, ledger).work == ()
