"""Files and their events: what readers take from a range of bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from flink_triage.model.vocabulary import Process
from flink_triage.pickles import pickled_by_position


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """What a log line says about the life of a job, task, checkpoint, process or configuration.

    ``kind`` is one of ``logs.lifecycle.KINDS``; fields that the line does not state are ``None``.
    ``key`` is the option of a ``config`` line and the execution attempt id of a task's lines.
    ``subtask`` counts from 1 as Flink prints it; ``attempt`` from 0.
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
    """One log event: a header line and everything up to the next header.

    ``offset`` and ``size_bytes`` locate it in the decompressed file; ``line``, from 1, is that of
    the message.  ``message`` is what follows the header, on its line or the one below;
    ``continuation`` the lines after it, joined by ``\\n`` without line ends (usually a stack
    trace), or ``None``.  Both are decoded, free of carrier prefixes and escape codes, and redacted.
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
    """The properties of a file, as its head shows them.

    ``layout`` and ``carrier`` are names from ``logs.layouts`` and ``logs.carriers``;
    ``layout_confidence`` is the share of probed lines that the layout explains, in [0, 1].
    ``is_splittable`` says that byte ranges can be read on their own (no compression, no carrier,
    one layout).  ``problem`` is why the file is quarantined, or ``None``.
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
    """One task: the events whose first byte lies in [start, end) of the decompressed file.

    ``end`` is ``None`` for the end of the file; files that are not splittable have one range.
    ``is_continued`` says that an earlier reading ended at ``start``: then whatever stands there
    belongs to the range, header or not, and any file can be read from there.
    """

    profile: FileProfile
    deployment: str
    start: int = 0
    end: int | None = None
    generation: int = 0
    is_continued: bool = False


@dataclass(frozen=True, slots=True)
class Volume:
    """Counts of all that was read, notable or not, per level and minute.

    ``minute`` is ``None`` for lines before the first timestamp; ``level`` is ``None`` where the
    layout states none.
    """

    level: str | None
    minute: datetime | None
    line_count: int
    byte_count: int
    event_count: int


@dataclass(frozen=True, slots=True)
class Quarantined:
    """An input, or part of one, that was not read as a log, and why."""

    path: str
    reason: str

    @property
    def is_ignored(self) -> bool:
        """Whether nothing is missing: a file that is no log by its name, beside logs."""
        return self.reason.startswith("ignored: ")


@dataclass(frozen=True, slots=True)
class RangeScan:
    """What one range held: its notable events, and an account of every byte.

    Event lines count from 1 at the range's first line; adding the newlines of the ranges before
    gives lines of the file.  ``event_bytes + counted_bytes + quarantined_bytes + held_back_bytes``
    is the number of bytes that the range owns.  ``held_back_bytes`` is the unfinished last event
    of a file that is still being written.
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
