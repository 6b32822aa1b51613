"""Runs the diagnosis of one deployment with limits on CPU time and memory.

A deployment that cannot be diagnosed does not stop the others. A CPU timer checks the limits. The
timer requires the main thread, which process pools and Spark workers use; in other threads and on
Windows, only raised exceptions are caught. Memory is limited only on systems with ``/proc``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import TypeVar

from flink_triage.model.log_events import UNDIAGNOSED
from flink_triage.settings import MIB, Settings

T = TypeVar("T")

# A process can allocate about 200 MB in this time.
_TICK_SECONDS = 0.1
_MAX_MESSAGE = 200


@dataclass(frozen=True, slots=True)
class Undiagnosed:
    reason: str


class _TooMuch(BaseException):
    """A limit is exceeded. Not an ``Exception``, so that the interrupted code does not catch it."""


def guarded(work: Callable[[], T], settings: Settings) -> T | Undiagnosed:
    """The result of ``work``, or an ``Undiagnosed`` with the reason why there is none.

    The reason is an exception that ``work`` raised, or a limit of ``settings`` that it exceeded.
    """
    is_timed = hasattr(signal, "setitimer") and (
        threading.current_thread() is threading.main_thread()
    )
    try:
        if is_timed:
            _start(settings)
        result = work()
        if is_timed:
            _stop()
        return result
    except _TooMuch as error:
        return Undiagnosed(f"{UNDIAGNOSED}{error}")
    except Exception as error:
        return Undiagnosed(f"{UNDIAGNOSED}{_describe_error(error)}")
    finally:
        if is_timed:
            _stop()


def _start(settings: Settings) -> None:
    began, held = time.thread_time(), _resident_bytes()

    def check(_number: int, _frame: FrameType | None) -> None:
        if time.thread_time() - began > settings.max_diagnosis_seconds:
            allowed = f"{settings.max_diagnosis_seconds:g} s of CPU time"
            raise _TooMuch(f"it takes more than {allowed}")
        if _resident_bytes() - held > settings.max_diagnosis_bytes:
            raise _TooMuch(f"it takes more than {settings.max_diagnosis_bytes // MIB} MiB")

    signal.signal(signal.SIGPROF, check)
    signal.setitimer(signal.ITIMER_PROF, _TICK_SECONDS, _TICK_SECONDS)


def _stop() -> None:
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, signal.SIG_IGN)


def _resident_bytes() -> int:
    """Resident memory of the process; 0 on systems without ``/proc``."""
    with contextlib.suppress(OSError):
        descriptor = os.open("/proc/self/statm", os.O_RDONLY)
        try:
            pages = int(os.read(descriptor, 128).split()[1])
        finally:
            os.close(descriptor)
        return pages * os.sysconf("SC_PAGE_SIZE")
    return 0


def _describe_error(error: Exception) -> str:
    """The exception class, its location, and the first characters of its message."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}"
    message = " ".join(str(error).split())[:_MAX_MESSAGE]
    return f"{type(error).__name__} at {where}{': ' if message else ''}{message}"
