"""Compiled signatures are cached per user. The cache key identifies their source."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from flink_triage.signatures.pack_cache import keep, kept, key_of_files
from tests.unit.package_archive import archive_of_package, printed_with


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "signatures"
    folder.mkdir()
    (folder / "one.yaml").write_text("title: one")
    return folder


def test_a_pack_is_kept_until_a_file_changes(folder: Path) -> None:
    assert kept("signatures", key_of_files([folder])) is None
    keep("signatures", key_of_files([folder]), {"a": 1})
    assert kept("signatures", key_of_files([folder])) == {"a": 1}
    (folder / "one.yaml").write_text("title: two")
    assert kept("signatures", key_of_files([folder])) is None


def test_pipes_and_devices_in_a_folder_are_not_read(folder: Path) -> None:
    os.mkfifo(folder / "pipe.yaml")
    (folder / "zero.yaml").symlink_to("/dev/zero")
    keep("signatures", key_of_files([folder]), "pack")
    assert kept("signatures", key_of_files([folder])) == "pack"


def test_a_package_in_an_archive_has_a_key(folder: Path, tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from flink_triage.signatures import pack_cache as c;"
        "key = c.key_of_files([Path(sys.argv[1])]); c.keep('terms', key, 1);"
        "print(c.__file__, c.kept('terms', key))"
    )
    archive = archive_of_package(tmp_path)
    place, kept = printed_with(archive, program, str(folder)).split()
    assert place.startswith(str(archive))
    assert kept == "1"
