"""Writes numbered events to logs and rotates them, as loggers and logrotate do.

The process takes ``[folder, modes, seed, seconds, bytes_per_second, keep]`` as JSON and writes one
log per mode until the time is up. The seed determines the content and the sizes above which a log
is rotated; the time and the rate determine the amount.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import sys
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO

from tests.crash.workload import NUMBER, START, event

# Each writer has a range of this many numbers.
NUMBERS = 150_000
# A buffered appender writes whole buffers, so that a file may end within an event.
CHUNK_BYTES = 8192
# A file is copied or compressed in this many steps, one per tick.
PARTS = 4
TICK_SECONDS = 0.05
HEADER = re.compile(rf"^\S+ \S+ WARN .*{NUMBER.pattern}", re.MULTILINE)
# Longer than the first 64 KiB, by which a run identifies a file.
HEAD = "".join(f"# classpath entry {n}: /opt/flink/lib/flink-part-{n}.jar\n" for n in range(1_500))
NOISE = "{} INFO  com.acme.orders.Sink [] - Wrote {} rows to partition {}.\n"


def rename(log: Path, keep: int, count: int) -> Iterator[str]:
    """``.1`` is the newest, as with Logback, logrotate and ``fileIndex="min"`` in Log4j 2."""
    yield from _shift(log)
    log.rename(f"{log}.1")
    yield "log is missing"
    log.touch()


def rename_upwards(log: Path, keep: int, count: int) -> Iterator[str]:
    """The highest number is the newest, as with ``fileIndex="max"``, the Log4j 2 and Flink default.

    When all numbers are in use, the oldest file is deleted and the numbers of the others decrease
    by one.
    """
    older = [path for path in (Path(f"{log}.{n}") for n in range(1, keep + 1)) if path.exists()]
    if len(older) == keep:
        older[0].unlink()
        for path in older[1:]:
            path.rename(older[0])
            older[0] = path
            yield "partly moved"
        log.rename(older[0])
    else:
        log.rename(f"{log}.{len(older) + 1}")
    yield "log is missing"
    log.touch()


def copy_and_truncate(log: Path, keep: int, count: int) -> Iterator[str]:
    yield from _shift(log)
    with Path(f"{log}.1").open("wb", buffering=0) as copy:
        for part in _parts(log):
            copy.write(part)
            yield "partly copied"
    with log.open("r+b") as file:
        file.truncate()


def rename_and_compress(log: Path, keep: int, count: int) -> Iterator[str]:
    """Rename, then compress ``.1`` while the log is written, as Log4j 2 does in a thread."""
    yield from rename(log, keep, count)
    plain = Path(f"{log}.1")
    with Path(f"{plain}.gz").open("wb", buffering=0) as raw, gzip.open(raw, "wb") as packed:
        yield COMPRESSING
        for part in _parts(plain):
            packed.write(part)
            packed.flush(zlib.Z_SYNC_FLUSH)
            yield COMPRESSING
    yield COMPRESSING
    plain.unlink()


def upload_and_delete(log: Path, keep: int, count: int) -> Iterator[str]:
    """Copy the log for an upload and delete it; the copies are deleted after ``keep`` rotations."""
    at = START + timedelta(minutes=count)
    with log.with_name(f"a.{at:%Y%m%dT%H%M%S}.log").open("wb", buffering=0) as copy:
        for part in _parts(log):
            copy.write(part)
            yield "partly copied"
    log.unlink()
    yield "log is missing"
    log.touch()
    for old in sorted(log.parent.glob("a.*T*.log"))[:-keep]:
        old.unlink()


def rename_with_same_head(log: Path, keep: int, count: int) -> Iterator[str]:
    """Rename; each new file begins with the same bytes, as with a header in a Log4j 2 layout."""
    yield from rename(log, keep, count)
    log.write_text(HEAD)


COMPRESSING = "compressing"
ROTATIONS = {
    "rename": rename,
    "rename-upwards": rename_upwards,
    "copytruncate": copy_and_truncate,
    "gzip": rename_and_compress,
    "delete": upload_and_delete,
    "same-head": rename_with_same_head,
}


def _shift(log: Path) -> Iterator[str]:
    """Rename ``.2`` to ``.3``, ``.1`` to ``.2``, and so on, compressed or not."""
    older = list(log.parent.glob(f"{log.name}.*"))
    for path in sorted(older, key=_index_of, reverse=True):
        path.rename(
            path.with_name(path.name.replace(f".{_index_of(path)}", f".{_index_of(path) + 1}"))
        )
    yield "shifted"


def _index_of(path: Path) -> int:
    return int(path.name.split(".")[2])


def _parts(path: Path) -> Iterator[bytes]:
    size = path.stat().st_size // PARTS + 1
    with path.open("rb") as file:
        while part := file.read(size):
            yield part


class Writer:
    """Writes ``folder/a.log`` and rotates it; its numbers begin at ``first``."""

    def __init__(
        self, folder: Path, mode: str, seed: int, first: int, size_bytes: int, keep: int
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.log = folder / "a.log"
        self.log.touch()
        self.mode, self.keep = mode, keep
        self.random = random.Random(f"{seed} {mode}")
        self.first = self.number = first
        self.size_bytes = size_bytes
        self.written = self.count = 0
        self.buffer = b""
        self.limit = self._next_limit()
        self.steps: Iterator[str] = iter(())
        self.is_rotating = False

    def work(self, until: int) -> None:
        """One tick: continue a rotation, or write until ``until`` bytes have been written.

        While a rotated file is compressed, a tick does both.
        """
        if next(self.steps, COMPRESSING) != COMPRESSING:
            return
        self.write(until - self.written)
        if self.log.stat().st_size >= self.limit:
            self.finish()
            self.steps = self.rotate()

    def write(self, size_bytes: int) -> None:
        """Write at most ``size_bytes``, in whole buffers."""
        with self.log.open("ab", buffering=0) as file:
            for _ in range(size_bytes // CHUNK_BYTES):
                while len(self.buffer) < CHUNK_BYTES:
                    self.buffer += self._text()
                self._write(file, CHUNK_BYTES)

    def _write(self, file: BinaryIO, size_bytes: int) -> None:
        self.written += file.write(self.buffer[:size_bytes])
        self.buffer = self.buffer[size_bytes:]

    def rotate(self) -> Iterator[str]:
        """Rotate in steps; yields the state of the files after each step."""
        with self.log.open("ab", buffering=0) as file:
            self._write(file, len(self.buffer))
        self.count += 1
        self.limit = self._next_limit()
        self.is_rotating = True
        yield from ROTATIONS[self.mode](self.log, self.keep, self.count)
        self.is_rotating = False

    def finish(self) -> None:
        """Finish a rotation that has begun."""
        for _ in self.steps:
            pass

    def close(self) -> None:
        self.finish()
        with self.log.open("ab", buffering=0) as file:
            self._write(file, len(self.buffer))

    def _next_limit(self) -> int:
        return self.random.randint(self.size_bytes // 2, self.size_bytes * 3 // 2)

    def _text(self) -> bytes:
        """The next event, followed by lines at level INFO."""
        text = event(self.number)
        at = text[: text.index(" WARN")]
        self.number += 1
        counts = (self.random.randrange(10**9) for _ in range(self.random.randint(0, 80)))
        return (text + "".join(NOISE.format(at, n, n % 64) for n in counts)).encode()


def readable(folder: Path) -> Counter[int]:
    """The number of occurrences of each event number in the files of the folder."""
    found: Counter[int] = Counter()
    for path in folder.iterdir():
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        found.update(int(match[1]) for match in HEADER.finditer(data.decode()))
    return found


def main(orders: str) -> None:
    folder, modes, seed, seconds, bytes_per_second, keep = json.loads(orders)
    # A log is rotated about every 1.5 seconds.
    size_bytes = 3 * bytes_per_second // 2
    writers = [
        Writer(Path(folder, mode), mode, seed, number * NUMBERS, size_bytes, keep)
        for number, mode in enumerate(modes)
    ]
    began = time.monotonic()
    while (passed := time.monotonic() - began) < seconds:
        for writer in writers:
            writer.work(int(passed * bytes_per_second))
        time.sleep(TICK_SECONDS)
    for writer in writers:
        writer.close()
    print(json.dumps({writer.mode: [writer.first, writer.number] for writer in writers}))


if __name__ == "__main__":
    main(sys.argv[1])
