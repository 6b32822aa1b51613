"""The result of a run (``schema_version`` 2): incidents with their diagnoses, and coverage."""

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
    """A piece of evidence in a log: file, 1-based line number, byte offset, time, and text.

    ``fingerprint`` identifies the stack trace of the event, if any (see ``Result.stack_traces``).
    """

    path: str
    line: int
    offset: int
    at: datetime | None
    excerpt: str
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """A config option and the value that it should have.

    Options of scope ``cluster`` and ``job`` have their name in the running Flink line; an option to
    remove has the name that the configuration uses. ``current`` is the effective value in the log,
    or else the default value in the Flink line, or ``None`` if neither is known or the scope is
    different. ``current_source`` is ``log``, ``default``, or ``None``. ``value`` is empty if the
    option is removed.
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
    """A commonly recommended fix, and an assessment of its effect."""

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
    """One ranked explanation of an incident.

    If the verdict of the incident is ``diagnosed``, rank 1 is the most likely root cause.
    ``score`` is not comparable between incidents. ``confidence`` is the estimated probability, in
    [0, 1], that the diagnosis is the root cause. ``reasons`` explain the score in sentences.
    ``explains`` lists the signatures that are consequences of this one.
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
    """A known failure that resembles an unknown failure; it does not match and is not a diagnosis.

    ``agrees`` lists the common properties. ``differs`` lists the properties that the signature
    requires and the unknown failure does not have.
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
    """One entry of a timeline; ``kind`` is ``fault``, ``omitted``, or a lifecycle kind."""

    at: datetime | None
    kind: str
    text: str
    evidence: Evidence | None = None
    count: int = 1


@dataclass(frozen=True, slots=True)
class AffectedJob:
    """A job affected by an incident; ``started_at`` is the time of its first fault."""

    job_id: str | None
    job_name: str | None
    started_at: datetime | None
    outcome: Outcome
    restarts: int
    last_healthy: Checkpoint | None = None


@dataclass(frozen=True, slots=True)
class MinuteCount:
    """The number of faults within one minute, and the number of known jobs with these faults."""

    minute: datetime
    faults: int
    jobs: int


@dataclass(frozen=True, slots=True)
class BlastRadius:
    """The extent of an incident.

    ``hosts`` are the hosts that logged a fault. ``taskmanagers`` are the resource IDs in messages
    about lost TaskManagers and failed tasks. ``per_minute`` contains the first 120 minutes with
    faults.
    """

    jobs: tuple[AffectedJob, ...]
    hosts: tuple[str, ...] = ()
    taskmanagers: tuple[str, ...] = ()
    per_minute: tuple[MinuteCount, ...] = ()


@dataclass(frozen=True, slots=True)
class OtherCause:
    """A cause other than the first diagnosis, and how to distinguish the two.

    ``considered`` means that the cause appears in the log. ``possible`` means that it does not, but
    that it is a known cause of the first diagnosis, which is a symptom, or of a wrapper nearer to
    the root cause. ``look_for`` are strings that typically occur in a log with this cause.
    """

    signature: str
    title: str
    standing: Literal["considered", "possible"]
    reason: str
    look_for: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StartOf:
    """The location in a log of a process start, or of a job start if ``process`` is ``None``."""

    process: Process | None
    path: str
    line: int
    at: datetime | None


@dataclass(frozen=True, slots=True)
class ObservedChange:
    """A difference between the last healthy start and the last start before the failure.

    The difference is not necessarily a cause. ``before`` is ``None`` for additions, and ``after``
    is ``None`` for removals. The value of a JAR is its version, or its file name if the name does
    not contain a version; several versions are joined. Long values are shortened.
    """

    what: ChangeKind
    name: str
    before: str | None
    after: str | None
    healthy_start: StartOf
    failing_start: StartOf


@dataclass(frozen=True, slots=True)
class Incident:
    """An episode of one job, of several jobs, or of the cluster; an unexplained error; or the
    verdict for a deployment that has no failure to report.

    ``job_id`` is ``None`` if no job is known, or if there are several (see ``blast_radius``).
    ``similar`` lists known failures that resemble the first fault without a signature, most similar
    first; it is empty unless the verdict is ``undetermined`` or ``text-only``. ``config`` contains
    the option changes of the first diagnosis. ``notes`` state assumptions and limits, for example
    clock skew. ``status`` is the change since the previous run. It is ``None`` without a previous
    run, without a failure, for closed incidents that the last run did not write, and for incidents
    that had already recovered, unless they became worse. ``changes`` are the first differences from
    the last healthy start, and ``changes_left_out`` is the number of further differences.
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
        """Whether the logs show a failure; all other verdicts state why none is reported."""
        return self.verdict in ("diagnosed", "undetermined")


@dataclass(frozen=True, slots=True)
class UnknownFailure:
    """Events with the same root cause fingerprint that no signature explains.

    ``fingerprint`` is this fingerprint. Signatures of wrappers and symptoms may match the events.
    For ``similar``, see `Incident`.
    """

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
    """The inputs that were read and those that were not, so that reports can state their gaps."""

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
    """The complete result of a run, and the only data that the output formats render.

    ``stack_traces`` contains the stack traces of first faults, diagnoses, and unknown failures, as
    printed in one event and truncated to a maximum length. The keys are full fingerprints.
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
