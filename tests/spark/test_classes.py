"""The archive of classes: written by the second run on a machine, taken by those after it."""

from __future__ import annotations

import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from flink_triage.spark.classes import archive_option
from flink_triage.spark.java import Java, find_java


@pytest.fixture
def java() -> Java:
    return find_java()


def run_java(java: Java, option: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [str(java.path.resolve()), *shlex.split(option), *words, "-version"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_second_run_writes_what_later_ones_take(java: Java, tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    assert archive_option(java, (), may_write=True, directory=folder) == ""
    writing = archive_option(java, (), may_write=True, directory=folder)
    assert "ArchiveClassesAtExit" in writing
    assert run_java(java, writing).returncode == 0
    for may_write in (True, False):
        taking = archive_option(java, (), may_write=may_write, directory=folder)
        # The JVM refuses to start where the archive does not fit.
        taken = run_java(java, taking, "-Xshare:on")
        assert (taken.returncode, taken.stdout) == (0, "")


def test_other_commands_write_none(java: Java, tmp_path: Path) -> None:
    for _ in range(3):
        assert archive_option(java, (), may_write=False, directory=tmp_path) == ""
    assert not list(tmp_path.iterdir())


def test_one_that_was_cut_is_not_taken(java: Java, tmp_path: Path) -> None:
    archive_option(java, (), may_write=True, directory=tmp_path)
    writing = archive_option(java, (), may_write=True, directory=tmp_path)
    assert run_java(java, writing).returncode == 0
    (archive,) = tmp_path.glob("*.jsa")
    whole = archive.read_bytes()
    archive.chmod(0o600)
    # While it is written its head is empty.
    archive.write_bytes(b"\0" * 4096 + whole[4096:])
    assert archive_option(java, (), may_write=True, directory=tmp_path) == ""
    archive.write_bytes(whole)
    assert archive_option(java, (), may_write=True, directory=tmp_path) != ""
    archive.write_bytes(whole[: len(whole) // 2])
    assert archive_option(java, (), may_write=True, directory=tmp_path) == ""


def test_one_that_never_came_is_not_tried_again(java: Java, tmp_path: Path) -> None:
    archive_option(java, (), may_write=True, directory=tmp_path)
    assert archive_option(java, (), may_write=True, directory=tmp_path) != ""
    assert archive_option(java, (), may_write=True, directory=tmp_path) == ""


def test_another_java_or_other_jars_have_one_of_their_own(java: Java, tmp_path: Path) -> None:
    other = replace(java, path=tmp_path / "other" / "bin" / "java")
    for kind, jars in ((java, ()), (java, (Path("delta.jar"),)), (other, ())):
        assert archive_option(kind, jars, may_write=True, directory=tmp_path) == ""
    assert len(list(tmp_path.glob("*.seen"))) == 3


@pytest.mark.parametrize("given", ["-Xshare:auto", "-Xss2m -XX:SharedArchiveFile=own.jsa"])
def test_options_that_were_given_decide(java: Java, tmp_path: Path, given: str) -> None:
    for _ in range(3):
        assert archive_option(java, (), given, may_write=True, directory=tmp_path) == ""
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_is_done_without(java: Java, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for _ in range(2):
        assert archive_option(java, (), may_write=True, directory=tmp_path / "file") == ""
