"""The disk cache is private to its user, and any entry may be missing or damaged."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from flink_triage.disk_cache import cache_directory, read_cached, write_cached
from flink_triage.logs.text.hyperscan_databases import database_of
from flink_triage.signatures import builtin_pack_directory, pack
from flink_triage.signatures.pack import load_usable_pack

SMALL_PACK = Path(__file__).parents[1] / "unit" / "signatures" / "data" / "small"
EXAMPLE = "kafka/broker-disconnects.yaml"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return cache_directory() / "compiled"


@pytest.fixture
def signatures(tmp_path: Path) -> Path:
    directory = tmp_path / "signatures"
    shutil.copytree(builtin_pack_directory() / "kafka", directory / "kafka")
    return directory


def load_anew(directories: list[Path]) -> pack.SignaturePack:
    """Loads the pack as in a new process."""
    pack._load_usable_pack.cache_clear()
    return load_usable_pack(directories)


def test_only_the_user_can_read_what_is_kept(cache: Path) -> None:
    write_cached("kind", "key", b"data")
    assert read_cached("kind", "key") == b"data"
    assert cache.stat().st_mode & 0o777 == 0o700
    assert (cache / "kind-key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o755])
def test_a_directory_that_others_can_open_is_not_used(cache: Path, mode: int) -> None:
    write_cached("kind", "key", b"data")
    cache.chmod(mode)
    assert read_cached("kind", "key") is None
    write_cached("kind", "other", b"data")
    assert [path.name for path in cache.iterdir()] == ["kind-key"]


def test_directory_that_cannot_be_created_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    write_cached("kind", "key", b"data")
    assert read_cached("kind", "key") is None


def test_the_oldest_are_removed(cache: Path) -> None:
    for number in range(40):
        write_cached("kind", str(number), b"data")
    assert read_cached("kind", "0") is None
    assert read_cached("kind", "39") == b"data"
    assert len(list(cache.iterdir())) < 40


def test_a_second_start_reads_no_signature_file(
    signatures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directories = [builtin_pack_directory(), signatures]
    read = load_anew(directories)
    monkeypatch.setattr(pack, "read_pack", None)
    assert load_anew(directories) == read


def test_a_signature_that_changed_is_read(signatures: Path) -> None:
    directories = [builtin_pack_directory(), signatures]
    before = load_anew(directories)
    path = signatures / EXAMPLE
    text = path.read_text("utf-8")
    title = text.partition("\n")[0]
    path.write_text(text.replace(title, "title: Another title"), "utf-8")
    assert load_anew(directories).signatures["kafka/broker-disconnects"].title == "Another title"
    path.write_text(text, "utf-8")
    assert load_anew(directories) == before
    path.write_text("title: [", "utf-8")
    assert [entry.signature for entry in load_anew(directories).skipped] == [
        "kafka/broker-disconnects"
    ]


@pytest.mark.parametrize("damage", [b"", b"\x80\x05.", b"no pickle"])
def test_damaged_cache_files_are_rebuilt(cache: Path, damage: bytes) -> None:
    directories = [SMALL_PACK]
    before = load_anew(directories)
    database_of([b"abc", b"bcd"])
    for path in cache.iterdir():
        path.write_bytes(damage)
    assert load_anew(directories) == before
    assert ends_of(b"xabcd") == [(0, 4), (1, 5)]
    assert ends_of(b"xabcd") == [(0, 4), (1, 5)]


def ends_of(data: bytes) -> list[tuple[int, int]]:
    database, scratch = database_of([b"abc", b"bcd"])
    found: list[tuple[int, int]] = []

    def note(number: int, _start: int, end: int, *_: object) -> None:
        found.append((number, end))

    database.scan(data, match_event_handler=note, scratch=scratch)
    return sorted(found)
