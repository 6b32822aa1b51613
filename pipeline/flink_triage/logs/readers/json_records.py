"""Reads JSON records that start with their timestamp, without parsing most of them.

Such a file has a header shape (``{"@timestamp":"9999-99-99T99:99:99.999Z"``) and is read in blocks
like plain text. A record is plain if it has a message and a level in ``QUIET``, but no stack trace
and no escaped characters. A plain record on one line, within the size limits, is parsed only if its
bytes contain a literal. All other records are parsed. Repeated records may be counted instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from flink_triage.logs.layouts.headers import Header
from flink_triage.logs.layouts.json_lines import (
    LEVEL_KEYS,
    MESSAGE_KEYS,
    STACK_KEYS,
    parse_json_line,
)
from flink_triage.logs.readers.block_arrays import WholeEvents
from flink_triage.logs.readers.event_builder import ShapedEvents
from flink_triage.logs.readers.small_block_reader import QUIET
from flink_triage.logs.text.decode import clean
from flink_triage.logs.text.hyperscan_databases import database_of


class JsonEvents(ShapedEvents):
    """Builds the events of a file that contains JSON records."""

    def _parts(self, text: str, line: bytes, rest: bytes) -> tuple[Header, bytes]:
        header = parse_json_line(text, self._timezone)
        if header is None:
            # A malformed record is kept as text.
            stated_at = self.time_of(line[self._time_start :])
            return Header(self.shape.layout, stated_at, None, None, None, text), rest
        below = header.stack
        if below is None:
            message, _, below = header.message.partition("\n")
            header = replace(header, message=message)
        encoded = clean(below).encode("utf-8", "replace")
        return header, b"\n".join(filter(None, (encoded, rest))).rstrip()

    def _has_literal(self, data: bytes, header: Header) -> bool:
        # Characters that are escaped in the record may be part of a literal in the parsed text.
        return self._finder.contains(data) or (
            b"\\" in data and self._finder.contains(header.message.encode("utf-8", "replace"))
        )


def _any_of(keys: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(set(keys))))


def _nested(keys: Sequence[str]) -> str:
    """The last parts of dotted keys, which are the keys in nested objects."""
    return _any_of(key.rpartition(".")[2] for key in keys)


_LEVELS, _MESSAGES = _any_of(LEVEL_KEYS), _any_of(MESSAGE_KEYS)
_LEVELS_AT, _STACKS_AT = _nested(LEVEL_KEYS), _nested(STACK_KEYS)
# The character before the last part of a key, nested or not.
_KEY = r'["._]'
_PATTERNS = (
    *(rf'"(?:{_LEVELS})" ?: ?"(?i:{level})"' for level in QUIET),
    rf'{_KEY}(?:{_LEVELS_AT})" ?:',
    rf'{_KEY}(?:{_STACKS_AT})" ?: ?(?:"[^"]|[\[{{])',
    rf'"(?:{_MESSAGES})" ?: ?"[^"]',
)
_STATED, _STACK, _MESSAGE = range(len(QUIET), len(_PATTERNS))


def plain_levels(view: WholeEvents, unresolved: int) -> npt.NDArray[np.int64]:
    """An index into ``QUIET`` for each plain record, ``unresolved`` for all other records."""
    found: tuple[list[int], ...] = tuple([] for _ in _PATTERNS)

    def note(pattern: int, _start: int, end: int, *_: object) -> None:
        found[pattern].append(end)

    def counts_of(positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        events = view.bounds.searchsorted(positions, "right") - 1
        return np.bincount(events, minlength=len(view.bounds) - 1)

    data = view.data[: int(view.bounds[-1])]
    database, scratch = _database()
    database.scan(data, match_event_handler=note, scratch=scratch)
    counts = [counts_of(np.asarray(ends, dtype=np.int64) - 1) for ends in found]
    quiet = np.array(counts[:_STATED])
    is_plain = (quiet.sum(axis=0) == 1) & (counts[_STATED] == 1)
    is_plain &= (counts[_STACK] == 0) & (counts[_MESSAGE] > 0)
    backslashes = (np.frombuffer(data, dtype=np.uint8) == ord("\\")).nonzero()[0]
    is_plain &= counts_of(backslashes) == 0
    if not view.begins_with_header:
        is_plain[0] = False
    return np.where(is_plain, quiet.argmax(axis=0), unresolved)


_NUMBER_AS_LEVEL = re.compile(rf'{_KEY}(?:{_LEVELS_AT})" ?: ?[^" ]'.encode())


def is_countable(record: bytes) -> bool:
    """Whether the form of a record determines its text, apart from numbers and IDs.

    This is not the case if the record contains escaped characters or a numeric level.
    """
    return b"\\" not in record and _NUMBER_AS_LEVEL.search(record) is None


@lru_cache(maxsize=1)
def _database() -> tuple[Any, Any]:
    return database_of([pattern.encode() for pattern in _PATTERNS], 0, literal=False)
