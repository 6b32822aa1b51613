"""Events beyond the limit of a diagnosis are folded, and the diagnosis stays the same."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from test_incidents import FULL, NPE, completed, failed, line, state

from flink_triage.diagnosis import diagnose_deployment
from flink_triage.diagnosis.timeline.fold import Folder, fold
from flink_triage.fold_grains import grains_of
from flink_triage.model import Fingerprint, Incident, Observation
from flink_triage.reach import Subtask
from flink_triage.remediation import OptionTable
from flink_triage.settings import DEFAULT_SETTINGS, Settings

FEW = Settings(max_observations_per_key=5, max_traces_per_key=4)


def failure(second: float, trace: str, attempt: int) -> str:
    return (
        failed(second, trace, attempt)
        + state(second, "RUNNING", "RESTARTING")
        + state(second + 3, "RESTARTING", "RUNNING")
    )


def loop(count: int, every: float, trace: str = FULL) -> str:
    """Failures that are each followed by a checkpoint, as in a restart loop."""
    steps = []
    for attempt in range(count):
        at = every * attempt
        steps += [failure(at, trace, attempt), completed(at + every / 2, attempt + 1)]
    return "".join(steps)


def shuffled(observations: Sequence[Observation], seed: int) -> list[Observation]:
    return random.Random(seed).sample(observations, len(observations))


def in_parts(
    observations: Sequence[Observation], settings: Settings, seed: int, coarseness: int = 0
) -> list:
    """Folds three parts separately, and then folds the results together, in another order."""
    first, second = sorted(random.Random(seed).sample(range(len(observations)), 2))
    together = Folder(settings, coarseness)
    for part in (observations[second:], observations[:first], observations[first:second]):
        folder = Folder(settings)
        folder.add(part)
        together.add(folder.take(), folder.coarseness)
    return together.take()


def total(observations: Sequence[Observation]) -> int:
    """Counts the events that the observations represent, except for completed checkpoints."""
    return sum(o.occurrences for o in observations if not o.event.message.startswith("Completed"))


def test_repeats_within_a_minute_keep_the_first_and_last_and_a_count(observe):
    observations = observe(
        taskmanager="".join(line(1 + i / 100, "x", "WARN") + FULL for i in range(10))
    )
    kept = fold(observations, FEW)
    assert [o.event.offset for o in kept] == [
        o.event.offset for o in [*observations[:4], observations[-1]]
    ]
    assert [o.occurrences for o in kept] == [1, 1, 1, 6, 1]
    assert kept[3].last_logged_at == observations[-2].event.logged_at
    assert all(in_parts(shuffled(observations, seed), FEW, seed) == kept for seed in range(20))


def test_only_the_ends_of_events_without_match_lifecycle_or_trace_are_kept(observe):
    observations = observe(
        taskmanager="".join(
            line(1 + i / 100, "x", "WARN") + (FULL if i % 2 else "") for i in range(20)
        )
    )
    kept = fold(observations, FEW)
    assert [o.occurrences for o in kept if o.fingerprint is None] == [9, 1]
    assert [o.occurrences for o in kept if o.fingerprint is not None] == [1, 1, 1, 6, 1]
    assert all(in_parts(shuffled(observations, seed), FEW, seed) == kept for seed in range(20))


def test_a_flood_of_different_traces_is_counted_and_its_first_is_kept(observe):
    def trace(number: int) -> str:
        return f"a.B: x\n\tat a.B.call{'abcdefghijklmnopqrstuvwxyz'[number]}(B.java:1)\n"

    numbers = [n * 7 % 20 for n in range(60)]
    text = "".join(line(1 + i / 100, "x", "WARN") + trace(n) for i, n in enumerate(numbers))
    observations = observe(taskmanager=text)
    kept = fold(observations, FEW)
    assert sorted(o.occurrences for o in kept) == [1] * 13 + [47]
    assert {observations[0].fingerprint, observations[-1].fingerprint} <= {
        o.fingerprint for o in kept
    }
    assert all(in_parts(shuffled(observations, seed), FEW, seed) == kept for seed in range(20))


def test_observations_beyond_the_limit_are_folded_over_longer_periods(observe):
    observations = observe(jobmanager=loop(800, 40))
    everything = fold(observations, DEFAULT_SETTINGS)
    faults = [o for o in observations if o.fingerprint is not None]
    for most in (2_000, 700, 150, 60):
        settings = replace(DEFAULT_SETTINGS, max_observations=most)
        kept = fold(observations, settings)
        assert len(kept) <= most < len(everything)
        assert total(kept) == total(everything)
        kept_faults = [o for o in kept if o.fingerprint is not None]
        assert kept_faults[0].event.offset == faults[0].event.offset
        assert kept_faults[-1] == faults[-1]
        assert all(in_parts(observations, settings, seed) == kept for seed in range(3))


def test_folding_keeps_as_many_observations_as_fit(observe):
    observations = observe(jobmanager=loop(100, 40))
    exactly = replace(DEFAULT_SETTINGS, max_observations=len(fold(observations, DEFAULT_SETTINGS)))
    assert fold(observations, exactly) == fold(observations, DEFAULT_SETTINGS)


def test_folding_in_portions_stays_within_the_limit(observe):
    settings = replace(DEFAULT_SETTINGS, max_observations=100)
    observations = observe(jobmanager=loop(300, 40))
    folder = Folder(settings)
    for at in range(0, len(observations), 10):
        folder.add(observations[at : at + 10])
        assert len(folder.fold()) <= 100
    assert folder.take() == fold(observations, settings)
    assert folder.take() == []


def test_options_of_repeated_starts_are_kept_once_with_the_last_value(observe):
    def start(number: int) -> str:
        loading = "Loading configuration property: "
        second = 100.0 * number
        return "".join(
            line(second, loading + option, logger="org.apache.flink.configuration.Glob")
            for option in ("state.backend, rocksdb", f"parallelism.default, {1 + number % 2}")
        )

    observations = observe(jobmanager="".join(map(start, range(300))))
    kept = fold(observations, replace(DEFAULT_SETTINGS, max_observations=20))
    assert len(kept) == 6
    assert total(kept) == 600
    assert kept[-1] == observations[-1]


def varied(observation: Observation, seed: int, count: int) -> list[Observation]:
    """Makes variants with other files, times, jobs, loggers, tasks, subtasks, and stack traces."""
    chance = random.Random(seed)
    made = []
    for offset in range(count):
        at = observation.event.logged_at + timedelta(seconds=chance.randrange(90_000))
        trace = f"v1:{chance.randrange(300):032x}"
        event = replace(
            observation.event,
            path=f"file-{chance.randrange(40)}",
            offset=offset,
            logged_at=chance.choice([at, at, at, None]),
            level=chance.choice(["WARN", "ERROR"]),
            logger=f"logger-{chance.randrange(60)}",
            job_id=f"{chance.randrange(500):032x}",
        )
        made.append(
            replace(
                observation,
                event=event,
                task=f"task-{chance.randrange(30)}",
                subtask=chance.randrange(300),
                fingerprint=chance.choice([None, Fingerprint(trace, trace)]),
            )
        )
    return made


@pytest.mark.parametrize("most", [5_000, 1_000, 100, 7])
def test_different_observations_do_not_exceed_the_limit(observe, most):
    observations = varied(observe(taskmanager=line(1, "x", "WARN") + FULL)[0], most, 5_000)
    kept = fold(observations, replace(DEFAULT_SETTINGS, max_observations=most))
    assert len(kept) <= most
    assert total(kept) == total(observations)


def test_options_with_a_value_of_their_own_at_each_start_are_bounded(observe):
    loading = "Loading configuration property: "
    text = "".join(line(i, f"{loading}port.{i % 70}, {i}") for i in range(2_000))
    kept = fold(observe(jobmanager=text), replace(DEFAULT_SETTINGS, max_observations=100))
    assert len(kept) <= 100
    assert total(kept) == 2_000


@pytest.mark.parametrize("coarseness", range(len(grains_of(FEW.max_observations_per_key))))
def test_at_each_grain_parts_in_any_order_give_the_whole(observe, coarseness):
    (one,) = observe(taskmanager=line(1, "x", "WARN") + FULL)
    settings = replace(FEW, max_observations=100)
    observations = varied(one, coarseness, 500)
    # Half of them differ little, so that some can be counted together.
    alike = (
        replace(o, task=("t", "t", None)[o.event.offset % 3], subtask=1, fingerprint=None)
        for o in varied(one, 99, 500)
    )
    observations += (replace(o, event=replace(o.event, path="same")) for o in alike)
    whole = fold(observations, settings, coarseness)
    for seed in range(3):
        chance = random.Random(seed)
        parts: list[list[Observation]] = [[], [], []]
        for observation in shuffled(observations, seed):
            chance.choice(parts).append(observation)
        folder = Folder(settings)
        for part in parts:
            alone = Folder(settings, chance.randint(0, coarseness))
            alone.add(part)
            folder.add(alone.take(), max(alone.coarseness, coarseness))
        assert folder.take() == whole


def test_at_each_grain_stretches_of_a_log_in_any_order_give_the_whole(observe):
    observations = observe(jobmanager=completed(-60, 1) + loop(300, 40))
    for coarseness in range(len(grains_of(FEW.max_observations_per_key))):
        whole = fold(observations, FEW, coarseness)
        for seed in range(4):
            assert in_parts(observations, FEW, seed, coarseness) == whole, coarseness


def test_folded_observations_keep_all_subtasks_hosts_and_files(observe):
    (one,) = observe(taskmanager=line(1, "x", "WARN") + FULL)
    observations = [
        replace(
            one,
            task="Totals",
            subtask=1 + number % 300,
            parallelism=300,
            host=f"host-{number % 40}",
            event=replace(one.event, path=f"file-{number % 7}", offset=number),
        )
        for number in range(3_000)
    ]
    kept = fold(observations, replace(DEFAULT_SETTINGS, max_observations=50))
    assert len(kept) <= 50
    subtasks = {subtask for o in kept for subtask in o.reach.subtasks}
    assert subtasks == {Subtask("Totals", n, 300) for n in range(1, 301)}
    assert {host for o in kept for host in o.reach.hosts} == {f"host-{n}" for n in range(40)}
    assert {path for o in kept for path in o.reach.paths} == {f"file-{n}" for n in range(7)}


def test_subtasks_of_a_task_are_one_kind_that_names_them(observe):
    (one,) = observe(taskmanager=line(1, "x", "WARN") + FULL)
    observations = [
        replace(
            one,
            task=task,
            subtask=1 + number,
            parallelism=300,
            event=replace(one.event, offset=2 * number + (task == "Sink")),
        )
        for number in range(300)
        for task in ("Totals", "Sink")
    ]
    kept = fold(observations, DEFAULT_SETTINGS)
    assert [o.task for o in kept].count("Totals") == DEFAULT_SETTINGS.max_observations_per_key
    assert len(kept) == 2 * DEFAULT_SETTINGS.max_observations_per_key
    assert {subtask for o in kept for subtask in o.reach.subtasks} == {
        Subtask(task, n, 300) for task in ("Totals", "Sink") for n in range(1, 301)
    }
    assert all(in_parts(observations, DEFAULT_SETTINGS, seed) == kept for seed in range(10))


def test_checkpoints_of_jobs_that_take_turns_fold_between_other_events(observe):
    text = "".join(completed(i / 10, i) + completed(i / 10, i, "0" * 32) for i in range(400))
    kept = fold(observe(jobmanager=text + failure(50, FULL, 0) + completed(55, 500)), FEW)
    checkpoints = [o for o in kept if o.event.message.startswith("Completed")]
    assert [o.event.message.split()[2] for o in checkpoints] == ["0", "0", "399", "399", "500"]


def test_only_the_first_and_last_of_equal_failures_separate_checkpoints(observe):
    failures = (failed(2 + 2 * i, FULL, i) + completed(3 + 2 * i, 2 + i) for i in range(20))
    text = completed(0, 0) + completed(1, 1) + "".join(failures) + completed(50, 50)
    observations = observe(jobmanager=text)
    kept = fold(observations, FEW)
    checkpoints = [o for o in kept if o.event.message.startswith("Completed")]
    assert [o.event.message.split()[2] for o in checkpoints] == ["0", "1", "2", "20", "21", "50"]
    assert all(in_parts(observations, FEW, seed) == kept for seed in range(10))


def facts(incident: Incident) -> dict[str, object]:
    """Returns the facts that must not depend on how many events are kept individually."""
    best = incident.diagnoses[0]
    return {
        "id": incident.incident_id,
        "cause": [diagnosis.signature for diagnosis in incident.diagnoses],
        "seen": (best.occurrences, best.first_seen_at, best.last_seen_at),
        "when": (incident.started_at, incident.ended_at, incident.outcome),
        "restarts": incident.restarts,
        "first fault": incident.first_fault,
        "healthy": incident.last_healthy,
    }


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(completed(-60, 1) + loop(700, 40), id="recovers after each failure"),
        pytest.param(
            loop(700, 40) + failure(28_000, FULL, 700) + state(28_004, "RUNNING", "FAILED"),
            id="fails in the end",
        ),
        pytest.param(
            loop(50, 40) + failure(18_000, FULL, 51) + loop(50, 40).replace("05:", "14:"),
            id="fails again within hours",
        ),
    ],
)
def test_folding_keeps_the_diagnosis_and_adds_a_note(observe, pack, text):
    observations = observe(jobmanager=text)

    def diagnosed(settings: Settings) -> Incident:
        kept = fold(observations, settings)
        found = diagnose_deployment("d", kept, pack, OptionTable.load(), settings)
        (incident,) = found.incidents
        return incident

    whole = diagnosed(DEFAULT_SETTINGS)
    assert not whole.notes
    for most in (2_000, 300, 60):
        thinned = diagnosed(replace(DEFAULT_SETTINGS, max_observations=most))
        assert facts(thinned) == facts(whole), most
        is_thinned = len(fold(observations, DEFAULT_SETTINGS)) > most
        assert ["analyzed individually" in note for note in thinned.notes] == [True] * is_thinned


def test_later_cause_is_still_diagnosed_after_folding(observe, pack):
    later = loop(400, 40, NPE).replace("Totals (1/2)", "Enrich (1/2)")
    shift = {f"2026-11-21 {hour:02d}": f"2026-11-22 {hour:02d}" for hour in range(24)}
    for before, after in shift.items():
        later = later.replace(before, after)
    observations = observe(jobmanager=loop(400, 40) + later)
    kept = fold(observations, replace(DEFAULT_SETTINGS, max_observations=100))
    incidents = diagnose_deployment("d", kept, pack, OptionTable.load()).incidents
    assert {i.diagnoses[0].signature for i in incidents} == {
        "disk/full",
        "operator/user-code-exception",
    }
