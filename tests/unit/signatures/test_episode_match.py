"""Repeated and ordered events within an episode."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from signature_builders import signature

from flink_triage.signatures import Alternative, Signature, episode_match

START = datetime(2026, 1, 1, tzinfo=UTC)
THREE = tuple(Alternative(literals=(f"text {n}",)) for n in range(3))


def at(*hits: tuple[float | None, int]) -> list[tuple[datetime | None, int]]:
    """Returns hits at the given number of seconds after the start."""
    return [(None if s is None else START + timedelta(seconds=s), n) for s, n in hits]


def burst(count: int, within: float | None = None) -> Signature:
    return signature(alternatives=THREE, count=count, within_seconds=within)


def sequence(within: float | None = None) -> Signature:
    return signature(alternatives=THREE, mode="sequence", within_seconds=within)


CASES = [
    pytest.param(burst(1), at((0, 0)), True, id="one occurrence is enough by default"),
    pytest.param(burst(1), at(), False, id="no occurrence does not match"),
    pytest.param(burst(3), at((0, 0), (99, 1), (999, 2)), True, id="three at any time"),
    pytest.param(
        burst(3), at((0, 0), (None, 0), (1, 0)), True, id="three, one of them without a time"
    ),
    pytest.param(burst(3, 10), at((0, 0), (5, 0), (10, 0)), True, id="three at the limit"),
    pytest.param(burst(3, 10), at((0, 0), (5, 0), (10.1, 0)), False, id="three beyond the limit"),
    pytest.param(
        burst(3, 10), at((0, 0), (50, 0), (99, 0), (101, 0), (103, 0)), True, id="a late burst"
    ),
    pytest.param(burst(2, 10), at((9, 0), (0, 0)), True, id="files are interleaved"),
    pytest.param(burst(2, 10), at((None, 0), (None, 0)), False, id="no times to measure"),
    pytest.param(sequence(), at((0, 0), (1, 1), (2, 2)), True, id="in order"),
    pytest.param(sequence(), at((0, 0), (1, 2), (2, 1)), False, id="out of order"),
    pytest.param(sequence(), at((2, 2), (1, 1), (0, 0)), True, id="in time order"),
    pytest.param(sequence(), at((0, 0), (0, 1), (0, 2)), True, id="at the same time, in log order"),
    pytest.param(sequence(), at((None, 0), (None, 1), (None, 2)), True, id="without times"),
    pytest.param(sequence(10), at((0, 0), (5, 1), (10, 2)), True, id="within the limit"),
    pytest.param(sequence(10), at((0, 0), (5, 1), (11, 2)), False, id="beyond the limit"),
    pytest.param(
        sequence(10),
        at((0, 0), (20, 0), (22, 1), (25, 2)),
        True,
        id="an early start does not hide a later one",
    ),
    pytest.param(
        sequence(10),
        at((0, 0), (1, 1), (20, 0), (21, 2)),
        False,
        id="parts of two attempts do not form a sequence",
    ),
]


@pytest.mark.parametrize(("asked", "hits", "holds"), CASES)
def test_episodes(asked: Signature, hits: list[tuple[datetime | None, int]], holds: bool) -> None:
    assert episode_match(asked, hits) is holds
