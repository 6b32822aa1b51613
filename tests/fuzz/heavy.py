"""Tests logs that are each large in one respect: memory is limited, and the result is as expected.

``python -m tests.fuzz.heavy`` reads each log in a separate process, and prints the peak memory and
parts of the result; ``python -m tests.fuzz.heavy NAME`` reads one log.
"""

from __future__ import annotations

import gzip
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from flink_triage.local import Options, run_local
from flink_triage.model import Result
from flink_triage.settings import DEFAULT_SETTINGS, MIB, Settings
from tests.fuzz.limits import MAX_MEGABYTES, MAX_SECONDS, peak_kibibytes

HEADER = b"2026-11-21 06:47:23,468 ERROR org.apache.flink.Foo [] - "
FAILURE = HEADER + (
    b"write failed\njava.io.IOException: No space left on device\n"
    b"\tat java.io.FileOutputStream.writeBytes(Native Method)\n"
)


@dataclass(frozen=True, slots=True)
class Heavy:
    """A log, the maximum memory for reading it, and a check of the result (``is_told``)."""

    write: Callable[[BinaryIO], None]
    max_mebibytes: int
    is_told: Callable[[Result], bool]
    settings: Settings = DEFAULT_SETTINGS
    name: str = "taskmanager.log"


def _in_pieces(out: BinaryIO, piece: bytes, size: int) -> None:
    block = piece * (MIB // len(piece))
    for _ in range(size // len(block)):
        out.write(block)


def _long_line(out: BinaryIO) -> None:
    out.write(FAILURE * 50 + HEADER)
    _in_pieces(out, b"0123456789abcde ", 500 * MIB)
    out.write(b"\n" + FAILURE)


def _long_line_in_a_carrier(out: BinaryIO) -> None:
    for line in (FAILURE * 50).split(b"\n"):
        out.write(b"[pod/orders-tm/main] " + line + b"\n")
    out.write(b"[pod/orders-tm/main] " + HEADER)
    _in_pieces(out, b"0123456789abcde ", 500 * MIB)
    out.write(b"\n[pod/orders-tm/main] " + FAILURE.replace(b"\n", b"\n[pod/orders-tm/main] "))


def _bomb(out: BinaryIO) -> None:
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=6) as packed:
        packed.write(FAILURE * 50)
        for _ in range(2048):
            packed.write(bytes(MIB))


def _tiny_events(out: BinaryIO) -> None:
    for number in range(1_000_000):
        out.write(b"2026-11-21 06:%02d:23,468 ERROR a.B [] - x%d\n" % (number // 20_000, number))


def _tiny_quiet_events(out: BinaryIO) -> None:
    for number in range(1_000_000):
        out.write(b"2026-11-21 06:%02d:23,468 INFO  a.B [] - x%d\n" % (number // 20_000, number))


def _causes(out: BinaryIO) -> None:
    out.write(HEADER + b"Job failed\njava.lang.Exception: the first\n")
    for number in range(10_000):
        out.write(b"Caused by: java.lang.IllegalStateException: cause %d\n" % number)
        out.write(b"\tat com.acme.Job.step%d(Job.java:%d)\n" % (number, number))
    out.write(b"Caused by: java.io.IOException: No space left on device\n")
    out.write(b"\tat java.io.FileOutputStream.writeBytes(Native Method)\n")


def _frames(out: BinaryIO) -> None:
    out.write(HEADER + b"Job failed\njava.lang.StackOverflowError\n")
    for number in range(100_000):
        out.write(b"\tat com.acme.Tree.visit%d(Tree.java:%d)\n" % (number % 7, number % 900))
    out.write(b"Caused by: java.io.IOException: No space left on device\n")
    out.write(b"\tat java.io.FileOutputStream.writeBytes(Native Method)\n")


def _all_differ(out: BinaryIO) -> None:
    for n in range(200_000):
        out.write(
            b"2026-11-21 06:%02d:%02d,468 ERROR com.acme.P%d.C%d [] - %d went wrong\n"
            b"com.acme.P%d.E%dException: %d\n\tat com.acme.P%d.C%d.m%d(C%d.java:%d)\n"
            % (n // 4_000, n // 100 % 60, n, n, n, n, n, n, n, n, n, n, n % 999)
        )


def _short_jobs(out: BinaryIO) -> None:
    """A session cluster whose jobs all fail with the same cause; each job has a unique id."""
    for n in range(100_000):
        out.write(
            b"2026-11-21 %02d:%02d:%02d,468 INFO  org.apache.flink.runtime.executiongraph."
            b"ExecutionGraph [] - Job orders-%d (%032x) switched from state RUNNING to FAILED.\n"
            b"java.io.IOException: No space left on device\n"
            b"\tat java.io.FileOutputStream.writeBytes(Native Method)\n"
            % (n // 6_000, n // 100 % 60, n // 10 % 60, n, n)
        )


def aliases(out: BinaryIO) -> None:
    """An option whose value would expand to more than 10^9 words."""
    words = b"[&a0 [x,x,x,x,x,x,x,x,x], " + b", ".join(
        b"&a%d [%s]" % (n, b",".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 10)
    )
    out.write(
        b"2026-11-21 06:47:23,000 INFO  org.apache.flink.configuration.GlobalConfiguration [] - "
        b"Loading configuration property: classloader.parent-first-patterns.additional, "
        + words
        + b"]\n"
        + FAILURE * 50
    )


def _base64(out: BinaryIO) -> None:
    """Events whose lines could each be part of a private key."""
    lines = b"".join(b"%072d\n" % n for n in range(9_000))
    for _ in range(20):
        out.write(HEADER + b"no PRIVATE KEY in\n" + lines)
    out.write(FAILURE * 50)


def _is_cut(result: Result) -> bool:
    return result.coverage.truncated > 0


def _finds_the_full_disk(result: Result) -> bool:
    return any(d.signature == "disk/full" for i in result.incidents for d in i.diagnoses)


def _is_cut_and_found(result: Result) -> bool:
    return _is_cut(result) and _finds_the_full_disk(result)


def _bomb_is_named(result: Result) -> bool:
    reasons = [q.reason for q in result.coverage.quarantined]
    return any("cut at" in reason for reason in reasons) and _finds_the_full_disk(result)


# Python, its libraries, and the compiled signatures take 60 MiB before the first byte is read.
HEAVY: Mapping[str, Heavy] = {
    "a line of 500 MB": Heavy(_long_line, 200, _is_cut_and_found),
    "a line of 500 MB in a carrier": Heavy(_long_line_in_a_carrier, 200, _is_cut_and_found),
    "a bomb of 2 GB": Heavy(
        _bomb, 200, _bomb_is_named, Settings(max_file_bytes=256 * MIB), "taskmanager.log.gz"
    ),
    "a million errors": Heavy(_tiny_events, 200, lambda r: r.coverage.events == 1_000_000),
    "a million quiet events": Heavy(
        _tiny_quiet_events, 200, lambda r: r.coverage.events == 1_000_000
    ),
    "a chain of 10,000 causes": Heavy(_causes, 200, _is_cut_and_found),
    "200,000 events that all differ": Heavy(
        _all_differ, MAX_MEGABYTES, lambda r: r.coverage.fingerprints == 200_000
    ),
    "100,000 short jobs": Heavy(_short_jobs, MAX_MEGABYTES, _finds_the_full_disk),
    "lines of base64": Heavy(_base64, 200, _finds_the_full_disk),
    "an option of aliases": Heavy(aliases, 200, _finds_the_full_disk),
    "a stack of 100,000 frames": Heavy(_frames, 200, _is_cut_and_found),
}


def measure(name: str) -> dict[str, object]:
    """Read one log in this process; return its peak memory in MiB and parts of the result."""
    heavy = HEAVY[name]
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / heavy.name
        with path.open("wb") as out:
            heavy.write(out)
        result = run_local([folder], Options(settings=heavy.settings, workers=1))
    peak = peak_kibibytes() // 1024
    return {
        "mebibytes": peak,
        "is_told": heavy.is_told(result),
        "truncated": result.coverage.truncated,
        "quarantined": [q.reason for q in result.coverage.quarantined],
        "first": [d.signature for i in result.incidents for d in i.diagnoses][:3],
    }


def measured_apart(name: str) -> dict[str, object]:
    """Like ``measure``, but in a new process, which reads only this log."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.heavy", name],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).resolve().parents[2],
    )
    found: dict[str, object] = json.loads(done.stdout)
    return found


def problems_of(name: str, found: Mapping[str, object]) -> list[str]:
    """The checks that a log fails; ``found`` is the result of ``measured_apart``."""
    problems = [] if found["is_told"] is True else ["the result is not as expected"]
    most = HEAVY[name].max_mebibytes
    if int(str(found["mebibytes"])) > most:
        problems.append(f"took {found['mebibytes']} MiB, allowed: {most}")
    return problems


def main() -> int:
    bad = 0
    for name in HEAVY:
        found = measured_apart(name)
        is_good = not problems_of(name, found)
        bad += not is_good
        print(f"{'ok' if is_good else 'BROKEN':<8}{name:<32}{json.dumps(found)}", flush=True)
    print(f"{len(HEAVY)} heavy logs, {bad} failed a check")
    return 1 if bad else 0


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1])))
    else:
        sys.exit(main())
