"""Named points of a run: for the tests that kill it there; without an order nothing happens.

The variable names a file of one line, ``point count group``.  The process that reaches the point
for the count-th time kills, with SIGKILL, the process group and its own.  A file can be written
again while the process lives, so that one start of the JVM serves a recovery and the next kill.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter

VARIABLE = "FLINK_TRIAGE_KILL_ORDER"
_reached: Counter[tuple[str, str]] = Counter()


def reached(point: str) -> None:
    """Say that the run has come to ``point``."""
    path = os.environ.get(VARIABLE)
    if path is not None:
        _obey(path, point)


def _obey(path: str, point: str) -> None:
    try:
        with open(path, encoding="ascii") as file:
            order = file.read()
    except FileNotFoundError:
        return
    _reached[order, point] += 1
    # An empty file asks for nothing but is counted: it lists the points of a run, and when.
    with open(f"{path}.reached", "a", encoding="ascii") as trail:
        trail.write(f"{time.time():.3f} {point}\n")
    wanted = order.split()
    if wanted and wanted[0] == point and int(wanted[1]) == _reached[order, point]:
        # Python workers of Spark are in a group of their own.
        os.killpg(int(wanted[2]), signal.SIGKILL)
        os.killpg(os.getpgid(0), signal.SIGKILL)
