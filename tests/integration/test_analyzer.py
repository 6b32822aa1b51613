"""Results reused for similar events equal those of a full analysis."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from flink_triage.analyzer import Analyzer
from flink_triage.diagnosis.timeline.fold import fold
from flink_triage.logs.readers import byte_account as tally
from flink_triage.logs.readers.byte_account import Tally
from flink_triage.model import ByteRange, Event, FileProfile, TraceCount
from flink_triage.recurrence import Recurrences, outline_of
from flink_triage.settings import DEFAULT_SETTINGS
from flink_triage.signatures import SignaturePack
from flink_triage.signatures.pack import build_pack
from flink_triage.signatures.signature import Alternative, RemediationSpec, Signature
from tests.integration.ranges import range_of

LOGS = Path(__file__).parents[1] / "logs"
_ID = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9]+")
_DIGITS = re.compile(r"[0-9]")
_HEX = re.compile(r"[0-9a-f]")


def _other_numbers(text: str, chance: random.Random) -> str:
    """Replaces most numbers and IDs outside of frames. A few others differ in length or form."""

    def other(match: re.Match[str]) -> str:
        word = match[0]
        if chance.random() < 0.3:
            return word
        if chance.random() < 0.02:
            return chance.choice(["0", "012", "d" * len(word), "7" * len(word), "1" + word])
        kinds = (_HEX, "0123456789abcdef") if len(word) >= 32 else (_DIGITS, "0123456789")
        return kinds[0].sub(lambda _: chance.choice(kinds[1]), word)

    lines = text.split("\n")
    return "\n".join(x if x.startswith("\tat ") else _ID.sub(other, x) for x in lines)


def _like(event: Event, chance: random.Random) -> Iterator[Event]:
    """Yields the event, and copies that differ only in their numbers and IDs."""
    yield event
    text = event.message if event.continuation is None else f"{event.message}\n{event.continuation}"
    for _ in range(3):
        message, _, continuation = _other_numbers(text, chance).partition("\n")
        yield replace(
            event,
            message=message,
            continuation=None if event.continuation is None else continuation,
        )


def _some_of_each_kind(analyzer: Analyzer, path: Path, seen: set[str]) -> Iterator[Event]:
    for event in analyzer.events(range_of(path)):
        kind = re.sub(r"[0-9a-f]|\tat .*", "", f"{event.message}{event.continuation}")
        if kind not in seen:
            seen.add(kind)
            # Most messages without a stack trace are similar to each other.
            if event.continuation is not None or len(seen) % 8 == 0:
                yield event


def test_recalled_analyses_equal_full_ones_on_real_logs(pack: SignaturePack) -> None:
    chance = random.Random(20)
    full, recalling = Analyzer(pack, is_recalling=False), Analyzer(pack)
    seen: set[str] = set()
    count = 0
    # Every third file: they contain two thirds of the kinds. All files would take six seconds.
    for path in sorted(LOGS.rglob("*.log"))[::3]:
        byte_range = range_of(path)
        for event in _some_of_each_kind(full, path, seen):
            recalling.observe(event, byte_range)
            for similar in _like(event, chance):
                count += 1
                assert recalling.observe(similar, byte_range) == full.observe(similar, byte_range)
    assert recalling.recalled_count > count // 5 > 50


def _event(message: str, continuation: str | None = None) -> Event:
    return Event("a.log", 0, 1, 1, None, "WARN", "o.a.f.Foo", None, message, continuation)


_FRAMES = "\n\tat org.apache.flink.Foo.bar(Foo.java:12)\n\tat com.acme.Job.run(Job.java:3)"
_RANGE = ByteRange(FileProfile("a.log", 1), "d")
_JOB_A, _JOB_B = "caf54c11130659b87c41175d9fcdc6f0", "1a2b3c4d5e6f708192a3b4c5d6e7f809"


@pytest.mark.parametrize(
    ("first", "second", "is_recalled"),
    [
        pytest.param(
            _event("Task 7 failed.", f"java.io.IOException: part 12 of {_JOB_A} is gone{_FRAMES}"),
            _event("Task 8 failed.", f"java.io.IOException: part 98 of {_JOB_B} is gone{_FRAMES}"),
            True,
            id="numbers and IDs of the same lengths",
        ),
        pytest.param(
            _event("Task 7 failed.", f"java.io.IOException: part 12{_FRAMES}"),
            _event("Task 7 failed.", f"java.io.IOException: part 123{_FRAMES}"),
            False,
            id="a longer number shifts the text after it",
        ),
        pytest.param(
            _event("Task 7 failed.", f"java.io.IOException: part 12{_FRAMES}"),
            _event("Task 7 failed.", f"java.io.IOException: part 12{_FRAMES}4"),
            False,
            id="another line number makes another frame",
        ),
        pytest.param(
            _event("Failed.", f"java.io.IOException: id {_JOB_A} is gone{_FRAMES}"),
            _event("Failed.", f"java.io.IOException: id {'7' * 32} is gone{_FRAMES}"),
            False,
            id="an ID that consists of digits is masked as a number",
        ),
        pytest.param(
            _event("x", f"java.io.IOException: see 2026-11-21-1234{'ab' * 14} now{_FRAMES}"),
            _event("x", f"java.io.IOException: see 2026-11-21-ab12{'ab' * 14} now{_FRAMES}"),
            False,
            id="a date that may overlap with an adjacent ID",
        ),
        pytest.param(
            _event("x", f"java.io.IOException: a #345Caused by: com.acme.NoException: b{_FRAMES}"),
            _event("x", f"java.io.IOException: a #012Caused by: com.acme.NoException: b{_FRAMES}"),
            False,
            id="a number that syslog uses to escape a newline",
        ),
        pytest.param(
            _event("Completed slot 7 of job 3"),
            _event("Completed slot 8 of job 4"),
            True,
            id="a message without a stack trace",
        ),
    ],
)
def test_recalled_events(
    pack: SignaturePack, first: Event, second: Event, is_recalled: bool
) -> None:
    full, recalling = Analyzer(pack, is_recalling=False), Analyzer(pack)
    _observe_twice(recalling, first)
    assert recalling.observe(second, _RANGE) == full.observe(second, _RANGE)
    assert recalling.recalled_count == is_recalled


def _observe_twice(recalling: Analyzer, event: Event) -> None:
    """Observes the event twice, because an event that occurs once is not learned."""
    for _ in range(2):
        recalling.observe(event, _RANGE)
    assert recalling.recalled_count == 0


def _pack_of(*alternatives: Alternative) -> SignaturePack:
    signature = Signature(
        "test/one", "t", "minor", "symptom", "any", alternatives, "c", RemediationSpec("r")
    )
    return build_pack([signature])


_THROWN = "java.io.IOException: failed at {} in {}" + _FRAMES


@pytest.mark.parametrize(
    ("alternatives", "first", "second", "is_recalled"),
    [
        pytest.param(
            [Alternative(literals=("failed at",), regex=r"failed at (?P<place>\d+)")],
            ("123", "456"),
            ("178", "456"),
            True,
            id="a regex that matches the same columns captures the new text",
        ),
        pytest.param(
            [Alternative(literals=("failed at",), regex=r"failed at (?P<place>[1-4]+)")],
            ("123", "456"),
            ("178", "456"),
            False,
            id="a regex that matches other columns",
        ),
        pytest.param(
            [Alternative(literals=("failed at",), regex=r"failed at [1-4]{3}")],
            ("123", "456"),
            ("178", "456"),
            False,
            id="a regex that no longer matches",
        ),
        pytest.param(
            [Alternative(literals=("failed at",), regex=r"failed at [1-4]{3}")],
            ("178", "456"),
            ("123", "456"),
            False,
            id="a regex that did not match before",
        ),
        pytest.param(
            [Alternative(literals=("failed at 12",))],
            ("123", "456"),
            ("178", "456"),
            False,
            id="a literal with digits that no longer occurs",
        ),
        pytest.param(
            [Alternative(literals=("failed at 12",))],
            ("178", "456"),
            ("123", "456"),
            False,
            id="a literal with digits that newly occurs",
        ),
        pytest.param(
            [
                Alternative(literals=("failed at",), regex=r"failed at (?P<n>\d+)"),
                Alternative(literals=(" in ",), regex=r" in (?P<n>\d+)"),
            ],
            ("777", "777"),
            ("123", "456"),
            False,
            id="two captures that were equal and now differ",
        ),
        pytest.param(
            [Alternative(scope="frame", literals=(".run",), regex=r"acme\.(?P<owner>\w+)\.run")],
            ("123", "456"),
            ("178", "456"),
            True,
            id="a regex that matches a stack frame",
        ),
        pytest.param(
            [
                Alternative(scope="frame", literals=(".run",), regex=r"acme\.Task\.run"),
                Alternative(literals=("failed at",), regex=r"failed at (?P<place>\d+)"),
            ],
            ("123", "456"),
            ("178", "456"),
            True,
            id="a regex that matches no stack frame",
        ),
    ],
)
def test_matches_are_those_of_a_full_analysis(
    alternatives: list[Alternative],
    first: tuple[str, str],
    second: tuple[str, str],
    is_recalled: bool,
) -> None:
    pack = _pack_of(*alternatives)
    full, recalling = Analyzer(pack, is_recalling=False), Analyzer(pack)
    _observe_twice(recalling, _event("x", _THROWN.format(*first)))
    event = _event("x", _THROWN.format(*second))
    assert recalling.observe(event, _RANGE) == full.observe(event, _RANGE)
    assert recalling.recalled_count == is_recalled


def test_a_throwable_that_only_a_message_names_recurs(pack: SignaturePack) -> None:
    analyzer, full = Analyzer(pack), Analyzer(pack, is_recalling=False)
    for number in range(1, 6):
        thread = f'"pool-{number}-thread-1"'
        event = _event(
            "Exception: java.lang.OutOfMemoryError thrown from the UncaughtExceptionHandler in "
            f"thread {thread}"
        )
        event = replace(event, level=None, logger=None)
        assert analyzer.observe(event, _RANGE) == full.observe(event, _RANGE)


def test_shapes_are_bounded(pack: SignaturePack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flink_triage.recurrence._MAX_KEYS", 10)
    analyzer = Analyzer(pack)
    recurrences = Recurrences(pack, DEFAULT_SETTINGS)
    for number in range(30):
        event = _event("x" * number, f"java.io.IOException: y{_FRAMES}")
        outline = outline_of(event, None)
        analysis = analyzer.analyze_event(event, None)
        recurrences.learn(event, outline, None, analysis)
        assert len(recurrences) == min(number, 10)
        recurrences.learn(event, outline, None, analysis)
    assert len(recurrences) == 10


def test_learning_stops_when_shapes_are_not_reused(
    pack: SignaturePack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flink_triage.recurrence._LEARNED_AT_FIRST", 5)
    recurrences = Recurrences(pack, DEFAULT_SETTINGS)
    analyzer = Analyzer(pack)
    for number in range(30):
        event = _event(f"{number * 'a'} word")
        analysis = analyzer.analyze_event(event, None)
        for _ in range(2):
            recurrences.learn(event, outline_of(event, None), None, analysis)
    assert len(recurrences) == 6


def test_already_reported_traces_are_only_counted(pack: SignaturePack) -> None:
    byte_range = range_of(next(LOGS.rglob("npe-then-disk-full-2.1.1/logs/*taskexecutor*.log")))
    whole = Analyzer(pack, DEFAULT_SETTINGS).analyze(byte_range)
    names = [row.fingerprint.full for row in whole.traces]
    assert len(names) > 1
    counted = Analyzer(pack, DEFAULT_SETTINGS).analyze(byte_range, known_traces=set(names[1:]))
    assert counted.traces == whole.traces[:1]
    assert counted.observations == whole.observations
    assert counted.trace_count == whole.trace_count
    assert counted.recurring == tuple(
        TraceCount(row.fingerprint, row.count, row.first_seen_at, row.last_seen_at)
        for row in whole.traces[1:]
    )


@pytest.mark.parametrize("prefix", ["", "2026-01-01T00:00:00.000000000Z stdout F "])
def test_range_read_in_portions_gives_the_same_result(
    pack: SignaturePack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefix: str
) -> None:
    log = next(LOGS.rglob("npe-then-disk-full-2.1.1/logs/*taskexecutor*.log"))
    path = tmp_path / log.name
    lines = log.read_text().splitlines(keepends=True)
    # More data than the reader reads at once.
    path.write_text(
        "".join(prefix + line for line in lines * (1 + 3 * 2**20 // log.stat().st_size))
    )
    byte_range = range_of(path)
    assert (byte_range.profile.carrier == "none") == (not prefix)
    whole = Analyzer(pack, DEFAULT_SETTINGS).analyze(byte_range)
    monkeypatch.setattr(tally, "PORTION_EVENTS", 100)
    account = Tally()
    reported: set[str] = set()
    portions = []
    for portion in Analyzer(pack, DEFAULT_SETTINGS).read(
        byte_range, account, known_traces=reported
    ):
        assert reported.isdisjoint(row.fingerprint.full for row in portion.traces)
        reported.update(row.fingerprint.full for row in portion.traces)
        portions.append(portion)
    assert len(portions) > 3
    observations = [o for portion in portions for o in portion.observations]
    assert fold(observations, DEFAULT_SETTINGS) == fold(whole.observations, DEFAULT_SETTINGS)
    assert {row.fingerprint: row.exemplar for portion in portions for row in portion.traces} == {
        row.fingerprint: row.exemplar for row in whole.traces
    }
    assert sum(portion.trace_count for portion in portions) == whole.trace_count
    scan = account.finish(byte_range)
    assert scan.event_bytes + scan.counted_bytes == path.stat().st_size
    assert (scan.volumes, scan.newline_count) == (whole.scan.volumes, whole.scan.newline_count)
