"""The values that pass between stages, from a file on disk to a ranked diagnosis.

Everything here is frozen and slotted: a stage returns new values and never edits the ones it was
given.  Timestamps are timezone-aware UTC ``datetime`` or ``None`` where the log states no time.
The words are those of ``docs/glossary.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, get_args

from flink_triage.pickles import pickled_by_position
from flink_triage.spread import Spread, Subtask

Severity = Literal["critical", "major", "minor", "info"]
Role = Literal["trigger", "contributing", "symptom", "wrapper", "loop-sustainer", "benign"]
Process = Literal["jobmanager", "taskmanager", "client", "operator"]
Product = Literal["flink", "other"]
Origin = Literal["user", "flink", "connector", "library", "jdk", "native"]
Relation = Literal["thrown", "cause", "suppressed"]
Verdict = Literal[
    "diagnosed", "undetermined", "text-only", "no-logs", "empty-window", "not-flink", "healthy"
]
Status = Literal["new", "ongoing", "worse", "resolved"]
Outcome = Literal["recovered", "failed", "ongoing", "unknown"]
Action = Literal["set", "raise", "lower", "remove", "already-set"]
Scope = Literal["cluster", "job", "connector", "code", "platform"]
Risk = Literal["live", "restart", "state-migration", "data-loss"]

SEVERITIES: tuple[Severity, ...] = ("critical", "major", "minor", "info")
# Most urgent first.
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
ROLES: tuple[Role, ...] = (
    "trigger",
    "contributing",
    "symptom",
    "wrapper",
    "loop-sustainer",
    "benign",
)


# --- traces ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Frame:
    """One ``at class.method(file:line)`` line of a stack trace.

    ``class_name`` is fully qualified, without classloader or module prefix; ``line`` is ``None``
    for native and unknown sources; ``jar`` is log4j2's packaging data (``flink-dist-1.16.0.jar``).
    """

    class_name: str
    method: str
    file: str | None = None
    line: int | None = None
    jar: str | None = None
    origin: Origin = "user"


@dataclass(frozen=True, slots=True)
class Throwable:
    """One throwable of a chain.

    ``type`` is the real class: Flink's ``SerializedThrowable: some.Type: message`` is unwrapped to
    ``some.Type`` with ``is_serialized``.  ``omitted_frame_count`` is the n of ``... n more``, which
    stands for the last n frames of the enclosing throwable; ``frames`` holds only printed ones.
    """

    type: str
    message: str
    frames: tuple[Frame, ...] = ()
    omitted_frame_count: int = 0
    relation: Relation = "thrown"
    is_serialized: bool = False
    suppressed: tuple[tuple[Throwable, ...], ...] = ()

    @property
    def text(self) -> str:
        """``type: message``, or the bare type when there is no message."""
        return f"{self.type}: {self.message}" if self.message else self.type


@dataclass(frozen=True, slots=True)
class StackTrace:
    """A cause chain, outermost throwable first; never empty.

    ``is_truncated`` says that the text began or ended inside the trace.
    """

    throwables: tuple[Throwable, ...]
    is_truncated: bool = False

    @property
    def thrown(self) -> Throwable:
        return self.throwables[0]

    @property
    def root_cause(self) -> Throwable:
        return self.throwables[-1]


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Versioned identities of a trace (``v1:`` + 32 hex digits), one per question asked of it.

    ``full`` groups the same failure along the same path, ``root_cause`` the same fault whatever
    wrapped it, ``user_frames`` the same place in user code (``None`` without user frames).
    """

    full: str
    root_cause: str
    user_frames: str | None = None


# --- logs --------------------------------------------------------------------------------------


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
    """What the head of a file tells of all of it.

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


# --- signatures --------------------------------------------------------------------------------


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
    """How often one range saw a stack trace that was told before."""

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
    log this looks like, by loggers, frames and names in it; ``None`` when nothing tells.
    ``flink_version`` is what the head of its file tells.  ``spread`` is set where it counts events
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


# --- the result (schema_version 2) -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where it is written: file, line (from 1), byte offset, time, and the words themselves.

    ``fingerprint`` names the event's stack trace, where it has one: a key of
    ``Result.stack_traces``.
    """

    path: str
    line: int
    offset: int
    at: datetime | None
    excerpt: str
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """One option to change, under the key that the running Flink line knows.

    ``current`` is the effective value read from the log, the line's default, or ``None`` when
    neither is known; ``current_source`` says which (``log``, ``default``, ``None``).
    """

    key: str
    value: str
    action: Action
    reason: str
    scope: Scope = "cluster"
    restart: bool = True
    current: str | None = None
    current_source: Literal["log", "default"] | None = None


@dataclass(frozen=True, slots=True)
class TriedFix:
    """A fix that people report, what it really does, and why it is or is not the cure."""

    advice: str
    assessment: str


