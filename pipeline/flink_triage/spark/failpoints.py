"""Named points in a run at which tests can interfere, for example by killing the process."""

from __future__ import annotations

from collections.abc import Callable


def _do_nothing(name: str, subject: str) -> None:
    pass


# Tests replace this, in the driver and in each Python worker.
hook: Callable[[str, str], None] = _do_nothing


def failpoint(name: str, subject: str = "") -> None:
    """Mark that the run reached the point ``name`` while processing ``subject``.

    Does nothing unless a test has set ``hook``.
    """
    hook(name, subject)
