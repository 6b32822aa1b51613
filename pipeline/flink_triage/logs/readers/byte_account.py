"""Accounts for every byte of a range, and collects its notable events.

Because a range may be a whole file, the notable events are returned in portions during reading.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from flink_triage.logs.routine import Role, Routine, Separator, drop_routine, role_of
from flink_triage.logs.text.redact import Redactions
from flink_triage.model import ByteRange, Event, Quarantined, RangeScan, Volume
from flink_triage.settings import MIB

# These limits bound the memory for one portion: its text, and its parsed traces, which require
# about 25 times as much. The number of events is also limited, because events may be short.
PORTION_BYTES = 4 * MIB
PORTION_EVENTS = 8_192


class Tally:
    """The totals of one range, and the notable events that ``take`` has not yet returned.

    With ``is_whole``, all events form one portion.
    """

    def __init__(self, *, is_whole: bool = False) -> None:
        self._is_whole = is_whole
        self._waiting: list[Event] = []
        self._waiting_bytes = 0
        # The offset of the first accounted byte.
        self.began_at = 0
        self.newline_count = 0
        self.event_bytes = 0
        self.counted_bytes = 0
        self.held_back_bytes = 0
        self.quarantined_bytes = 0
        self.redactions: Counter[str] = Counter()
        self.decode_errors = 0
        self.truncated = 0
        self.problems: list[Quarantined] = []
        # The offsets of waiting events between two equal events of the same minute.
        self.inner_offsets: set[int] = set()
        # The error that stopped the reading, if any.
        self.read_error: OSError | None = None
        self._volumes: dict[tuple[str | None, datetime | None], list[int]] = {}

    def count(
        self, level: str | None, minute: datetime | None, lines: int, size: int, events: int
    ) -> None:
        """Add to the volume of a level and minute, but not to the byte totals."""
        volume = self._volumes.get((level, minute))
        if volume is None:
            volume = self._volumes[(level, minute)] = [0, 0, 0]
        volume[0] += lines
        volume[1] += size
        volume[2] += events

    def keep(self, event: Event, redactions: Redactions, decode_errors: int) -> None:
        self._waiting.append(event)
        self._waiting_bytes += len(event.message) + len(event.continuation or "")
        self.event_bytes += event.size_bytes
        if redactions:
            self.redactions.update(redactions)
        self.decode_errors += decode_errors
        self.truncated += event.is_truncated

    def keep_counted(self, size: int) -> None:
        """Move ``size`` bytes from the counted to the event bytes.

        The bytes are those of notable events that were counted without building them.
        """
        self.event_bytes += size
        self.counted_bytes -= size

    @property
    def separators(self) -> list[tuple[int, Separator]]:
        """Offset and role of the waiting events that separate completed checkpoints."""
        roles = ((event.offset, self._role_of(event)) for event in self._waiting)
        return [(offset, role) for offset, role in roles if isinstance(role, Separator)]

    def _role_of(self, event: Event) -> Role:
        """`role_of` the event; others separate unless they are between two equal events.

        Which of them are the first and the last of their kind is known when events are folded.
        """
        role = role_of(event)
        if isinstance(role, Routine) or event.offset in self.inner_offsets:
            return role
        return role or Separator(None)

    @property
    def accounted_bytes(self) -> int:
        return self.event_bytes + self.counted_bytes + self.quarantined_bytes + self.held_back_bytes

    @property
    def is_portion(self) -> bool:
        """Whether enough events are waiting to form a portion."""
        is_much = self._waiting_bytes >= PORTION_BYTES or len(self._waiting) >= PORTION_EVENTS
        return is_much and not self._is_whole

    def take(self) -> list[Event]:
        """Return the waiting events in file order, without those that ``drop_routine`` drops."""
        waiting = sorted(self._waiting, key=lambda event: event.offset)
        self._waiting, self._waiting_bytes = [], 0
        events = drop_routine(waiting, self._role_of)
        self.inner_offsets = set()
        if len(events) < len(waiting):
            size = sum(event.size_bytes for event in waiting)
            size -= sum(event.size_bytes for event in events)
            self.event_bytes -= size
            self.counted_bytes += size
        return events

    def quarantine_rest(self, byte_range: ByteRange, reason: str) -> None:
        """Quarantine the bytes of the range that are not accounted for."""
        profile = byte_range.profile
        end = profile.size_bytes if byte_range.end is None else byte_range.end
        left = end - byte_range.start - self.accounted_bytes
        self.quarantined_bytes += max(left, 0)
        self.problems.append(Quarantined(profile.path, reason))

    def finish(self, byte_range: ByteRange, events: Sequence[Event] = ()) -> RangeScan:
        keys = sorted(
            self._volumes, key=lambda key: (key[1] is not None, key[1] or 0, key[0] or "")
        )
        return RangeScan(
            range=byte_range,
            events=tuple(events),
            newline_count=self.newline_count,
            event_bytes=self.event_bytes,
            counted_bytes=self.counted_bytes,
            quarantined_bytes=self.quarantined_bytes,
            held_back_bytes=self.held_back_bytes,
            volumes=tuple(
                Volume(level, minute, *self._volumes[level, minute]) for level, minute in keys
            ),
            redactions_by_kind=dict(sorted(self.redactions.items())),
            decode_errors=self.decode_errors,
            truncated=self.truncated,
            problems=tuple(self.problems),
        )
