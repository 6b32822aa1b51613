"""Named places in a run where tests interfere, for example by killing the process."""

from __future__ import annotations

from collections.abc import Callable


def _do_nothing(name: str, subject: str) -> None:
    pass


# Tests assign another function, in the driver and in each Python worker.
hook: Callable[[str, str], None] = _do_nothing


def failpoint(name: str, subject: str = "") -> None:
    """The run has reached the place ``name``, with ``subject`` in hand.

    Does nothing unless a test has set ``hook``.
    """
    hook(name, subject)
