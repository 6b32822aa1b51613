"""Files and their events, as readers extract them from a range of bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from flink_triage.model.vocabulary import Process
from flink_triage.pickles import pickled_by_position


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """The change that a log line reports about a job, task, checkpoint, process or configuration.

    ``kind`` is one of ``logs.lifecycle.KINDS``; fields that the line does not contain are ``None``.
    ``key`` is the option of a ``config`` line, and the execution attempt id of a task's lines.
    ``subtask`` starts at 1, as Flink prints it; ``attempt`` starts at 0.
    """

    kind: str
    job_id: str | None = None
    job_name: str | None = None
    task: str | None = None
    subtask: int | None = None
    parallelism: int | None = None
    attempt: int | None = None
    from_state: str | None = None
    to_state: str | None = None
    checkpoint_id: int | None = None
    resource_id: str | None = None
    key: str | None = None
    value: str | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """One log event: a header line and all lines up to the next header.

    ``offset`` and ``size_bytes`` locate it in the decompressed file; ``line`` is the line of the
    message, from 1.  ``message`` is the text after the header, on its line or the next one.
    ``continuation`` are the lines after the message (usually a stack trace), joined by ``\\n``
    without a final line end, or ``None``.  Both are decoded, without carrier prefixes and escape
    codes, and redacted.
    """

    path: str
    offset: int
    size_bytes: int
    line: int
    logged_at: datetime | None
    level: str | None
    logger: str | None
    thread: str | None
    message: str
    continuation: str | None = None
    job_id: str | None = None
    lifecycle: Lifecycle | None = None
    is_truncated: bool = False


@pickled_by_position
@dataclass(frozen=True, slots=True)
class FileProfile:
    """The properties of a file, detected from its head.

    ``layout`` and ``carrier`` are names from ``logs.layouts`` and ``logs.carriers``;
    ``layout_confidence`` is the share of probed lines that fit the layout, in [0, 1].
    ``is_splittable``: byte ranges can be read independently (no compression, no carrier, one
    layout).  ``problem`` is the reason why the file is quarantined, or ``None``.
    """

    path: str
    size_bytes: int
    compression: str = "none"
    encoding: str = "utf-8"
    carrier: str = "none"
    layout: str = "none"
    layout_confidence: float = 0.0
    is_splittable: bool = False
    process: Process | None = None
    host: str | None = None
    flink_version: str | None = None
    problem: str | None = None


@pickled_by_position
@dataclass(frozen=True, slots=True)
class ByteRange:
    """One task: the events whose first byte is in [start, end) of the decompressed file.

    ``end`` is ``None`` for the end of the file; files that are not splittable have one range.
    ``is_continued``: an earlier run read up to ``start``. The bytes from ``start`` on then belong
    to the range even without a header, and any file can be read from there.
    """

    profile: FileProfile
    deployment: str
    start: int = 0
    end: int | None = None
    generation: int = 0
    is_continued: bool = False


@dataclass(frozen=True, slots=True)
class Volume:
    """Counts of all events, notable or not, per level and minute.

    ``minute`` is ``None`` for lines before the first timestamp; ``level`` is ``None`` if the layout
    has no level.
    """

    level: str | None
    minute: datetime | None
    line_count: int
    byte_count: int
    event_count: int


# Prefix of the reason of a deployment that could not be diagnosed.
UNDIAGNOSED = "not diagnosed: "


@dataclass(frozen=True, slots=True)
class Quarantined:
    """What the result lacks, with the reason: an input, a part of one, or a deployment."""

    path: str
    reason: str

    @property
    def is_undiagnosed(self) -> bool:
        """Whether the path is a deployment that was read, but could not be diagnosed."""
        return self.reason.startswith(UNDIAGNOSED)

    @property
    def is_ignored(self) -> bool:
        """Whether nothing is missing: a file next to logs that is not a log by its name."""
        return self.reason.startswith("ignored: ")


def by_importance(items: Iterable[Quarantined]) -> tuple[Quarantined, ...]:
    """Deployments that were not diagnosed first, ignored files last, and then by path."""
    return tuple(
        sorted(items, key=lambda q: (not q.is_undiagnosed, q.is_ignored, q.path, q.reason))
    )


@dataclass(frozen=True, slots=True)
class RangeScan:
    """The contents of one range: its notable events, and an account of every byte.

    Event lines count from 1 at the first line of the range; add the newlines of the previous
    ranges to get lines of the file.  ``event_bytes + counted_bytes + quarantined_bytes +
    held_back_bytes`` is the number of bytes that the range owns.  ``held_back_bytes`` are the
    unfinished last event of a file that is still being written.
    """

    range: ByteRange
    events: tuple[Event, ...]
    newline_count: int
    event_bytes: int
    counted_bytes: int
    quarantined_bytes: int = 0
    held_back_bytes: int = 0
    volumes: tuple[Volume, ...] = ()
    redactions_by_kind: Mapping[str, int] = field(default_factory=dict)
    decode_errors: int = 0
    truncated: int = 0
    problems: tuple[Quarantined, ...] = ()

    @property
    def redactions(self) -> int:
        return sum(self.redactions_by_kind.values())
