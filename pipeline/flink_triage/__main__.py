"""The entry point of ``flink-triage`` and ``python -m flink_triage``; exits quietly on Ctrl-C.

Before and after the command, SIGINT ends the process immediately, unless it is ignored. A
``KeyboardInterrupt`` inside an import could cause a traceback or a partially initialized module.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import NoReturn

from flink_triage import __version__, exit_codes

_RETRY_SECONDS = 0.01


def main() -> int:
    """Run the command on ``sys.argv``; return its exit code."""
    if sys.argv[1:] == ["--version"]:
        # Importing the other modules of the command takes a second.
        print(f"flink-triage {__version__}")
        return 0
    handler = signal.getsignal(signal.SIGINT)
    # A shell starts background processes with SIGINT ignored. In that case, it remains ignored.
    is_interruptible = handler is signal.default_int_handler
    if is_interruptible:
        signal.signal(signal.SIGINT, _end)
    from flink_triage.cli import main as command

    try:
        if is_interruptible:
            signal.signal(signal.SIGALRM, _interrupt)
            signal.signal(signal.SIGINT, _interrupt)
        code = command()
        if is_interruptible:
            # Only the interpreter shutdown remains.
            signal.signal(signal.SIGINT, _end)
            signal.signal(signal.SIGALRM, _end)
    except KeyboardInterrupt:
        _end()
    return code


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise ``KeyboardInterrupt``; inside ``__del__``, where Python ignores it, retry later."""
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            signal.setitimer(signal.ITIMER_REAL, _RETRY_SECONDS)
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def _end(*_: object) -> NoReturn:
    os._exit(exit_codes.INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main())
