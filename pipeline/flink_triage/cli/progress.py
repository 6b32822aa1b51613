"""Shows progress on stderr, if it is a terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from flink_triage.settings import MIB

# More frequent updates are not readable.
_SECONDS_BETWEEN = 0.2
_STAGE_COLUMNS = len("scan 100 %")
# Shorter than the usual width of a terminal, so that the line does not wrap.
_COLUMNS = 60


class ProgressLine:
    """One line that is rewritten in place; not printed without a terminal, or with ``--quiet``.

    Call it with the number of bytes read so far and the total.
    """

    def __init__(self, is_quiet: bool) -> None:
        self._is_shown = not is_quiet and sys.stderr.isatty()
        self._started = time.monotonic()
        self._drawn = 0.0

    def __enter__(self) -> ProgressLine:
        return self

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        is_last = done >= total
        if not self._is_shown or (now - self._drawn < _SECONDS_BETWEEN and not is_last):
            return
        self._drawn = now
        rate = done / MIB / max(now - self._started, 1e-6)
        share = 100 * done // max(total, 1)
        read = f"{done / MIB:,.1f} of {total / MIB:,.1f} MiB  {rate:,.0f} MiB/s"
        stage = "diagnose" if is_last else f"scan {share:3d} %"
        sys.stderr.write(f"\r{stage:<{_STAGE_COLUMNS}}  {read}".ljust(_COLUMNS))
        sys.stderr.flush()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._is_shown and self._drawn:
            sys.stderr.write("\r" + " " * _COLUMNS + "\r")
            sys.stderr.flush()
