"""Tests that the time for reading a hostile log grows linearly with the size of the log.

``python -m tests.fuzz.growth`` reads a log of each family at four sizes, and prints the ratio of
the times for each doubling. A family with a ratio above ``WORST_RATIO`` in two measurements fails.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path

from flink_triage.settings import Settings
from tests.fuzz.core import Core

# With linear growth, the ratio is about 2, with some variation due to caches and clocks; with
# quadratic growth, it is 4.
WORST_RATIO = 3.2
SMALLEST_BYTES = 16 * 1024
DOUBLINGS = 3
# Shorter times mainly depend on the resolution of the clock.
FLOOR_SECONDS = 0.02

HEADER = b"2026-11-21 06:47:23,468 ERROR org.apache.flink.Foo [] - "
_FRAME = b"\tat com.acme.Job$Inner.lambda$run$%d(Job.java:%d) ~[job.jar:?]\n"

Family = Callable[[int], bytes]


def filled(piece: bytes, head: bytes = b"", tail: bytes = b"\n") -> Family:
    """``head``, then ``piece`` repeated up to the size, then ``tail``."""
    return lambda size: head + piece * (size // len(piece)) + tail


def numbered(make: Callable[[int], bytes], head: bytes = b"") -> Family:
    """``head``, then the pieces that ``make`` returns for consecutive numbers, up to the size."""

    def family(size: int) -> bytes:
        pieces, length, number = [head], len(head), 0
        while length < size:
            pieces.append(make(number))
            length += len(pieces[-1])
            number += 1
        return b"".join(pieces) + b"\n"

    return family


def _json_event(number: int) -> bytes:
    message = f"{number} " + "x " * 40
    return json.dumps({"@timestamp": "2026-11-21T06:00:00Z", "message": message}).encode() + b"\n"


FAMILIES: Mapping[str, Family] = {
    "one line of letters": filled(b"a"),
    "one line of dots": filled(b"a."),
    "one line of dollars": filled(b"a$"),
    "one header, one long word": filled(b"x", HEADER),
    "one header, many colons": filled(b": ", HEADER),
    "one header, many brackets": filled(b"[", HEADER),
    "nested JSON braces": filled(b"{"),
    "JSON string that never ends": filled(b"\\", b'{"message": "'),
    "tabs": filled(b"\t"),
    "blank lines": filled(b"\n"),
    "carriage returns": filled(b"\r"),
    "NULs": filled(b"\0", b"x\n"),
    "escape codes": filled(b"\x1b[", HEADER),
    "entities": filled(b"&lt;", HEADER),
    "invalid UTF-8": filled(b"\xff", HEADER),
    "headers only": filled(HEADER + b"\n"),
    "timestamps only": filled(b"2026-11-21 06:47:23,468 "),
    "times of all lines alike, no level": filled(b"2026-11-21 06:47:23,468\n"),
    "frames without end": numbered(lambda n: _FRAME % (n, n), HEADER + b"x\njava.lang.E: y\n"),
    "one frame again and again": filled(_FRAME % (1, 1), HEADER + b"x\njava.lang.Exception\n"),
    "two frames in turn": filled(_FRAME % (1, 1) + _FRAME % (2, 2), HEADER + b"x\n"),
    "frames on one line": filled(b" at a.b.C.d(E.java:1)", HEADER + b"java.lang.Exception: x"),
    "open frames": filled(b"at a.b.C.d(", HEADER),
    "open frames on lines": filled(b"at a.b.C.d(\n", HEADER),
    "causes": numbered(lambda n: b"Caused by: java.lang.Exception: %d\n" % n, HEADER + b"x\n"),
    "causes on one line": filled(b" Caused by: java.lang.Exception: x", HEADER),
    "suppressed, ever deeper": numbered(
        lambda n: b"\t" * min(n, 60) + b"Suppressed: java.lang.Exception: %d\n" % n, HEADER + b"x\n"
    ),
    "blank lines between causes": filled(b"\n\nCaused by: java.lang.E: x\n", HEADER + b"x\n"),
    "quotes": filled(b"> ", HEADER),
    "wrapped tokens": filled(b"at\norg.apache\n.flink.Foo\n", HEADER + b"x\n"),
    "Python tracebacks": filled(b"Traceback (most recent call last):\n", HEADER + b"x\n"),
    "Python frames": filled(b'  File "a.py", line 1, in f\n    f()\n', HEADER + b"Traceback\n"),
    "server side": filled(b"<Exception on server side:\njava.lang.E: x\n", HEADER + b"x\n"),
    "CRI pieces": filled(b"2026-11-21T06:47:23.468Z stdout P " + b"x" * 40 + b"\n"),
    "pods": numbered(lambda n: b"[pod/a-%d/main] %sm\n" % (n, HEADER)),
    "JSON events": numbered(_json_event),
    "JSON arrays, all of other names": numbered(
        lambda n: b'"pod%d": [{"message": "%s"}],' % (n, HEADER), b'{"all": {'
    ),
    "JSON arrays that say nothing": numbered(lambda n: b'"a%d": [{"b": 1}],' % n, b'{"all": {'),
    "nested JSON arrays": filled(b'{"a": ['),
    "secrets": filled(b"password=x, ", HEADER),
    "secrets that never end": filled(b'password="', HEADER),
    "secrets below their keys": filled(b"password:\n ", HEADER),
    "keys that never end": filled(b"-----BEGIN PRIVATE KEY-----\n", HEADER + b"\n"),
    "URLs": filled(b"://a:b@", HEADER),
    "options": numbered(
        lambda n: (
            b"2026-11-21 06:47:23,468 INFO  org.apache.flink.configuration."
            b"GlobalConfiguration [] - Loading configuration property: a.b%d, x\n" % n
        )
    ),
    "job states": numbered(
        lambda n: (
            b"2026-11-21 06:47:%02d,468 INFO  org.apache.flink.Foo [] - Job a (%032x) switched"
            b" from state RUNNING to FAILED.\n" % (n % 60, n)
        )
    ),
    "exceptions, all different": numbered(
        lambda n: HEADER + b"e\njava.lang.Exception%d: x%d\n\tat a.B%d.c(D.java:1)\n" % (n, n, n)
    ),
}


def seconds_of(core: Core, family: Family, size: int, path: Path) -> float:
    """The lowest CPU time of three readings."""
    path.write_bytes(family(size))
    best = float("inf")
    for _ in range(3):
        core.forget()
        began = time.process_time()
        core.check(path)
        best = min(best, time.process_time() - began)
    return best


def ratios(core: Core, family: Family, path: Path) -> list[float]:
    """The ratio of the time for each size to the time for half the size."""
    sizes = [SMALLEST_BYTES << step for step in range(DOUBLINGS + 1)]
    times = [max(seconds_of(core, family, size, path), FLOOR_SECONDS) for size in sizes]
    return [round(other / one, 2) for one, other in pairwise(times)]


def main() -> int:
    core = Core(Settings())
    bad = []
    with tempfile.TemporaryDirectory() as folder:
        for name, family in FAMILIES.items():
            path = Path(folder) / "grown.log"
            found = ratios(core, family, path)
            if max(found) > WORST_RATIO:
                # A busy machine may have slowed down one measurement.
                found = [min(pair) for pair in zip(found, ratios(core, family, path), strict=True)]
            is_bad = max(found) > WORST_RATIO
            bad += [name] if is_bad else []
            print(f"{'TOO STEEP' if is_bad else 'ok':<10}{name:<42}{found}", flush=True)
    print(f"{len(FAMILIES)} families, {len(bad)} too steep")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
