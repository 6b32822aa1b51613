"""Incremental runs with carried-over events produce the same diagnosis as a single run."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

import pytest

from flink_triage.diagnosis import Carried, Findings, diagnose, diagnose_incrementally, worst_first
from flink_triage.diagnosis.episodes.unknown_failures import merge_unknown
from flink_triage.local import Options, scan_inputs
from flink_triage.model import Incident, Lifecycle, Observation, UnknownFailure
from flink_triage.remediation import OptionTable
from flink_triage.settings import DEFAULT_SETTINGS
from flink_triage.signatures import SignaturePack

LOGS = Path(__file__).resolve().parents[2] / "logs"
HEALTHY = "healthy/orders-1.16.0"
NPE_THEN_FULL = "checkpoint/tolerable-threshold-exceeded/npe-then-disk-full-2.1.1"
EXPIRED = "checkpoint/tolerable-threshold-exceeded/expired-1.16.0"
NPE = "operator/user-code-exception/npe-1.16.0"
LOST = "taskmanager/heartbeat-timeout/frozen-1.16.0"
READ_ONLY = "checkpoint/tolerable-threshold-exceeded/read-only-1.16.0"
CLIENT_ONLY = "classloading/user-class-missing/client-only-1.16.0"
YARN = "healthy/yarn-1.20.3"
CAUGHT = "healthy/caught-1.20.2"
AFTER_EXPIRED = "operator/user-code-exception/after-expired-1.14.6"
TWO_JOBS = "operator/user-code-exception/two-jobs-1.15.4"
ASKED_IN_VAIN = "resources/taskmanager-not-registered/yarn-queue-full-1.20.3"
UPGRADED = "classloading/flink-version-mismatch/upgrade-1.18.1"
LOWERED = "network/buffers-insufficient/lowered-1.18.1"
REPLACED = "operator/user-code-exception/new-functions-1.18.1"
RESCALED = "resources/slots-unavailable/rescaled-1.18.1"
HOUR = timedelta(hours=1)

OPTIONS = OptionTable.load()
Parts = tuple[tuple[Incident, ...], tuple[UnknownFailure, ...]]


@cache
def recorded(name: str) -> tuple[Observation, ...]:
    scanned = scan_inputs([str(LOGS / name / "logs")], Options(), lambda done, total: None)
    return tuple(replace(o, deployment="d") for o in scanned.observations())


def story(names: Sequence[str], apart: timedelta, *, is_rotated: bool) -> list[Observation]:
    """Recorded logs in sequence, with the given time between them.

    The recordings are one job that is restarted and continues in the same files. With
    ``is_rotated``, each recording is a new submission with its own job ID and its own files.
    """
    events = []
    began = datetime.fromisoformat("2026-01-05T00:00:00+00:00")
    for number, name in enumerate(names):
        first = min(o.event.logged_at for o in recorded(name) if o.event.logged_at)
        # Events of the same minute stay in the same minute, because they are folded by minute.
        move = began + number * apart - first.replace(second=0, microsecond=0)
        for o in recorded(name):
            again = number if is_rotated else 0
            event = replace(
                o.event,
                job_id=renamed(o.event.job_id, again),
                lifecycle=renamed_in(o.event.lifecycle, number, again),
                path=f"{Path(o.event.path).name}{f'.{number}' if is_rotated else ''}",
                offset=o.event.offset + number * 10_000_000,
                logged_at=o.event.logged_at + move if o.event.logged_at else None,
            )
            last = o.last_logged_at + move if o.last_logged_at else None
            events.append(replace(o, event=event, last_logged_at=last))
    return events


def renamed(name: str | None, number: int) -> str | None:
    return name and f"{number}{name[1:]}"


def renamed_in(lifecycle: Lifecycle | None, number: int, again: int) -> Lifecycle | None:
    """Makes the execution IDs unique across recordings."""
    if lifecycle is None or lifecycle.kind == "config":
        return lifecycle
    key, job_id = renamed(lifecycle.key, number), renamed(lifecycle.job_id, again)
    return replace(
        lifecycle, key=lifecycle.key if lifecycle.kind == "version" else key, job_id=job_id
    )


def cut(events: Sequence[Observation], times: Sequence[datetime]) -> Iterator[list[Observation]]:
    """Yields the new events of each run: everything written to a file since the previous run."""
    runs: list[list[Observation]] = [[] for _ in range(len(times) + 1)]
    files: dict[str, list[Observation]] = {}
    for event in events:
        files.setdefault(event.event.path, []).append(event)
    for of_file in files.values():
        at = times[0]
        for event in sorted(of_file, key=lambda o: o.event.offset):
            at = max(at, event.event.logged_at or at)
            runs[sum(at > time for time in times)].append(event)
    yield from (run for run in runs if run)


def at_once(events: Sequence[Observation], pack: SignaturePack) -> Parts:
    incidents, unknown, _ = diagnose(events, pack, OPTIONS, deployments=("d",))
    return incidents, unknown


def together(findings: Sequence[Findings]) -> Parts:
    incidents = sorted((i for part in findings for i in part.incidents), key=worst_first)
    unknown = merge_unknown(
        (u for part in findings for u in part.unknown), DEFAULT_SETTINGS.max_evidence
    )
    return tuple(incidents), unknown


STORIES = {
    "one trouble by the hour": ([NPE] * 9, HOUR),
    "one trouble every four hours": ([NPE] * 5, 4 * HOUR),
    "one trouble by the day": ([NPE] * 5, 24 * HOUR),
    "troubles in turn": ([NPE, READ_ONLY, HEALTHY] * 3, 3 * HOUR),
    "a trouble after long health": ([*[HEALTHY] * 9, EXPIRED, HEALTHY], HOUR),
    "health all along": ([HEALTHY] * 6, 5 * HOUR),
    "lost TaskManagers": ([LOST, HEALTHY, LOST, NPE, HEALTHY], 7 * HOUR),
    "two troubles at each start": ([NPE_THEN_FULL] * 4, 8 * HOUR),
    "TaskManagers on demand": ([YARN, ASKED_IN_VAIN, YARN, ASKED_IN_VAIN], 2 * HOUR),
    "exceptions that the code catches": ([CAUGHT] * 6, 3 * HOUR),
    "what a job got over": ([AFTER_EXPIRED] * 6, 4 * HOUR),
    "ids of tasks that name no job": ([TWO_JOBS, HEALTHY, TWO_JOBS], 8 * HOUR),
    "starts that differ from the one before": (
        [HEALTHY, UPGRADED, LOWERED, REPLACED, RESCALED, REPLACED],
        9 * HOUR,
    ),
    "clients beside a cluster": ([HEALTHY, CLIENT_ONLY, CLIENT_ONLY, HEALTHY], 9 * HOUR),
}


@pytest.mark.parametrize("is_rotated", [False, True], ids=["growing files", "new files"])
@pytest.mark.parametrize("name", STORIES)
def test_incremental_runs_give_the_same_result_as_one_run(
    name: str, is_rotated: bool, pack: SignaturePack
) -> None:
    parts, apart = STORIES[name]
    events = story(parts, apart, is_rotated=is_rotated)
    times = sorted({o.event.logged_at for o in events if o.event.logged_at})
    chance = random.Random(name)
    cuts = sorted(chance.sample(times[1:-1], k=2 * len(parts)))
    carried: Carried | None = None
    closed: list[Findings] = []
    wholes = 0
    for number, news in enumerate(cut(events, cuts)):
        continued = None
        if number and carried is not None:
            continued = diagnose_incrementally("d", carried, news, pack, OPTIONS)
        if continued is None:
            # A full diagnosis replaces all earlier results.
            wholes, closed = wholes + 1, []
            read = [e for run in itertools.islice(cut(events, cuts), number + 1) for e in run]
            continued = diagnose_incrementally("d", None, read, pack, OPTIONS)
        assert continued is not None
        closed.append(continued.closed)
        carried = continued.carried
        if number % 4 == 0:
            read = [e for run in itertools.islice(cut(events, cuts), number + 1) for e in run]
            assert together([*closed, continued.open]) == at_once(read, pack), number
    assert together([*closed, continued.open]) == at_once(events, pack)
    # Each recording changes the configuration, jobs, and tasks. Most other runs are incremental.
    assert wholes <= 3 + 3 * len(set(parts)), wholes


def test_slot_request_of_an_earlier_run_is_unmet_in_a_later_one(
    pack: SignaturePack,
) -> None:
    events = list(recorded(ASKED_IN_VAIN))
    asked = next(o.event for o in events if "Requesting new worker" in o.event.message)
    assert asked.logged_at is not None
    before, after = cut(events, [asked.logged_at + timedelta(seconds=1)])
    first = diagnose_incrementally("d", None, before, pack, OPTIONS)
    assert first is not None
    assert first.carried is not None
    second = diagnose_incrementally("d", first.carried, after, pack, OPTIONS)
    assert second is not None
    found = together([first.closed, second.closed, second.open])
    assert found == at_once(events, pack)
    assert found[0][0].diagnoses[0].signature == "resources/taskmanager-not-registered"
