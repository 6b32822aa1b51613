"""Named points in a run, at which tests kill the process and the profiler records the time."""

from __future__ import annotations

from collections.abc import Callable


def _do_nothing(name: str, subject: str) -> None:
    pass


# Tests replace this function in the driver and in each Python worker. ``benchmarks.profile``
# replaces it only in the driver.
hook: Callable[[str, str], None] = _do_nothing


def failpoint(name: str, subject: str = "") -> None:
    """Mark that the run reached the point ``name`` while processing ``subject``.

    Does nothing unless ``hook`` has been replaced.
    """
    hook(name, subject)
