"""Between state changes, the first and last completed checkpoint of a job and minute are kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flink_triage.logs.routine import drop_routine, role_of
from flink_triage.model import Event, Lifecycle

T0 = datetime(2026, 5, 10, 10, 0, tzinfo=UTC)
JOBS = ("a" * 32, "b" * 32)


def _event(second: int, lifecycle: Lifecycle | None = None) -> Event:
    at = T0 + timedelta(seconds=second)
    return Event("jm.log", 100 * second, 100, 1, at, "INFO", None, None, "", lifecycle=lifecycle)


def _completed(second: int, job: str = JOBS[0]) -> Event:
    return _event(second, Lifecycle("checkpoint-completed", job_id=job))


def _restarting(second: int, job: str | None) -> Event:
    return _event(second, Lifecycle("job-state", job_id=job, to_state="RESTARTING"))


def _seconds(events: list[Event]) -> list[int]:
    kept = drop_routine(events, role_of)
    return [event.offset // 100 for event in kept]


def test_the_ends_of_a_minute_are_kept() -> None:
    assert _seconds([_completed(second) for second in range(0, 120, 10)]) == [0, 50, 60, 110]


def test_each_job_has_its_own_ends() -> None:
    events = [_completed(second, JOBS[second % 2]) for second in range(10)]
    assert _seconds(events) == [0, 1, 8, 9]


@pytest.mark.parametrize("job", [JOBS[0], None])
def test_the_checkpoints_next_to_a_state_change_are_kept(job: str | None) -> None:
    before, after = [_completed(s) for s in range(5)], [_completed(s) for s in range(6, 11)]
    assert _seconds([*before, _restarting(5, job), *after]) == [0, 4, 5, 6, 10]


@pytest.mark.parametrize("other", [_event(5), _restarting(5, JOBS[1])])
def test_other_events_and_other_jobs_change_nothing(other: Event) -> None:
    before, after = [_completed(s) for s in range(5)], [_completed(s) for s in range(6, 11)]
    assert _seconds([*before, other, *after]) == [0, 5, 10]


_EVENTS = {
    "a": lambda second: _completed(second, JOBS[0]),
    "b": lambda second: _completed(second, JOBS[1]),
    "line": _event,
    "change of a": lambda second: _restarting(second, JOBS[0]),
    "change": lambda second: _restarting(second, None),
}


@given(kinds=st.lists(st.sampled_from(sorted(_EVENTS)), max_size=30), cut=st.integers(0, 30))
def test_parts_may_be_dropped_first(kinds: list[str], cut: int) -> None:
    events = [_EVENTS[kind](3 * i) for i, kind in enumerate(kinds)]
    whole = drop_routine(events, role_of)
    parts = [drop_routine(part, role_of) for part in (events[:cut], events[cut:])]
    assert drop_routine([*parts[0], *parts[1]], role_of) == whole
    assert drop_routine(whole, role_of) == whole
