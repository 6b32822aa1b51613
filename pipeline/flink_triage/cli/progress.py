"""How far the work is, on stderr; silent when nobody watches."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from ..settings import MIB

# Redrawing more often than this tells a person nothing.
_SECONDS_BETWEEN = 0.2


class ProgressLine:
    """One line, rewritten in place on a terminal and absent elsewhere."""

    def __init__(self, is_quiet: bool) -> None:
        self._is_shown = not is_quiet and sys.stderr.isatty()
        self._started = time.monotonic()
        self._drawn = 0.0

    def __enter__(self) -> ProgressLine:
        return self

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if not self._is_shown or now - self._drawn < _SECONDS_BETWEEN:
            return
        self._drawn = now
        rate = done / MIB / max(now - self._started, 1e-6)
        share = 100 * done // max(total, 1)
        sys.stderr.write(f"\rscan {share:3d} %  {done // MIB} MiB  {rate:,.0f} MiB/s ")
        sys.stderr.flush()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._is_shown and self._drawn:
            sys.stderr.write("\r" + " " * 60 + "\r")
            sys.stderr.flush()
