"""A slice of ``make fuzz``: damaged logs through the stages, with every byte accounted for."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.core import broken
from tests.fuzz.mutate import corpus, mutated

SEEDS = range(1, 201)


def test_no_damaged_log_breaks_a_promise(tmp_path: Path) -> None:
    assert broken(SEEDS, tmp_path) == {}


def test_the_same_seed_gives_the_same_bytes() -> None:
    logs = corpus()
    assert [mutated(seed, logs) for seed in SEEDS[:20]] == [
        mutated(seed, logs) for seed in SEEDS[:20]
    ]