@dataclass(frozen=True, slots=True)
class Remediation:
    summary: str
    steps: tuple[str, ...] = ()
    config: tuple[ConfigChange, ...] = ()
    risk: Risk = "restart"
    verify: str | None = None
    commonly_tried: tuple[TriedFix, ...] = ()
    references: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One ranked explanation of an incident; rank 1 is the root cause.

    ``score`` orders diagnoses inside one incident and means nothing elsewhere; ``confidence`` is
    in [0, 1] and calibrated on the labelled corpus.  ``reasons`` are the parts of the score, as
    sentences.
    """

    rank: int
    signature: str
    title: str
    severity: Severity
    role: Role
    confidence: float
    score: float
    reasons: tuple[str, ...]
    occurrences: int
    first_seen_at: datetime | None
    last_seen_at: datetime | None
    subtasks: tuple[str, ...]
    hosts: tuple[str, ...]
    captures: Mapping[str, str]
    explains: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    cause: str
    remediation: Remediation


@dataclass(frozen=True, slots=True)
class SimilarFailure:
    """A known failure that resembles one without a name; it does not match and is no diagnosis.

    ``agrees`` is what both have, ``differs`` what its signature asks for and the log does not show.
    """

    signature: str
    title: str
    agrees: tuple[str, ...]
    differs: tuple[str, ...]
    reference: str | None = None


@dataclass(frozen=True, slots=True)
class Checkpoint:
    checkpoint_id: int
    at: datetime | None


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """One thing that happened, for people: ``kind`` from ``logs.lifecycle.KINDS`` or ``fault``."""

    at: datetime | None
    kind: str
    text: str
    evidence: Evidence | None = None
    count: int = 1


@dataclass(frozen=True, slots=True)
class AffectedJob:
    """A job that an incident hit; ``started_at`` is its own first fault."""

    job_id: str | None
    job_name: str | None
    started_at: datetime | None
    outcome: Outcome
    restarts: int
    last_healthy: Checkpoint | None = None


@dataclass(frozen=True, slots=True)
class MinuteCount:
    """Faults within one minute, and how many jobs they hit."""

    minute: datetime
    faults: int
    jobs: int


@dataclass(frozen=True, slots=True)
class BlastRadius:
    """How far an incident reached; a fault of the cluster reaches more than one job.

    ``hosts`` are those that logged a fault, ``taskmanagers`` those that a fault names.
    ``per_minute`` leaves out minutes without faults and ends after the first 120.
    """

    jobs: tuple[AffectedJob, ...]
    hosts: tuple[str, ...] = ()
    taskmanagers: tuple[str, ...] = ()
    per_minute: tuple[MinuteCount, ...] = ()


@dataclass(frozen=True, slots=True)
class OtherCause:
    """A cause other than the first, and what would tell them apart.

    ``considered``: the log shows it.  ``possible``: it is known to bring about the symptom that the
    log shows, and ``look_for`` are words that it would have left where the logs are missing.
    """

    signature: str
    title: str
    standing: Literal["considered", "possible"]
    reason: str
    look_for: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Incident:
    """One episode of one job, or of several that one fault of the cluster hit.

    ``job_id`` is ``None`` when the logs name no job and when ``blast_radius`` names several.
    ``similar`` are known failures that resemble a first fault without a name, nearest first.
    ``config`` are the changes of all diagnoses in one patch without contradictions.  ``notes`` say
    what was assumed, as of clocks that disagree.  ``status`` is what became of it since the run
    before, where runs are kept; ``None`` for what was over before that.
    """

    incident_id: str
    deployment: str
    job_id: str | None
    job_name: str | None
    flink_version: str | None
    started_at: datetime | None
    ended_at: datetime | None
    verdict: Verdict
    outcome: Outcome
    restarts: int
    first_fault: Evidence | None
    last_healthy: Checkpoint | None
    diagnoses: tuple[Diagnosis, ...]
    similar: tuple[SimilarFailure, ...] = ()
    timeline: tuple[TimelineEntry, ...] = ()
    summary: str = ""
    missing_evidence: tuple[str, ...] = ()
    blast_radius: BlastRadius | None = None
    other_causes: tuple[OtherCause, ...] = ()
    config: tuple[ConfigChange, ...] = ()
    notes: tuple[str, ...] = ()
    status: Status | None = None

    @property
    def is_failure(self) -> bool:
        """Whether a log shows a failure.  All other verdicts say why there is none to report."""
        return self.verdict in ("diagnosed", "undetermined")


@dataclass(frozen=True, slots=True)
class UnknownFailure:
    """A failure that no signature names, grouped by fingerprint; ``similar`` as of an incident."""

    fingerprint: str
    count: int
    exception_type: str | None
    root_cause_type: str | None
    root_cause_message: str | None
    first_user_frame: str | None
    deployments: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    first_seen_at: datetime | None = None
    similar: tuple[SimilarFailure, ...] = ()


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
class SkippedSignature:
    signature: str
    reason: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """What was read and what was not: a report states its blind spots."""

    files: int = 0
    bytes: int = 0
    events: int = 0
    stack_traces: int = 0
    fingerprints: int = 0
    quarantined: tuple[Quarantined, ...] = ()
    truncated: int = 0
    redactions: int = 0
    redactions_by_kind: Mapping[str, int] = field(default_factory=dict)
    decode_errors: int = 0
    signatures_evaluated: int = 0
    signatures_skipped: tuple[SkippedSignature, ...] = ()
    assumed_timezone: str = "UTC"


@dataclass(frozen=True, slots=True)
class Run:
    run_id: str
    started_at: datetime
    finished_at: datetime | None
    signature_set: str


@dataclass(frozen=True, slots=True)
class Result:
    """All that one run found; every output format renders this object and nothing else.

    ``stack_traces`` holds, once each, the traces that evidence names, as one event printed them.
    """

    tool: Mapping[str, str]
    run: Run
    coverage: Coverage
    incidents: tuple[Incident, ...]
    unknown: tuple[UnknownFailure, ...]
    schema_version: int = 2
    effective_config: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    stack_traces: Mapping[str, str] = field(default_factory=dict)


JsonObject = dict[str, Any]
