"""Generates large logs of failing clusters and applications, mostly from real events.

    python -m benchmarks.floods --output corpus/ --form disconnects --megabytes 256

Each flood is one deployment in files of about 50 MB. Except for the form ``errors``, most
of the text comes from ``tests/logs``. Timestamps are new in each event, and ids, subtasks, and
other parts vary.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from flink_triage.logs.lifecycle import LITERALS

LOGS = Path(__file__).resolve().parents[1] / "tests" / "logs"
FILE_BYTES = 50_000_000
PARALLELISM = 300
SESSION_PARALLELISM = 200
SECONDS_BETWEEN = 0.0045

_HEADER = re.compile(r"(?m)^(?=\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (?:INFO |WARN |ERROR) )")
_TIME_CHARS = len("2026-01-01 00:00:00,000")
# An id that is joined to other ids identifies an execution attempt; all others are job ids.
_IDS = re.compile(r"(?<![0-9a-f])[0-9a-f]{32}(?P<joined>(?:_[0-9a-f]+)+)?(?![0-9a-f])")
_SUBTASK = re.compile(r"\(\d{1,4}/\d{1,4}\)(?P<attempt>#\d+)?")
_JOB_NAME = re.compile(r"(?<=[Jj]ob )('?)[a-z]+(?:-[a-z]+)*'?(?= \()")
# fmt: off
_WORDS = (
    "order", "payment", "shipment", "customer", "invoice", "retry", "queue", "broker", "shard",
    "partition", "ledger", "stock", "price", "rejected", "delayed", "missing", "stale",
    "duplicate", "unknown", "closed", "waiting", "after", "before", "while",
)
# fmt: on

# The seconds since the previous event, and the text of an event without its timestamp.
TimedEvent = tuple[float, str]
Flood = Callable[[random.Random], Iterator[TimedEvent]]


def _event(path: str, *words: str) -> str:
    """The first event in a log below ``tests/logs`` with all these words, without its timestamp."""
    for log in sorted(LOGS.glob(path)):
        for event in _HEADER.split(log.read_text("utf-8", "replace")):
            if _HEADER.match(event) and event.endswith("\n") and all(w in event for w in words):
                return event[_TIME_CHARS:]
    raise SystemExit(f"{LOGS / path}: no event contains {' and '.join(words)}")


def _steady() -> list[str]:
    """Lines that a JobManager or a TaskManager logs in normal operation.

    Lines about the lifecycle of jobs and processes are excluded, such as the end of a job.
    """
    found = {}
    for log in sorted(LOGS.glob("healthy/orders-*/**/*.log")):
        for event in _HEADER.split(log.read_text("utf-8", "replace")):
            is_line = event.count("\n") == 1 and " INFO " in event[:30]
            # The message of a banner line begins with a space.
            is_steady = not re.search(r"heckpoint|Starting|propert|] -  ", event)
            if is_line and is_steady and not any(literal in event for literal in LITERALS):
                found[re.sub(r"\d", "", event)] = event[_TIME_CHARS:]
    return list(found.values())


def _traces() -> list[str]:
    """Failures of five kinds, each with the stack trace that Flink printed."""
    places = (
        "operator/user-code-exception/npe-1.16.0",
        "rocksdb/bad-table-magic/flip-1.16.0",
        "kafka/transactional-id-shared",
        "rocksdb/hardlink-unsupported",
        "checkpoint/tolerable-threshold-exceeded",
    )
    failed = "switched from RUNNING to FAILED"
    return [_event(f"{place}*/**/*taskexecutor*.log", failed, "\n\tat ") for place in places]


def _renewed(event: str, job: str, chance: random.Random, parallelism: int = PARALLELISM) -> str:
    subtask, attempt = chance.randint(1, parallelism), chance.randint(0, 99)

    def other_subtask(found: re.Match[str]) -> str:
        return f"({subtask}/{parallelism})" + (f"#{attempt}" if found["attempt"] else "")

    return _SUBTASK.sub(other_subtask, _with_ids(event, job, chance))


def _with_ids(event: str, job: str, chance: random.Random) -> str:
    def other_id(found: re.Match[str]) -> str:
        return f"{chance.getrandbits(128):032x}{found['joined']}" if found["joined"] else job

    return _IDS.sub(other_id, event)


def _checkpoints(job: str, chance: random.Random) -> Iterator[str]:
    """An endless sequence of checkpoint lines: triggered, completed."""
    triggered = _event("healthy/orders-*/**/*.log", "Triggering checkpoint ")
    completed = _event("healthy/orders-*/**/*.log", "Completed checkpoint ")
    number = 0
    while True:
        number += 1
        for event in (triggered, completed):
            yield re.sub(r"(?<=heckpoint )\d+", str(number), _with_ids(event, job, chance))


def _loop(chance: random.Random, trace_share: float) -> Iterator[TimedEvent]:
    """A client that repeatedly loses its broker; a ``trace_share`` of the events has a trace."""
    job = f"{chance.getrandbits(128):032x}"
    traces, steady, checkpoints = _traces(), _steady(), _checkpoints(job, chance)
    lost = _event("kafka/**/*.log", "NetworkClient", " Node ", " disconnected.")
    while True:
        draw = chance.randrange(7)
        if chance.random() < trace_share:
            event = _renewed(chance.choice(traces), job, chance)
        elif draw == 0:
            event = re.sub(r"Node -?\d+", f"Node {chance.randint(0, 9)}", lost)
        elif draw <= 2:
            event = next(checkpoints)
        else:
            event = chance.choice(steady)
        yield SECONDS_BETWEEN, event


def _disconnects(chance: random.Random) -> Iterator[TimedEvent]:
    yield from _loop(chance, 0.01)


def _traced(chance: random.Random) -> Iterator[TimedEvent]:
    yield from _loop(chance, 0.3)


def _session(chance: random.Random) -> Iterator[TimedEvent]:
    """Three jobs that repeatedly fail on a record, which the exception quotes."""
    logs = "sql/expression-failed/**/*standalonesession*.log"
    failed = _event(logs, "switched from RUNNING to FAILED", "For input string: '")
    restarting = _event(logs, "switched from state RUNNING to RESTARTING")
    running = _event(logs, "switched from state RESTARTING to RUNNING")
    jobs = [f"{chance.getrandbits(128):032x}" for _ in range(3)]
    while True:
        for job in jobs:
            for _ in range(20):
                record = "".join(chance.choices(string.ascii_lowercase + string.digits, k=8))
                event = _renewed(failed, job, chance, SESSION_PARALLELISM)
                yield 0.002, re.sub(r"(?<=For input string: ')[^']*", record, event)
            yield 0.01, _with_ids(restarting, job, chance)
            yield 1.0, _with_ids(running, job, chance)


def _records(chance: random.Random) -> Iterator[TimedEvent]:
    """A job that fails on records of different length, each quoted as JSON."""
    logs = "sql/expression-failed/**/*standalonesession*.log"
    failed = _event(logs, "switched from RUNNING to FAILED", "For input string: '")
    job = f"{chance.getrandbits(128):032x}"
    while True:
        record = {
            "id": chance.getrandbits(chance.randint(4, 40)),
            "name": " ".join(chance.choices(_WORDS, k=chance.randint(1, 5))),
            "price": chance.random() * 100,
            "tags": chance.choices(_WORDS, k=chance.randint(0, 3)),
        }
        thrown = f"java.io.IOException: Failed to deserialize JSON '{json.dumps(record)}'."
        event = _renewed(failed, job, chance, SESSION_PARALLELISM)
        header, _, *frames = event.split("\n")
        yield 0.002, "\n".join((header, thrown, *frames[:8], ""))


def _loggers(chance: random.Random) -> Iterator[TimedEvent]:
    """Each event has a new logger and exception class, as if classes were generated at runtime."""
    event = _event("record/**/*taskexecutor*.log", "switched from RUNNING to FAILED", "\n\tat ")
    header, _, trace = event.partition("\n")
    _, _, message = header.partition(" - ")
    trace = "\n".join(trace.split("\n")[:8])
    thrown = re.compile(r"^[\w.$]+(?=[:\n])")
    while True:
        name = "".join(chance.choices(string.ascii_lowercase, k=8)).capitalize()
        own = thrown.sub(f"com.example.made.{name}Exception", trace)
        yield 0.01, f" WARN  com.example.made.{name} [] - {message}\n{own}\n"


def _jobs(chance: random.Random) -> Iterator[TimedEvent]:
    """Short jobs, one after the other in one session cluster; every tenth fails."""
    words = (
        ("Submitting job '",),
        ("Starting execution of job '",),
        ("switched from state CREATED to RUNNING",),
        ("switched from state FAILING to FAILED",),
        ("reached terminal state FAILED",),
    )
    submitted, started, running, failed, over = (_event("**/*session*.log", *w) for w in words)
    number = 0
    while True:
        number += 1
        job = f"{chance.getrandbits(128):032x}"
        ended = over.partition("\n")[0].replace("FAILED", "FINISHED") + "\n"
        is_failed = number % 10 == 0
        lines = (submitted, started, running, *((failed, over) if is_failed else (ended,)))
        for event in lines:
            named = re.sub(_JOB_NAME, rf"\1orders-{number}\1", _with_ids(event, job, chance))
            yield 0.05, named


def _errors(chance: random.Random) -> Iterator[TimedEvent]:
    """Errors of an application, each with a different message."""
    while True:
        words = chance.choices(_WORDS, k=chance.randint(6, 24))
        words.insert(chance.randrange(6), str(chance.getrandbits(chance.randint(4, 40))))
        service = chance.choice(_WORDS).capitalize()
        yield 0.01, f" ERROR com.example.shop.{service}Service [] - {' '.join(words)}\n"


FLOODS: Mapping[str, Flood] = {
    "disconnects": _disconnects,
    "traces": _traced,
    "session": _session,
    "records": _records,
    "loggers": _loggers,
    "jobs": _jobs,
    "json": _disconnects,
    "errors": _errors,
}
_ROLE = dict.fromkeys(("session", "records", "jobs"), "standalonesession")


def write_flood(form: str, output: Path, size_bytes: int) -> None:
    """Write one deployment of about ``size_bytes`` to ``output``."""
    chance = random.Random(form)
    at = datetime(2026, 1, 1, tzinfo=UTC)
    events = FLOODS[form](chance)
    number, left = 0, size_bytes
    output.mkdir(parents=True, exist_ok=True)
    while left > 0:
        role = _ROLE.get(form, "taskexecutor")
        with (output / f"flink-flink-{role}-{number}-vm.log").open("wb") as log:
            room = min(left, FILE_BYTES)
            while room > 0:
                seconds, event = next(events)
                at += timedelta(seconds=seconds)
                text = _json_line(at, event) if form == "json" else _line(at, event)
                written = log.write(text.encode())
                room -= written
                left -= written
        number += 1


def _line(at: datetime, event: str) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03}{event}"


def _json_line(at: datetime, event: str) -> str:
    """The event as a JSON record that begins with its timestamp."""
    header, _, thrown = event.rstrip("\n").partition("\n")
    head, _, message = header.partition(" - ")
    level, logger = head.split()[:2]
    record = {
        "ts": f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z",
        "level": level,
        "thread": "main",
        "logger": logger,
        "message": message,
    }
    if thrown:
        record["exception"] = thrown
    return json.dumps(record, separators=(",", ":")) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--form", choices=sorted(FLOODS), required=True)
    parser.add_argument("--megabytes", type=int, default=256)
    given = parser.parse_args(argv)
    write_flood(given.form, given.output, given.megabytes << 20)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
