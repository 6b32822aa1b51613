"""The account of what a range holds: every event is added once, notable or not."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from flink_triage.model import ByteRange, Event, Quarantined, RangeScan, Volume

from .routine import drop_routine, routine_key


class Tally:
    """Adds up one range; ``finish`` gives the ``RangeScan``."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.newline_count = 0
        self.event_bytes = 0
        self.counted_bytes = 0
        self.held_back_bytes = 0
        self.quarantined_bytes = 0
        self.redactions = 0
        self.decode_errors = 0
        self.truncated = 0
        self._volumes: dict[tuple[str | None, datetime | None], list[int]] = {}

    def count(
        self, level: str | None, minute: datetime | None, lines: int, size: int, events: int
    ) -> None:
        """Adds to the volume of a level and minute; not to the sums of bytes."""
        volume = self._volumes.get((level, minute))
        if volume is None:
            volume = self._volumes[(level, minute)] = [0, 0, 0]
        volume[0] += lines
        volume[1] += size
        volume[2] += events

    def keep(self, event: Event, redactions: int, decode_errors: int) -> None:
        self.events.append(event)
        self.event_bytes += event.size_bytes
        self.redactions += redactions
        self.decode_errors += decode_errors
        self.truncated += event.is_truncated

    @property
    def accounted_bytes(self) -> int:
        return self.event_bytes + self.counted_bytes + self.quarantined_bytes + self.held_back_bytes

    def finish(self, byte_range: ByteRange, problems: Sequence[Quarantined] = ()) -> RangeScan:
        self.events.sort(key=lambda event: event.offset)
        events = drop_routine(self.events, routine_key)
        routine_bytes = 0
        if len(events) < len(self.events):
            routine_bytes = self.event_bytes - sum(event.size_bytes for event in events)
        keys = sorted(
            self._volumes, key=lambda key: (key[1] is not None, key[1] or 0, key[0] or "")
        )
        return RangeScan(
            range=byte_range,
            events=tuple(events),
            newline_count=self.newline_count,
            event_bytes=self.event_bytes - routine_bytes,
            counted_bytes=self.counted_bytes + routine_bytes,
            quarantined_bytes=self.quarantined_bytes,
            held_back_bytes=self.held_back_bytes,
            volumes=tuple(
                Volume(level, minute, *self._volumes[level, minute]) for level, minute in keys
            ),
            redactions=self.redactions,
            decode_errors=self.decode_errors,
            truncated=self.truncated,
            problems=tuple(problems),
        )
