"""A subset of ``make fuzz``: damaged or hostile input is read with little memory and time.

The subset takes less than a minute.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz import archives, heavy, trees, user_files
from tests.fuzz.core import broken
from tests.fuzz.mutate import corpus, mutated

SEEDS = range(1, 201)


def test_no_damaged_log_fails_a_check(tmp_path: Path) -> None:
    assert broken(SEEDS, tmp_path) == {}


def test_the_same_seed_gives_the_same_bytes() -> None:
    logs = corpus()
    assert [mutated(seed, logs) for seed in SEEDS[:20]] == [
        mutated(seed, logs) for seed in SEEDS[:20]
    ]


@pytest.mark.parametrize(
    "name",
    [
        "a zip bomb of 512 MiB, deflate",
        "a zip with a dictionary of 1 GiB",
        "a zip of 9,000 members",
        "a pax header of 256 MiB",
        "a negative size",
    ],
)
def test_a_hostile_archive_is_read_in_little_memory(name: str, tmp_path: Path) -> None:
    assert archives.read_hostile(name, tmp_path) == []


def test_no_damaged_archive_fails_a_check(tmp_path: Path) -> None:
    assert archives.broken(range(1, 61), tmp_path) == {}


def test_no_tree_of_files_fails_a_check(tmp_path: Path) -> None:
    assert trees.broken(range(1, 41), tmp_path) == {}


def test_no_damaged_file_of_a_user_fails_a_check(tmp_path: Path) -> None:
    assert user_files.broken(range(1, 41), tmp_path) == {}


@pytest.mark.parametrize("name", ["an option of aliases"])
def test_a_heavy_log_is_read_in_little_memory(name: str) -> None:
    assert heavy.problems_of(name, heavy.measured_apart(name)) == []
