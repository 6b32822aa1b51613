"""A corpus of logs for timing: real events in, files of a wanted size out.

    python -m benchmarks.corpus --events logs/ --output corpus/ --size-mb 1024 --files 16

Events are taken whole from the given logs; ``--trace-share`` of them carry a stack trace.  Each
copy gets a later time, so that no two files, and no two minutes of a file, are equal.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

HEADER = re.compile(rb"(?m)^(?=\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)")
TIME = re.compile(rb"^\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d")
# Printed once per process, at start: repeated, they would make a log that does not exist.
AT_START = (
    b"GlobalConfiguration",
    b"EnvironmentInformation",
    b"BootstrapTools",
    b"ClusterEntrypoint",
)
WRITE_BYTES = 1 << 20


def read_events(folder: Path) -> tuple[list[bytes], list[bytes]]:
    """Whole events of the ``*.log`` files below ``folder``: without and with further lines."""
    plain: list[bytes] = []
    traced: list[bytes] = []
    for path in sorted(folder.rglob("*.log")):
        for event in HEADER.split(path.read_bytes()):
            header = event.split(b"\n", 1)[0]
            if any(word in header for word in AT_START):
                continue
            if TIME.match(event) and event.endswith(b"\n"):
                (traced if b"\n\tat " in event else plain).append(event)
    return plain, traced


def generate(
    plain: Sequence[bytes], traced: Sequence[bytes], trace_share: float, seed: int
) -> Iterator[bytes]:
    """Events without end, one every 20 ms."""
    chance = random.Random(seed)
    at = datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(days=seed)
    while True:
        event = chance.choice(traced if chance.random() < trace_share else plain)
        at += timedelta(milliseconds=20)
        yield at.strftime("%Y-%m-%d %H:%M:%S").encode() + TIME.sub(b"", event, count=1)


def write_corpus(
    events: Path, output: Path, size_bytes: int, file_count: int, trace_share: float
) -> None:
    plain, traced = read_events(events)
    if not plain or not traced:
        raise SystemExit(f"{events}: holds no *.log with events both with and without a trace")
    output.mkdir(parents=True, exist_ok=True)
    for number in range(file_count):
        stream = generate(plain, traced, trace_share, number)
        with (output / f"flink-taskmanager-{number:04}.log").open("wb") as log:
            left = size_bytes // file_count
            while left > 0:
                block = bytearray()
                while len(block) < min(left, WRITE_BYTES):
                    block += next(stream)
                left -= log.write(block)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=Path, required=True, help="logs to take events from")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--size-mb", type=int, default=256)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--trace-share", type=float, default=0.02, help="of the events, 0 to 1")
    given = parser.parse_args(argv)
    write_corpus(given.events, given.output, given.size_mb << 20, given.files, given.trace_share)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
