"""The result of a run (``schema_version`` 2): incidents with diagnoses, and what was read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from flink_triage.model.log_events import Quarantined
from flink_triage.model.vocabulary import (
    Action,
    ChangeKind,
    Outcome,
    Process,
    Risk,
    Role,
    Scope,
    Severity,
    Status,
    Verdict,
)


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
    """One option to change, under its name in the running Flink line.

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
class StartOf:
    """Where a log shows the start of a process, or of a job where ``process`` is ``None``."""

    process: Process | None
    path: str
    line: int
    at: datetime | None


@dataclass(frozen=True, slots=True)
class ObservedChange:
    """A difference between the last healthy start and the one before the failure.

    It is a fact of the logs and no cause. ``before`` is ``None`` for what was added, ``after`` for
    what was removed. The value of a jar is its version, or its file name where that has none.
    """

    what: ChangeKind
    name: str
    before: str | None
    after: str | None
    healthy_start: StartOf
    failing_start: StartOf


@dataclass(frozen=True, slots=True)
class Incident:
    """One episode of one job, or of several that one fault of the cluster hit.

    ``job_id`` is ``None`` when the logs name no job and when ``blast_radius`` names several.
    ``similar`` are known failures that resemble a first fault without a name, nearest first.
    ``config`` are the changes of all diagnoses in one patch without contradictions.  ``notes`` say
    what was assumed, as of clocks that disagree.  ``status`` is what became of it since the run
    before, where runs are kept; ``None`` for what was over before that.  ``changes`` are the first
    differences from the last healthy start, and ``changes_left_out`` the number of further ones.
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
    changes: tuple[ObservedChange, ...] = ()
    changes_left_out: int = 0

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
