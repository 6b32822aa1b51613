"""Notable events with their matches, and stack traces with their counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from flink_triage.model.log_events import Event
from flink_triage.model.stack_traces import Fingerprint, StackTrace
from flink_triage.model.vocabulary import Process, Product
from flink_triage.reach import Spread, Subtask


@dataclass(frozen=True, slots=True)
class Match:
    """A signature that matches an event, with the index of the alternative and its captures.

    ``depth_from_root`` is 0 if the matching throwable is the root cause of its chain, 1 for the
    throwable that wraps the root cause, and so on; ``None`` if no throwable matches. ``excerpt`` is
    the matching line, at most ``max_excerpt_chars`` long. ``line_offset`` is the number of lines
    from the header of the event to this line.
    """

    signature: str
    alternative: int
    captures: Mapping[str, str]
    excerpt: str
    depth_from_root: int | None = None
    line_offset: int = 0


@dataclass(frozen=True, slots=True)
class TraceRow:
    """A distinct stack trace, with one exemplar, and the number of events that contain it."""

    fingerprint: Fingerprint
    trace: StackTrace
    exemplar: str
    count: int
    first_seen_at: datetime | None
    last_seen_at: datetime | None


@dataclass(frozen=True, slots=True)
class TraceCount:
    """The number of further events with a stack trace for which a `TraceRow` exists."""

    fingerprint: Fingerprint
    count: int
    first_seen_at: datetime | None
    last_seen_at: datetime | None


@dataclass(frozen=True, slots=True)
class Observation:
    """A notable event with the results of all stages that process individual events.

    ``occurrences`` is greater than 1 if similar events were folded into this one, and 0 for a
    witness. ``last_logged_at`` is the time of the last folded event, if any. ``has_frames`` is
    false for a stack trace without frames (HotSpot omits them from some exceptions that are thrown
    often). ``product`` is the product that probably logged the event, or ``None``.
    ``flink_version`` is the version found in the head of the file. ``spread`` is set if the
    observation counts events of other subtasks, hosts, or files.
    """

    deployment: str
    event: Event
    process: Process | None
    host: str | None
    fingerprint: Fingerprint | None
    exception_type: str | None
    root_cause_type: str | None
    root_cause_message: str | None
    task: str | None
    subtask: int | None
    parallelism: int | None
    attempt: int | None
    matches: tuple[Match, ...] = ()
    first_user_frame: str | None = None
    has_frames: bool = True
    product: Product | None = None
    occurrences: int = 1
    last_logged_at: datetime | None = None
    flink_version: str | None = None
    spread: Spread | None = None

    @property
    def reach(self) -> Spread:
        """The known subtasks, hosts, and files of all events that the observation counts."""
        subtasks = {Subtask(self.task, self.subtask, self.parallelism)} if self.task else ()
        hosts = (self.host,) if self.host else ()
        own = Spread(frozenset(subtasks), frozenset(hosts), frozenset((self.event.path,)))
        return own if self.spread is None else own.union([self.spread])
