"""What the processes of a run do at its failpoints: append to a trail, and obey an order.

The variable names the file of the order, one line ``point group``.  The process that reaches the
point kills, with SIGKILL, the process group and its own.  The file can be written again while the
process lives, so that one start of the JVM serves a recovery and the next kill; an empty file
orders nothing.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

from flink_triage.spark import failpoints

VARIABLE = "CRASH_ORDER"


def install() -> None:
    """Follow the orders in this process, if the rig started it."""
    if VARIABLE in os.environ:
        failpoints.hook = _obey


def trail_of(order: Path) -> Path:
    """The file that lists the points reached, one per line."""
    return order.with_name(f"{order.name}.reached")


def _obey(point: str) -> None:
    order = Path(os.environ[VARIABLE])
    with trail_of(order).open("a", encoding="ascii") as trail:
        trail.write(f"{point}\n")
    wanted = order.read_text(encoding="ascii").split()
    if wanted and wanted[0] == point:
        # Python workers of Spark are in a group of their own.
        os.killpg(int(wanted[1]), signal.SIGKILL)
        os.killpg(os.getpgid(0), signal.SIGKILL)
