"""Events that say what others said before them: counted by their bytes, without being built.

Bytes of a notable event are looked up by their form (``forms``).  What two events of a form were
found to say, when they were read in full, holds for all of them, but for what stands in the columns
of the job, the task and the subtask.  Of the events that a fold would take for one kind, only those
are built that it keeps: the first few and the last of each portion.  Those between are counted.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime

from flink_triage.grains import KEPT_KINDS, SAID_AT_START, Grain, period_of
from flink_triage.logs.readers.event_builder import ShapedEvents
from flink_triage.logs.readers.event_form_details import (
    Span,
    Telling,
    are_equal,
    constant_of,
    places_of,
)
from flink_triage.logs.routine import COMPLETED
from flink_triage.model import Observation

# Larger events are few, and each form holds one.
MAX_EVENT_BYTES = 16 * 1024
# Forms are kept per process; each is as large as its event.
_MAX_FORMS = 4096
_MAX_TABLES = 16
_MAX_MET = 65_536
# To learn a form takes longer than to read an event of it: first it has to repeat.
MET_FROM = 8
# Events that are read in full before those of their form are counted, and until no more is learned.
_TRUSTED_FROM = 2
_LEARNED_FROM = 8

# Read one by one at every grain, or folded by their values or neighbours.
_NEVER_COUNTED = SAID_AT_START | {COMPLETED}
_NO_PERIOD, _ALL_TIME = -1, -2
_LAST_TEN_SECONDS = ord("5")


@dataclass(frozen=True, slots=True)
class Counted:
    """Events that one that was built stands for, beside itself; ``subtasks`` are those of its task
    that they name, where these are not told apart.
    """

    events: int
    first_logged_at: datetime | None
    last_logged_at: datetime | None
    subtasks: frozenset[int]


class _Form:
    """What is known of the events of one form."""

    __slots__ = (
        "columns", "constant", "is_counted", "is_foldable", "level", "number", "places", "seen",
        "spans", "subtask",
    )  # fmt: skip

    def __init__(self, number: int, spans: list[Span] | None) -> None:
        self.number = number
        # Columns that make forms of their own of these events; without any it is one form.
        self.spans = spans
        self.is_foldable = spans is not None
        self.level: str | None = None
        self.seen = 0
        self.constant: tuple[Hashable, ...] = ()
        # By detail, columns that may hold it; some one of them does.
        self.places: dict[str, list[Span]] = {}
        self.columns: tuple[Span, ...] = ()
        # Where the subtask may stand, which tells no kinds apart.
        self.subtask: tuple[Span, ...] = ()
        self.is_counted = False

    @property
    def is_settled(self) -> bool:
        """Whether nothing more is to be learned of it."""
        if not self.is_foldable or self.seen >= _LEARNED_FROM:
            return True
        return self.seen >= _TRUSTED_FROM and all(len(of) < 2 for of in self.places.values())

    def suit(self, grain: Grain) -> None:
        """Decides what is counted, and by which columns."""
        if not self.is_foldable or self.seen < _TRUSTED_FROM:
            self.is_counted = False
            return
        kind = self.constant[0]
        is_kept = kind in KEPT_KINDS and (grain.is_finest or kind in _NEVER_COUNTED)
        # Of a task that is not told apart the name is; else it would have to be read.
        dropped = grain.drops - {"task"}
        told = (of for name, of in self.places.items() if name not in {*dropped, "subtask"})
        self.columns = tuple(sorted({span for of in told for span in of}))
        self.subtask = tuple(self.places["subtask"])
        self.is_counted = not is_kept


class _Group:
    """Events of one kind within a portion; ``last`` is built when the portion ends."""

    __slots__ = (
        "absorber",
        "events",
        "first",
        "form",
        "kept",
        "last",
        "latest",
        "subtasks",
        "until",
    )

    def __init__(self, form: _Form) -> None:
        self.form = form
        self.subtasks: set[bytes] = set()
        self.kept = 0
        self.absorber = 0
        self.events = 0
        self.first = self.until = self.latest = b""
        self.last: tuple[int, int, bytes] | None = None


class Repeats:
    """The forms that one process knows, and the groups of the portion that is read.

    ``known_events`` are notable events that were told apart by their form, ``other_events`` those
    that had to be read for it.
    """

    def __init__(self, telling: Telling) -> None:
        self._telling = telling
        self._tables: dict[Hashable, dict[bytes, _Form]] = {}
        self._forms: dict[bytes, _Form] = {}
        self._made = 0
        self._met: dict[int, int] = {}
        self._pending: dict[int, tuple[bytes, bytes, _Form]] = {}
        self._groups: dict[tuple[Hashable, ...], _Group] = {}
        self.known_events = 0
        self.other_events = 0
        self._counted_bytes = 0

    def forget_range(self) -> None:
        """What is known of forms stays."""
        self._pending, self._groups, self._counted_bytes = {}, {}, 0

    def begin(self, build: ShapedEvents, grain: Grain, context: Hashable) -> None:
        """Get ready for a range.

        ``context`` is what decides beside the bytes of an event what it says.
        """
        self.forget_range()
        self._build, self._grain = build, grain
        if len(self._tables) >= _MAX_TABLES:
            self._tables.clear()
        self._forms = self._tables.setdefault((context, build.shape.name), {})
        for form in self._forms.values():
            form.suit(grain)
        self._periods: dict[bytes, Hashable] = {}
        self._header_bytes = len(build.shape.columns)
        assert build.time_columns is not None
        second, _, after = build.time_columns
        self._minute_bytes = second, second + len("2026-11-21 06:47")
        self._time_bytes = second, after

    def take(self, key: bytes, data: bytes, offset: int, line: int) -> _Form | None:
        """The form of an event that is counted, or built later; ``None``: it is to be built now."""
        form = self._forms.get(key)
        if form is not None and form.spans:
            form = self._forms.get(_variant(key, form, data))
        if form is None or not form.is_counted:
            return None
        start, end = self._minute_bytes
        minute = data[start:end]
        period = self._periods.get(minute)
        if period is None:
            period = self._periods[minute] = self._period_of(data, minute)
        # A second that is none is not seen by the minute.
        if period == _NO_PERIOD or data[end + 1] > _LAST_TEN_SECONDS:
            return None
        subtasks = {data[start:end] for start, end in form.subtask}
        if len(subtasks) > 1:
            return None
        self.known_events += 1
        kind = (form.number, period, *[data[a:b] for a, b in form.columns])
        group = self._groups.get(kind)
        if group is None:
            group = self._groups[kind] = _Group(form)
        start, end = self._time_bytes
        at = data[start:end]
        if at < group.latest:
            return None
        group.latest = at
        if group.kept < self._grain.keep - 1:
            group.kept += 1
            group.absorber = offset
            return None
        if group.last is not None:
            counted = group.last[2]
            self._counted_bytes += len(counted)
            passed = counted[start:end]
            if not group.events:
                group.first = passed
            group.until = passed
            group.events += 1
            group.subtasks.update(counted[start:end] for start, end in form.subtask[:1])
        group.last = offset, line, data
        return form

    def lasts(self) -> list[tuple[int, int, bytes]]:
        """Offset, line and bytes of the events that are built when the portion ends."""
        return sorted(group.last for group in self._groups.values() if group.last is not None)

    def take_counted_bytes(self) -> int:
        """The size of the events that were counted since this was asked last."""
        size, self._counted_bytes = self._counted_bytes, 0
        return size

    def take_counts(self) -> dict[int, Counted]:
        """By the offset of an event that was built, those that it stands for; a portion begins."""
        counts = {
            group.absorber: Counted(
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
        """An event that was built is to be learned, if its form was met before."""
        form = None
        if len(data) <= MAX_EVENT_BYTES:
            form = self._forms.get(key) or self._new(key)
        if form is not None and form.spans:
            key = _variant(key, form, data)
            form = self._forms.get(key) or self._new(key, is_variant=True)
        if form is None or not form.is_counted:
            self.other_events += 1
        if form is not None and not form.is_settled:
            form.level = level
            self._pending[offset] = key[: len(data)], data, form

    def distrust(self, key: bytes) -> None:
        """Events of the form are read in full from now on: one held a secret or broken text."""
        self.other_events += 1
        form = self._forms.get(key) or self._new(key)
        if form is not None:
            form.is_foldable, form.is_counted, form.spans = False, False, None

    def learn(self, observation: Observation) -> None:
        """What an event says that was expected."""
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
        # Where a subtask is named, it stands in one of the columns.
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
        form.suit(self._grain)

    def _new(self, key: bytes, *, is_variant: bool = False) -> _Form | None:
        """A form that was met often enough."""
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
        if not is_variant:
            spans = self._telling.spans(key, self._header_bytes)
            if not are_equal(key):
                spans = None
        self._made += 1
        form = self._forms[key] = _Form(self._made, spans)
        return form

    def _period_of(self, data: bytes, minute: bytes) -> Hashable:
        at = self._build.minute_of(data)
        if at is None:
            return _NO_PERIOD
        # Where a clock is set back, times do not order as their texts do.
        if self._grain.minutes == 1 or not self._build.is_clock_steady:
            return minute
        return _ALL_TIME if self._grain.minutes is None else period_of(at, self._grain.minutes)


_NOTHING: tuple[bytes, bytes, _Form | None] = (b"", b"", None)


def _variant(form_bytes: bytes, form: _Form, data: bytes) -> bytes:
    assert form.spans is not None
    return b"\0".join([form_bytes, *[data[a:b] for a, b in form.spans]])
