"""Records the failpoints that the processes of a run reach, and kills or pauses a process there.

The environment variable ``CRASH_ORDER`` contains the path of the order file. With the order ``point
kill GROUP``, the process that reaches the point sends SIGKILL to process group ``GROUP`` and to its
own group. With ``point pause``, the first process that reaches the point renames the file and waits
until the renamed file is removed, at most one minute; other processes continue. The file can be
rewritten while the process is running, so that one JVM serves many orders; an empty file contains
no order.
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
# After this time, a paused process continues, because the rig may have terminated.
MAX_PAUSE_SECONDS = 60


def install() -> None:
    """Follow the orders in this process if the environment variable is set."""
    if VARIABLE in os.environ:
        failpoints.hook = _obey


def trail_of(order: Path) -> Path:
    """The file that lists the points reached, one per line."""
    return order.with_name(f"{order.name}.reached")


def taken(order: Path) -> Path:
    """The path to which the pausing process renames the order."""
    return order.with_name(f"{order.name}.taken")


def _obey(point: str, _subject: str) -> None:
    order = Path(os.environ[VARIABLE])
    with trail_of(order).open("a", encoding="ascii") as trail:
        trail.write(f"{point}\n")
    # Another process may have renamed the file.
    with contextlib.suppress(FileNotFoundError):
        wanted, *action = order.read_text(encoding="ascii").split() or [""]
        if wanted != point:
            return
        if action[0] == "pause":
            order.rename(taken(order))
            _wait(taken(order))
        else:
            # Spark's Python workers are in a separate process group.
            os.killpg(int(action[1]), signal.SIGKILL)
            os.killpg(os.getpgid(0), signal.SIGKILL)


def _wait(order: Path) -> None:
    give_up_at = time.monotonic() + MAX_PAUSE_SECONDS
    while order.exists() and time.monotonic() < give_up_at:
        time.sleep(POLL_SECONDS)
