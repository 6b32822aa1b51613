"""Counts repeated notable events by their bytes, without building each event.

A notable event is looked up by its form (see ``event_forms``), or by its header if it is plain. If
two parsed events of a form have the same properties, these apply to all events of the form, except
for details such as the job and subtask, whose columns are known. A kind consists of the events with
the same form, period, and details. Of each kind that may be counted, only the first few events of a
portion, its last event, and events out of order are built.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from flink_triage.fold_grains import Grain, period_of
from flink_triage.logs.readers.event_builder import ShapedEvents
from flink_triage.logs.readers.event_form_details import (
    SensitiveDigits,
    Span,
    constant_of,
    has_interchangeable_digits,
    places_of,
)
from flink_triage.logs.readers.learned_form import LearnedForm
from flink_triage.logs.readers.quoted_text import QuotedKey, QuotedText
from flink_triage.model import Observation

# Maximum size of a counted event: larger events are rare, and a form is as large as its event.
MAX_EVENT_BYTES = 16 * 1024
# Limits: forms per context and header shape, such pairs, and forms met before they are learned.
_MAX_FORMS = 4096
_MAX_TABLES = 16
_MAX_MET = 65_536
# Learning a form takes longer than reading an event, so it starts only at this occurrence of the
# form.
MET_FROM = 8
_NO_PERIOD, _ALL_TIME = -1, -2
# The number of a form, the period, and the details that distinguish kinds.
Kind = tuple[Hashable, ...]
MINUTE_BYTES = len("2026-11-21 06:47")
# The highest first digit of a valid second.
LAST_TEN_SECONDS = ord("5")


@dataclass(frozen=True, slots=True)
class Counted:
    """The counted events that one built event represents.

    ``subtasks`` are the 1-based subtasks in these events.
    """

    events: int
    first_logged_at: datetime | None
    last_logged_at: datetime | None
    subtasks: frozenset[int]


class _Group:
    """The events of one kind in a portion.

    ``built`` contains the offsets of the first events, which are built immediately; the last of
    these represents the counted ``events``. ``first``, ``until``, and ``latest`` are the timestamps
    of the first and last counted event, and of the last event. ``last`` is built when the portion
    ends.
    """

    __slots__ = (
        "built",
        "events",
        "first",
        "form",
        "last",
        "latest",
        "subtasks",
        "until",
    )

    def __init__(self, form: LearnedForm) -> None:
        self.form = form
        self.subtasks: set[bytes] = set()
        self.built: list[int] = []
        self.events = 0
        self.first = self.until = self.latest = b""
        self.last: tuple[int, int, bytes] | None = None


class Repeats:
    """The forms that this Python process has learned, and the groups of the current portion.

    ``known_events`` is the number of events whose form is known and counted; ``other_events`` is
    the number of other notable events. ``load`` returns the objects that find sensitive digits and
    quoted text. It is called on first use, because it takes 30 ms.
    """

    def __init__(self, load: Callable[[], tuple[SensitiveDigits, QuotedText]]) -> None:
        self._load = load
        self._tables: dict[Hashable, dict[bytes, LearnedForm]] = {}
        self._forms: dict[bytes, LearnedForm] = {}
        self._made = 0
        self._met: dict[int, int] = {}
        self._pending: dict[int, tuple[bytes, bytes, LearnedForm]] = {}
        self._groups: dict[Kind, _Group] = {}
        self.known_events = 0
        self.other_events = 0
        self._counted_bytes = 0

    @cached_property
    def _effects(self) -> tuple[SensitiveDigits, QuotedText]:
        return self._load()

    @property
    def quoted_text(self) -> QuotedText:
        return self._effects[1]

    @property
    def _sensitive_digits(self) -> SensitiveDigits:
        return self._effects[0]

    def forget_range(self) -> None:
        """Discard the state of the range; learned forms are kept."""
        self._pending, self._groups, self._counted_bytes = {}, {}, 0

    def begin(self, build: ShapedEvents, grain: Grain, context: Hashable) -> None:
        """Prepare for a range of a file whose shape has ``time_columns``.

        ``context`` is everything that affects an event's content, apart from its bytes.
        """
        self.forget_range()
        self._build, self._grain = build, grain
        if len(self._tables) >= _MAX_TABLES:
            self._tables.clear()
        self._forms = self._tables.setdefault((context, build.shape.name), {})
        for form in self._forms.values():
            form.adapt_to(grain)
        self._periods: dict[bytes, Hashable] = {}
        self._header_bytes = len(build.shape.columns)
        assert build.time_columns is not None
        second, _, after = build.time_columns
        self._minute_bytes = second, second + MINUTE_BYTES
        self._time_bytes = second, after

    def take(self, key: bytes, data: bytes, offset: int, line: int) -> LearnedForm | None:
        """The form of an event that is counted or built later; ``None`` if it must be built now."""
        form = self._counted_form(key, data)
        kind = self._kind_of(form, data) if form is not None else None
        if form is None or kind is None:
            return None
        self.known_events += 1
        group = self._group_of(kind, form)
        at = self._time_in(data)
        if at < group.latest:
            return None
        group.latest = at
        if len(group.built) < form.keep - 1:
            group.built.append(offset)
            return None
        self._append(group, [data], offset, line)
        return form

    def _counted_form(self, key: bytes, data: bytes) -> LearnedForm | None:
        form = self._forms.get(key)
        if form is not None and form.spans:
            form = self._forms.get(_variant(key, form, data))
        return form if form is not None and form.is_counted else None

    def _kind_of(self, form: LearnedForm, data: bytes) -> Kind | None:
        """The kind of an event: its form, period, and details; ``None`` if it must be built."""
        start, end = self._minute_bytes
        minute = data[start:end]
        period = self._periods.get(minute)
        if period is None:
            period = self._periods[minute] = self._period_of(data, minute)
        # The minute does not show whether the second is valid.
        if period == _NO_PERIOD or data[end + 1] > LAST_TEN_SECONDS:
            return None
        if len({data[start:end] for start, end in form.subtask}) > 1:
            return None
        return (form.number, period, *[data[a:b] for a, b in form.columns])

    def _group_of(self, kind: Kind, form: LearnedForm) -> _Group:
        group = self._groups.get(kind)
        if group is None:
            group = self._groups[kind] = _Group(form)
        return group

    def _time_in(self, data: bytes) -> bytes:
        start, end = self._time_bytes
        return data[start:end]

    def _append(self, group: _Group, events: Sequence[bytes], offset: int, line: int) -> None:
        """Append events to a group: count them and the previous last event, except the new last."""
        counted = [group.last[2], *events[:-1]] if group.last is not None else events[:-1]
        if counted:
            self._counted_bytes += sum(map(len, counted))
            if not group.events:
                group.first = self._time_in(counted[0])
            group.until = self._time_in(counted[-1])
            group.events += len(counted)
            for start, end in group.form.subtask[:1]:
                group.subtasks.update(data[start:end] for data in counted)
        group.last = offset, line, events[-1]
        group.latest = self._time_in(events[-1])

    def kind_of_header(self, key: bytes, data: bytes) -> Kind | None:
        """The kind of all events with the header ``key`` in the minute of ``data``.

        ``None`` if they must be taken individually.
        """
        form = self._counted_form(key, data)
        if form is None or any(end > len(key) for _, end in (*form.columns, *form.subtask)):
            return None
        kind = self._kind_of(form, data)
        if kind is not None:
            self._group_of(kind, form)
        return kind

    def to_build(self, kind: Kind) -> int:
        """The number of events of the kind to build before events are counted in this portion.

        ``kind`` is a result of ``kind_of_header`` in this portion.
        """
        group = self._groups[kind]
        return group.form.keep - 1 - len(group.built)

    def take_run(
        self, kind: Kind, events: Sequence[bytes], offset: int, line: int
    ) -> LearnedForm | None:
        """Count events of one kind, and return their form; the last one is built later.

        The events are in file order; ``offset`` and ``line`` are those of the last one. ``None`` if
        they must be taken individually.
        """
        group = self._groups[kind]
        if not group.form.is_counted or self.to_build(kind):
            return None
        if self._time_in(events[0]) < group.latest:
            return None
        self.known_events += len(events)
        self._append(group, events, offset, line)
        return group.form

    def lasts(self) -> list[tuple[int, int, bytes]]:
        """Offset, line, and bytes of the events to build when the portion ends."""
        return sorted(group.last for group in self._groups.values() if group.last is not None)

    @property
    def inner_offsets(self) -> set[int]:
        """The offsets of built events that are neither the first nor the last of their kind."""
        inner: set[int] = set()
        for group in self._groups.values():
            inner.update(group.built[1:] if group.last is not None else group.built[1:-1])
        return inner

    def take_counted_bytes(self) -> int:
        """Return the total size of the events counted since the previous call."""
        size, self._counted_bytes = self._counted_bytes, 0
        return size

    def take_counts(self) -> dict[int, Counted]:
        """Return the counted events, by the offset of the built event that represents them.

        This starts a new portion.
        """
        counts = {
            group.built[-1]: Counted(
                group.events,
                self._build.time_of(group.first),
                self._build.time_of(group.until),
                frozenset(map(int, group.subtasks)),
            )
            for group in self._groups.values()
            if group.events
        }
        self._groups = {}
        return counts

    def expect(self, key: bytes, data: bytes, offset: int, level: str | None) -> None:
        """Register a built event for learning, if its form has occurred often enough."""
        form = None
        # Without its quoted text, an event has the same columns only in its header line.
        length = data.index(b"\n") if isinstance(key, QuotedKey) else len(data)
        if len(data) <= MAX_EVENT_BYTES:
            form = self._forms.get(key) or self._new(key)
        if form is not None and form.spans:
            key = _variant(key, form, data)
            form = self._forms.get(key) or self._new(key, is_variant=True)
        if form is None or not form.is_counted:
            self.other_events += 1
        if form is not None and not form.is_settled:
            form.level = level
            self._pending[offset] = key[:length], data[:length], form

    def distrust(self, key: bytes) -> None:
        """Do not count events of this form, because one was redacted, undecodable, or truncated."""
        self.other_events += 1
        form = self._forms.get(key) or self._new(key)
        if form is not None:
            form.is_foldable, form.is_counted, form.spans = False, False, None

    def learn(self, observation: Observation) -> None:
        """Learn from the content of an event that was registered with ``expect``."""
        key, data, form = self._pending.pop(observation.event.offset, _NOTHING)
        if form is None or not form.is_foldable:
            return
        constant = constant_of(observation)
        places = places_of(observation, key, data, self._header_bytes)
        if form.seen and places is not None:
            places = {
                name: [span for span in form.places[name] if span in of]
                for name, of in places.items()
            }
        # If the event has a subtask, one of the columns contains it.
        if (
            places is None
            or (form.seen and form.constant != constant)
            or (observation.subtask is not None and not places["subtask"])
            or (observation.parallelism is not None and not places["parallelism"])
        ):
            form.is_foldable = form.is_counted = False
            return
        form.constant, form.places = constant, places
        form.seen += 1
        form.adapt_to(self._grain)

    def _new(self, key: bytes, *, is_variant: bool = False) -> LearnedForm | None:
        """Create a form if it has occurred often enough."""
        number = hash(key)
        met = self._met.get(number, 0) + 1
        if met < MET_FROM:
            if len(self._met) >= _MAX_MET:
                self._met.clear()
            self._met[number] = met
            return None
        if len(self._forms) >= _MAX_FORMS:
            self._forms.clear()
        spans: list[Span] | None = []
        if isinstance(key, QuotedKey):
            spans = self._spans_in_line(key.form)
        elif not is_variant:
            spans = self._sensitive_digits.spans(key, self._header_bytes)
            if not has_interchangeable_digits(key):
                spans = None
        self._made += 1
        form = self._forms[key] = LearnedForm(self._made, spans)
        return form

    def _spans_in_line(self, form: bytes) -> list[Span] | None:
        """The columns of sensitive digits in the header line; the key includes all others."""
        spans = self._sensitive_digits.spans(form, self._header_bytes)
        if spans is None or not has_interchangeable_digits(form):
            return None
        length = form.index(b"\n")
        return [(start, end) for start, end in spans if end <= length]

    def _period_of(self, data: bytes, minute: bytes) -> Hashable:
        at = self._build.minute_of(data)
        if at is None:
            return _NO_PERIOD
        # If clocks are set back, times and their text sort in different orders.
        if self._grain.minutes == 1 or not self._build.is_clock_steady:
            return minute
        return _ALL_TIME if self._grain.minutes is None else period_of(at, self._grain.minutes)


_NOTHING: tuple[bytes, bytes, LearnedForm | None] = (b"", b"", None)


def _variant(form_bytes: bytes, form: LearnedForm, data: bytes) -> bytes:
    assert form.spans is not None
    return b"\0".join([form_bytes, *[data[a:b] for a, b in form.spans]])
