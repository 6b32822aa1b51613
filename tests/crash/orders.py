"""What the processes of a run do at its failpoints: append to a trail, and obey an order.

The variable names the file of the order.  At ``point kill GROUP`` the process that reaches the
point kills, with SIGKILL, the process group and its own.  At ``point pause`` the first process that
reaches the point renames the file and waits until it is removed; others go on.  The file can be
written again while the process lives, so that one start of the JVM serves many orders; an empty
file orders nothing.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from flink_triage.spark import failpoints

VARIABLE = "CRASH_ORDER"
POLL_SECONDS = 0.02
# The rig may have died.
MAX_PAUSE_SECONDS = 60


def install() -> None:
    """Follow the orders in this process, if the rig started it."""
    if VARIABLE in os.environ:
        failpoints.hook = _obey


def trail_of(order: Path) -> Path:
    """The file that lists the points reached, one per line."""
    return order.with_name(f"{order.name}.reached")


def taken(order: Path) -> Path:
    """What an order to pause is renamed to by the process that pauses."""
    return order.with_name(f"{order.name}.taken")


def _obey(point: str, _subject: str) -> None:
    order = Path(os.environ[VARIABLE])
    with trail_of(order).open("a", encoding="ascii") as trail:
        trail.write(f"{point}\n")
    # Another process may have taken the order.
    with contextlib.suppress(FileNotFoundError):
        wanted, *action = order.read_text(encoding="ascii").split() or [""]
        if wanted != point:
            return
        if action[0] == "pause":
            order.rename(taken(order))
            _wait(taken(order))
        else:
            # Python workers of Spark are in a group of their own.
            os.killpg(int(action[1]), signal.SIGKILL)
            os.killpg(os.getpgid(0), signal.SIGKILL)


def _wait(order: Path) -> None:
    give_up_at = time.monotonic() + MAX_PAUSE_SECONDS
    while order.exists() and time.monotonic() < give_up_at:
        time.sleep(POLL_SECONDS)
