"""Files, byte ranges, and the events that readers extract from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from flink_triage.model.vocabulary import Process
from flink_triage.pickles import pickled_by_position


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """The change of a job, task, checkpoint, process, or configuration that a log line reports.

    ``kind`` is one of ``logs.lifecycle.KINDS``, or a kind of witness that ``diagnosis.timeline``
    defines. Fields that the line does not contain are ``None``. The meaning of ``key`` and
    ``value`` depends on the kind: for a ``config`` line, these are the option and its value; if the
    line contains an execution attempt ID, this is the ``key``. ``subtask`` is 1-based, as in Flink
    logs; ``attempt`` is 0-based.
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

    ``offset`` and ``size_bytes`` locate the event in the decompressed file; ``line`` is the 1-based
    line number of the message. ``message`` is the text after the header, on the same line or the
    next one; without a header, it is the first line. ``continuation`` contains the lines after the
    message (usually a stack trace), joined by ``\\n`` without a final line end, or is ``None``.
    Both are decoded and redacted, and carrier prefixes and escape codes are removed. If
    ``is_truncated`` is set, a part of the text is missing.
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
    """The properties of a file, detected from its head and its name.

    ``carrier`` consists of names from ``logs.formats``, joined by ``+``, or is ``none``. ``layout``
    is a name from ``logs.layouts``, followed by the header shape if the file has one. It is
    ``document`` for text that only discusses failures, and ``none`` without headers.
    ``layout_confidence`` is the share of non-blank lines of the head that are headers or continue
    an event, in [0, 1], and 0 without headers. ``is_splittable`` means that byte ranges can be read
    independently; this requires a header shape, and a seekable file that is not compressed.
    ``problem`` is the reason why the file is quarantined, or ``None``.
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
    """The events whose first byte is in [start, end) of the decompressed file.

    ``end`` is ``None`` for the end of the file. A file that is not splittable has a single range.
    ``generation`` counts how often the file was rewritten. ``is_continued`` means that an earlier
    run read up to ``start``. In this case, the range includes the bytes between ``start`` and the
    first header, and the file does not have to be splittable.
    """

    profile: FileProfile
    deployment: str
    start: int = 0
    end: int | None = None
    generation: int = 0
    is_continued: bool = False


@dataclass(frozen=True, slots=True)
class Volume:
    """The number of lines, bytes, and events, notable or not, for one level and minute.

    An event without a time belongs to the minute of the last event with a time before it.
    ``minute`` is ``None`` before the first time in the range, and ``level`` is ``None`` if it is
    unknown.
    """

    level: str | None
    minute: datetime | None
    line_count: int
    byte_count: int
    event_count: int


# Prefix of the reason why a deployment could not be diagnosed.
UNDIAGNOSED = "not diagnosed: "


@dataclass(frozen=True, slots=True)
class Quarantined:
    """An input, a part of an input, or a deployment that is not in the result, with the reason."""

    path: str
    reason: str

    @property
    def is_undiagnosed(self) -> bool:
        """Whether the path is a deployment that was read but could not be diagnosed."""
        return self.reason.startswith(UNDIAGNOSED)

    @property
    def is_ignored(self) -> bool:
        """Whether the file was ignored because its name is not that of a log."""
        return self.reason.startswith("ignored: ")


def by_importance(items: Iterable[Quarantined]) -> tuple[Quarantined, ...]:
    """The items in order: undiagnosed deployments first, ignored files last, otherwise by path."""
    return tuple(
        sorted(items, key=lambda q: (not q.is_undiagnosed, q.is_ignored, q.path, q.reason))
    )


@dataclass(frozen=True, slots=True)
class RangeScan:
    """The contents of one range: its notable events, and an account of every byte.

    Event line numbers are 1-based and relative to the first line of the range; to get file line
    numbers, add the newline counts of the previous ranges. ``event_bytes + counted_bytes +
    quarantined_bytes + held_back_bytes`` is the number of bytes in the range. ``held_back_bytes``
    is the size of the events at the end of a recently modified file that may still grow; a later
    run reads them. ``truncated`` is the number of notable events with missing text.
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
