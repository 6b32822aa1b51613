"""Calls functions of ``tasks`` on many items, in this process or in a pool of processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar

from flink_triage.local.tasks import SharedObjects
from flink_triage.run_options import Options
from flink_triage.signatures import SignaturePack

T = TypeVar("T")
R = TypeVar("R")


class Mapper(Protocol):
    """Calls a module-level function on each item; yields (index, result) as calls complete."""

    def __call__(
        self, function: Callable[[SharedObjects, T], R], items: Sequence[T], /
    ) -> Iterator[tuple[int, R]]: ...


_SHARED: SharedObjects | None = None


@contextmanager
def mapper(shared: SharedObjects, workers: int, *, is_remote: bool) -> Iterator[Mapper]:
    """A mapper that uses ``workers`` processes, or this process if ``workers`` is 1.

    Each process of the pool creates its own ``SharedObjects``, with the pack and options of
    ``shared``. Items are started in the given order.
    """
    if workers == 1:

        def here(
            function: Callable[[SharedObjects, T], R], items: Sequence[T], /
        ) -> Iterator[tuple[int, R]]:
            return ((index, function(shared, item)) for index, item in enumerate(items))

        yield here
        return
    # The clients of object stores use threads, which do not exist in a forked process.
    is_forked = os.name != "nt" and not is_remote
    context = multiprocessing.get_context("fork" if is_forked else "spawn")
    with _default_sigterm(), _blocked_sigint():
        pool = context.Pool(workers, _start, (shared.pack, shared.options))
    with pool:

        def there(
            function: Callable[[SharedObjects, T], R], items: Sequence[T], /
        ) -> Iterator[tuple[int, R]]:
            tasks = [(function, index, item) for index, item in enumerate(items)]
            return pool.imap_unordered(_call, tasks)

        yield there
        # Leaving the pool's context would terminate its processes. After ``close``, they exit by
        # themselves.
        pool.close()
        pool.join()


@contextmanager
def _default_sigterm() -> Iterator[None]:
    """Restore the default action of SIGTERM while the pool forks its processes.

    With the handler of the parent process, a signal that arrives immediately after the fork is
    lost. The pool would then wait forever for the process to end.
    """
    handler = signal.getsignal(signal.SIGTERM)
    if threading.current_thread() is not threading.main_thread() or handler is None:
        yield
        return
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)


@contextmanager
def _blocked_sigint() -> Iterator[None]:
    """Block SIGINT in the processes and threads that are started here.

    On Ctrl-C, the terminal sends SIGINT to every process. Only the parent process handles it, and
    terminates the others.
    """
    if os.name == "nt":
        yield
        return
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _start(pack: SignaturePack, options: Options) -> None:
    global _SHARED
    _SHARED = SharedObjects(pack, options)


def _call(task: tuple[Callable[[SharedObjects, T], R], int, T]) -> tuple[int, R]:
    function, index, item = task
    assert _SHARED is not None
    return index, function(_SHARED, item)
