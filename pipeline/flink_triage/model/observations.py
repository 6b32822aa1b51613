"""Events with their matches, which are the input of a diagnosis."""

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
    """A signature that matches an event, with the matching alternative and its captures.

    ``depth_from_root`` is 0 if the matching throwable is the root cause of its chain, 1 for the
    throwable that wraps the root cause, and so on; ``None`` if the match is not in a stack trace.
    ``excerpt`` is the matching text, at most 400 characters. ``line_offset`` is the number of lines
    from the header of the event to the line of the excerpt.
    """

    signature: str
    alternative: int
    captures: Mapping[str, str]
    excerpt: str
    depth_from_root: int | None = None
    line_offset: int = 0


@dataclass(frozen=True, slots=True)
class TraceRow:
    """A distinct stack trace in one range, with its parsed chain and one exemplar."""

    fingerprint: Fingerprint
    trace: StackTrace
    exemplar: str
    count: int
    first_seen_at: datetime | None
    last_seen_at: datetime | None


@dataclass(frozen=True, slots=True)
class TraceCount:
    """The number of times that a stack trace with an earlier `TraceRow` occurs in a range."""

    fingerprint: Fingerprint
    count: int
    first_seen_at: datetime | None
    last_seen_at: datetime | None


@dataclass(frozen=True, slots=True)
class Observation:
    """A notable event with the results of all stages that process individual events.

    ``occurrences`` is greater than 1 if equal events were folded into this one; ``last_logged_at``
    is then the time of the last of them. ``has_frames`` is false for a stack trace without frames
    (HotSpot omits them from exceptions that are thrown often). ``product`` is the product that
    probably wrote the log according to loggers, frames, and names, or ``None``. ``flink_version``
    is the version found in the head of the file. ``spread`` is set if the observation counts events
    of other subtasks, hosts, or files.
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
