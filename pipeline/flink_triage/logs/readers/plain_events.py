"""Finds the plain events of a block, for which only the header matters.

A plain event is a single line without signature or lifecycle literals, without indications of a
stack trace, a task, or a job, without possible secrets, and without characters to replace. All
plain events with the same header are treated alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any

import hyperscan
import numpy as np

from flink_triage.logs.text.block_literals import LiteralFinder
from flink_triage.logs.text.hyperscan_databases import database_of
from flink_triage.logs.text.secret_forms import MAYBE, MAYBE_CASED
from flink_triage.logs.text.trace_lines import TRACE_WORDS

# Indications of a subtask, an ID, characters to clean, or a stack trace.
_TELLING = (
    rb"\([0-9]{1,6}/[0-9]{1,6}\)",
    rb"[0-9a-f]{32}",
    rb"[\x00\x1b\r&\x80-\xff]",
    rb" by:|at[ \t]",
    "|".join(word.replace(".", r"\.") for word in TRACE_WORDS).encode(),
)


def plain_among(events: Sequence[bytes], finder: LiteralFinder) -> list[bool]:
    """Whether each event is plain, regardless of its number of lines."""
    together = b"".join(events)
    ends: list[int] = []
    finder.ends(together, ends)

    def note(_id: int, _start: int, end: int, *_: object) -> None:
        ends.append(end)

    database, scratch = _database()
    # A match across the end of an event is a false positive, which at worst marks a plain event as
    # not plain.
    database.scan(together, match_event_handler=note, scratch=scratch)
    is_plain = np.ones(len(events), dtype=np.bool_)
    bounds = list(accumulate(map(len, events)))
    is_plain[np.searchsorted(bounds, np.asarray(ends, dtype=np.int64) - 1, side="right")] = False
    plain: list[bool] = is_plain.tolist()
    return plain


@lru_cache(maxsize=1)
def _database() -> tuple[Any, Any]:
    cased = (*MAYBE_CASED, *_TELLING)
    flags = [hyperscan.HS_FLAG_CASELESS] * len(MAYBE) + [0] * len(cased)
    return database_of([*MAYBE, *cased], flags, literal=False)
