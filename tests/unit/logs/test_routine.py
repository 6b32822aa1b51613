"""Between other events, the first and last completed checkpoint of a job and minute are kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from flink_triage.logs.routine import drop_routine, routine_key
from flink_triage.model import Event, Lifecycle

T0 = datetime(2026, 5, 10, 10, 0, tzinfo=UTC)
JOBS = ("a" * 32, "b" * 32)


def _event(second: int, lifecycle: Lifecycle | None = None) -> Event:
    at = T0 + timedelta(seconds=second)
    return Event("jm.log", 100 * second, 100, 1, at, "INFO", None, None, "", lifecycle=lifecycle)


def _completed(second: int, job: str = JOBS[0]) -> Event:
    return _event(second, Lifecycle("checkpoint-completed", job_id=job))


def _seconds(events: list[Event]) -> list[int]:
    kept = drop_routine(events, routine_key)
    return [event.offset // 100 for event in kept]


def test_the_ends_of_a_minute_are_kept() -> None:
    assert _seconds([_completed(second) for second in range(0, 120, 10)]) == [0, 50, 60, 110]


def test_each_job_has_its_own_ends() -> None:
    events = [_completed(second, JOBS[second % 2]) for second in range(10)]
    assert _seconds(events) == [0, 1, 8, 9]


def test_the_checkpoints_next_to_another_event_are_kept() -> None:
    before, after = [_completed(s) for s in range(5)], [_completed(s) for s in range(6, 11)]
    assert _seconds([*before, _event(5), *after]) == [0, 4, 5, 6, 10]


@given(
    kinds=st.lists(st.sampled_from(["a", "b", "other"]), max_size=30),
    cut=st.integers(0, 30),
)
def test_parts_may_be_dropped_first(kinds: list[str], cut: int) -> None:
    events = [
        _event(3 * i) if kind == "other" else _completed(3 * i, JOBS[kind == "b"])
        for i, kind in enumerate(kinds)
    ]
    whole = drop_routine(events, routine_key)
    parts = [drop_routine(part, routine_key) for part in (events[:cut], events[cut:])]
    assert drop_routine([*parts[0], *parts[1]], routine_key) == whole
    assert drop_routine(whole, routine_key) == whole
