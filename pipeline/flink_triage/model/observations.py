"""Events with their matches: what a diagnosis takes from all ranges."""

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
    """A signature found in one event: which alternative, what it captured, how near the root.

    ``depth_from_root`` is 0 when the matching throwable is the root cause of its chain, 1 for the
    throwable that wraps it and so on; ``None`` when the match stands outside a trace.
    ``excerpt`` is the text that matched, at most 400 characters, and ``line_offset`` the number of
    lines between the event's header and the line that holds it.
    """

    signature: str
    alternative: int
    captures: Mapping[str, str]
    excerpt: str
    depth_from_root: int | None = None
    line_offset: int = 0


@dataclass(frozen=True, slots=True)
class TraceRow:
    """A distinct stack trace of one range: its parsed chain, and one exemplar."""

    fingerprint: Fingerprint
    trace: StackTrace
    exemplar: str
    count: int
    first_seen_at: datetime | None
    last_seen_at: datetime | None


@dataclass(frozen=True, slots=True)
class TraceCount:
    """How often one range saw a stack trace that an earlier one had as a `TraceRow`."""

    fingerprint: Fingerprint
    count: int
    first_seen_at: datetime | None
    last_seen_at: datetime | None


@dataclass(frozen=True, slots=True)
class Observation:
    """A notable event with all that the per-event stages know of it: the diagnosis' input.

    ``occurrences`` is above 1 where equal events were folded into their first; then
    ``last_logged_at`` is the time of the last of them.  ``has_frames`` is false for a trace that
    prints none at all (HotSpot drops them from an exception thrown often).  ``product`` says whose
    log this looks like, by loggers, frames and names in it; ``None`` if nothing shows it.
    ``flink_version`` is stated by the head of its file.  ``spread`` is set where it counts events
    of other subtasks, hosts or files.
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
        """Where it and all that it counts was logged, as far as that is known."""
        subtasks = {Subtask(self.task, self.subtask, self.parallelism)} if self.task else ()
        hosts = (self.host,) if self.host else ()
        own = Spread(frozenset(subtasks), frozenset(hosts), frozenset((self.event.path,)))
        return own if self.spread is None else own.union([self.spread])
