"""Defines the tables: their columns, Arrow types and comments.

A column comment begins with the OpenTelemetry name of the value, if one exists. All timestamps are
in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from flink_triage.spark.tables.arrow_types import (
    CONFIG_CHANGE,
    COUNT,
    EVIDENCE,
    FLAG,
    LIFECYCLE,
    MATCH,
    PROBLEM,
    REAL,
    SMALL,
    SPREAD,
    TEXT,
    TEXTS,
    THROWABLE,
    TIME,
)
from flink_triage.spark.tables.table_spec import TABLE_VERSION, Column, Table

RUN_ID = Column(
    "run_id",
    TEXT,
    f"The run that wrote the row, published if it is in `runs`; table version {TABLE_VERSION}",
    True,
)
BATCH = Column("batch", COUNT, "Number of the run in the warehouse (1-based)", True)
DEPLOYMENT = Column("deployment", TEXT, "service.namespace: the deployment of the logs")
FILE_ID = Column(
    "file_id", TEXT, "Identity of the file's content, which rotation and renaming preserve", True
)
GENERATION = Column("generation", SMALL, "Number of times that the file was rewritten", True)
PATH = Column("path", TEXT, "log.file.path: the path when the file was read", True)
FINGERPRINT = Column("fingerprint", TEXT, "Versioned identity of the complete stack trace")

RUNS = Table(
    "runs",
    "One row per published run; this row makes the other rows of the run visible",
    (
        RUN_ID,
        BATCH,
        Column("started_at", TIME, "Start time of the run"),
        Column("finished_at", TIME, "Time at which the run was published"),
        Column("tool_version", TEXT, "service.version of flink-triage"),
        Column("signature_set", TEXT, "Digest of the signatures that were used"),
        Column("file_count", COUNT, "Files with new content"),
        Column("read_bytes", COUNT, "Decompressed bytes read in this run"),
        Column("row_counts", pa.map_(TEXT, COUNT), "Number of rows written, by table"),
        Column("signatures_evaluated", COUNT, "Number of signatures that were evaluated"),
        Column(
            "signatures_skipped",
            pa.list_(pa.struct([("signature", TEXT), ("reason", TEXT)])),
            "Signatures that were not or not always evaluated, with the reason",
        ),
        Column("options_json", TEXT, "The options and inputs of the run"),
        Column(
            "undiagnosed",
            pa.list_(pa.struct([("deployment", TEXT), ("reason", TEXT), ("basis", TEXT)])),
            "Deployments whose last diagnosis failed, in this run or an earlier one, with the "
            "reason; basis as in `deployments`",
        ),
    ),
)

LOG_FILES = Table(
    "log_files",
    "Ledger: the part of each file that has been read; the newest published row of each content "
    "is current",
    (
        RUN_ID,
        DEPLOYMENT,
        PATH,
        FILE_ID,
        GENERATION,
        Column("state", TEXT, "done, partial, alias or quarantined"),
        Column("reason", TEXT, "Reason for partial or quarantined, or the target of the alias"),
        Column("size_bytes", COUNT, "log.file.size: size on disk when the file was listed"),
        Column("modified_at", TIME, "Modification time when the file was listed"),
        Column(
            "consumed_bytes", COUNT, "Decompressed bytes read; the next run begins at this offset"
        ),
        Column("consumed_lines", COUNT, "Lines in the consumed bytes"),
        Column(
            "head_digests",
            pa.binary(),
            "16-byte digests of the first 128 bytes, 1 KiB, 8 KiB and 64 KiB of the bytes read",
        ),
        Column("window_digest", pa.binary(), "Digest of the last 64 KiB of the bytes read"),
        Column("compression", TEXT, "Compression, detected by magic bytes"),
        Column("encoding", TEXT, "Character encoding"),
        Column(
            "carrier", TEXT, "Source of each line's prefix, such as a container runtime or grep"
        ),
        Column("layout", TEXT, "Log layout"),
        Column(
            "layout_confidence", REAL, "Share of probed lines in recognized events, from 0 to 1"
        ),
        Column("is_splittable", FLAG, "Whether byte ranges can be read independently"),
        Column("role", TEXT, "service.name: jobmanager, taskmanager, client or operator"),
        Column("host", TEXT, "host.name"),
        Column("flink_version", TEXT, "Flink version in the head of the file"),
        Column("event_count", COUNT, "Events read so far, notable or not"),
        Column("trace_count", COUNT, "Events with a stack trace read so far"),
        Column(
            "held_back_bytes", COUNT, "Bytes of the unfinished last event, left for the next run"
        ),
        Column("redactions", COUNT, "Secrets masked so far"),
        Column("redactions_by_kind", pa.map_(TEXT, COUNT), "Secrets masked so far, by kind"),
        Column("truncated", COUNT, "Events truncated to the size limit so far"),
        Column(
            "decode_errors", COUNT, "Invalid sequences that were replaced while decoding, so far"
        ),
        Column("problems", pa.list_(PROBLEM), "Parts that were not read as a log, with reasons"),
    ),
    skipped_by=("run_id", "deployment", "path"),
    kind="state",
)

EVENTS = Table(
    "events",
    "One row per notable log event; equal events in the same file and minute may share a row",
    (
        RUN_ID,
        DEPLOYMENT,
        FILE_ID,
        GENERATION,
        PATH,
        Column(
            "byte_offset",
            COUNT,
            "log.file.offset: offset of the first byte in the decompressed file",
        ),
        Column("size_bytes", COUNT, "Size of the event in bytes"),
        Column("line", COUNT, "log.file.line: line number of the header (1-based)"),
        Column(
            "logged_at",
            TIME,
            "timestamp: the time in the log line, never the time at which it was read",
        ),
        Column("level", TEXT, "severity_text: the level as logged"),
        Column("logger", TEXT, "logger.name"),
        Column("thread", TEXT, "thread.name"),
        Column("message", TEXT, "body: the message in the header line, redacted"),
        Column("continuation", TEXT, "Lines after the header that are not a stack trace"),
        Column("exception_type", TEXT, "exception.type of the thrown throwable"),
        Column("root_cause_type", TEXT, "exception.type of the last throwable of the chain"),
        Column("root_cause_message", TEXT, "exception.message of the last throwable"),
        FINGERPRINT,
        Column(
            "fingerprint_root_cause", TEXT, "Identity of the root cause, regardless of its wrappers"
        ),
        Column("fingerprint_user_frames", TEXT, "Identity of the location in user code"),
        Column("first_user_frame", TEXT, "code.function.name: innermost frame of user code"),
        Column("has_frames", FLAG, "Whether the trace has frames; true without a trace"),
        Column("product", TEXT, "The product that probably wrote the log, if known"),
        Column("flink_version", TEXT, "Flink version in the head of the file"),
        Column("job_id", TEXT, "flink.job.id"),
        Column("task", TEXT, "flink.task.name"),
        Column("subtask", SMALL, "flink.subtask.index (1-based, as Flink prints it)"),
        Column("parallelism", SMALL, "flink.task.parallelism"),
        Column("attempt", SMALL, "flink.attempt (0-based)"),
        Column("host", TEXT, "host.name"),
        Column("role", TEXT, "service.name: jobmanager, taskmanager, client or operator"),
        Column(
            "lifecycle", LIFECYCLE, "Change of a job, task, checkpoint, process or configuration"
        ),
        Column("matches", pa.list_(MATCH), "Signatures found in the event"),
        Column("occurrences", COUNT, "Number of equal events in the row"),
        Column("last_logged_at", TIME, "Time of the last event, if there are several"),
        Column(
            "spread",
            SPREAD,
            "Origins of the events in the row, if they differ from the origin of this event",
        ),
        Column("is_truncated", FLAG, "Whether the event exceeded the size limit"),
    ),
    skipped_by=("run_id", "deployment", "logged_at", "level"),
)

STACK_TRACES = Table(
    "stack_traces",
    "One row per distinct stack trace; stored once for each run that read it",
    (
        RUN_ID,
        FINGERPRINT,
        Column(
            "fingerprint_root_cause", TEXT, "Identity of the root cause, regardless of its wrappers"
        ),
        Column("fingerprint_user_frames", TEXT, "Identity of the location in user code"),
        Column("exception_type", TEXT, "exception.type of the thrown throwable"),
        Column("root_cause_type", TEXT, "exception.type of the last throwable of the chain"),
        Column("root_cause_message", TEXT, "exception.message of the last throwable"),
        Column("throwables", pa.list_(THROWABLE), "The chain, outermost first, with its frames"),
        Column("is_truncated", FLAG, "Whether the text starts or ends inside the trace"),
        Column("masked_text", TEXT, "The trace without the parts that vary between events"),
        Column("exemplar", TEXT, "exception.stacktrace: one trace as logged, redacted"),
        Column("event_count", COUNT, "Events with this trace"),
        Column("first_seen_at", TIME, "Time of the first event"),
        Column("last_seen_at", TIME, "Time of the last event"),
    ),
)

LOG_VOLUME = Table(
    "log_volume",
    "Number of events, notable or not, per file, level and minute",
    (
        RUN_ID,
        DEPLOYMENT,
        FILE_ID,
        PATH,
        Column("level", TEXT, "severity_text: the level as logged"),
        Column("minute", TIME, "Start of the minute; null before the first timestamp"),
        Column("line_count", COUNT, "Lines"),
        Column("byte_count", COUNT, "Bytes"),
        Column("event_count", COUNT, "Events"),
    ),
    skipped_by=("run_id", "deployment", "minute"),
)

MATCHES = Table(
    "matches",
    "One row per signature found in an event",
    (
        RUN_ID,
        DEPLOYMENT,
        Column("signature", TEXT, "Signature id"),
        Column("alternative", SMALL, "Index of the alternative of the signature (0-based)"),
        Column("captures", pa.map_(TEXT, TEXT), "Named groups of the signature's regex"),
        Column("excerpt", TEXT, "The text that matched, at most 400 characters"),
        Column("depth_from_root", SMALL, "0 at the root cause, 1 at its wrapper"),
        FILE_ID,
        GENERATION,
        PATH,
        Column("byte_offset", COUNT, "log.file.offset of the event"),
        Column("line", COUNT, "log.file.line of the text that matched (1-based)"),
        Column("logged_at", TIME, "timestamp"),
        FINGERPRINT,
        Column("job_id", TEXT, "flink.job.id"),
        Column("task", TEXT, "flink.task.name"),
        Column("subtask", SMALL, "flink.subtask.index (1-based, as Flink prints it)"),
    ),
)

REMATCHES = Table(
    "rematches",
    "One row per event whose matches differ in a later signature pack; the newest is current",
    (
        RUN_ID,
        DEPLOYMENT,
        FILE_ID,
        GENERATION,
        PATH,
        Column("byte_offset", COUNT, "log.file.offset of the event"),
        Column(
            "matches",
            pa.list_(MATCH),
            "Signatures found in the event, which replace its earlier matches",
        ),
        Column("unknown_count", COUNT, "Number of events whose text is not fully stored"),
        Column("signature_set", TEXT, "Digest of the signatures that were used"),
    ),
)

WHOLE_RUN_ID = Column(
    "whole_run_id", TEXT, "The last run that diagnosed all events of the deployment"
)

INCIDENTS = Table(
    "incidents",
    "One row per incident and per run that diagnosed it while it was open. The current rows "
    "of a deployment are the rows of its newest published run, and closed ones with the same "
    "whole_run_id",
    (
        RUN_ID,
        DEPLOYMENT,
        Column("incident_id", TEXT, "Id of the episode, the same in every run"),
        WHOLE_RUN_ID,
        Column("is_closed", FLAG, "Whether the incident is final: no later run writes it again"),
        Column("status", TEXT, "new, ongoing, worse or resolved since the last run; else null"),
        Column("job_id", TEXT, "flink.job.id"),
        Column("job_name", TEXT, "flink.job.name"),
        Column("flink_version", TEXT, "Flink version that was running"),
        Column("started_at", TIME, "First fault, or first event of a healthy deployment"),
        Column(
            "ended_at", TIME, "First completed checkpoint after the last fault, or the last event"
        ),
        Column("verdict", TEXT, "diagnosed, undetermined, or the reason why there is no failure"),
        Column("outcome", TEXT, "recovered, failed, ongoing or unknown"),
        Column("restarts", COUNT, "Restarts within the episode"),
        Column("root_cause_signature", TEXT, "Signature of the diagnosis at rank 1"),
        Column("severity", TEXT, "Severity of the diagnosis at rank 1"),
        Column("confidence", REAL, "Confidence of the diagnosis at rank 1, from 0 to 1"),
        Column("summary", TEXT, "The incident in one sentence"),
        Column("incident_json", TEXT, "The complete incident, as a report renders it"),
    ),
)

DEPLOYMENTS = Table(
    "deployments",
    "One row per deployment and per run that diagnosed it: the state for the next run",
    (
        RUN_ID,
        DEPLOYMENT,
        WHOLE_RUN_ID,
        Column("basis", TEXT, "Hash of the signatures, options and program version"),
        Column(
            "in_time_from",
            TIME,
            "New events before this time cause the next run to diagnose all events",
        ),
        Column("has_closed", FLAG, "Whether the deployment has a closed incident"),
        Column("carried", pa.binary(), "Events that the next run rereads, as an Arrow stream"),
        Column("unknown_json", TEXT, "All failures of the deployment without a signature"),
        Column("closed_unknown_json", TEXT, "Failures without a signature in closed episodes"),
    ),
)

DIAGNOSES = Table(
    "diagnoses",
    "One row per ranked explanation of an incident",
    (
        RUN_ID,
        DEPLOYMENT,
        Column("incident_id", TEXT, "Id of the incident"),
        Column("rank", SMALL, "1 is the most likely root cause, if the verdict is diagnosed"),
        Column("signature", TEXT, "Signature id"),
        Column("title", TEXT, "Title of the signature"),
        Column("severity", TEXT, "critical, major, minor or info"),
        Column("role", TEXT, "trigger, contributing, symptom, wrapper, loop-sustainer or benign"),
        Column("confidence", REAL, "Confidence, from 0 to 1"),
        Column("score", REAL, "Score by which the diagnoses of an incident are ranked"),
        Column("reasons", TEXTS, "The components of the score, as sentences"),
        Column("occurrences", COUNT, "Events that matched"),
        Column("first_seen_at", TIME, "Time of the first event"),
        Column("last_seen_at", TIME, "Time of the last event"),
        Column("subtasks", TEXTS, "Affected tasks and subtasks"),
        Column("hosts", TEXTS, "host.name of all affected hosts"),
        Column("captures", pa.map_(TEXT, TEXT), "Named groups of the signature's regex"),
        Column("explains", TEXTS, "Signatures in the incident that this diagnosis explains"),
        Column(
            "evidence",
            pa.list_(EVIDENCE),
            "Locations and excerpts of the log lines that support the diagnosis",
        ),
        Column("remediation_summary", TEXT, "The remediation, in one sentence"),
        Column("steps", TEXTS, "Steps of the remediation"),
        Column(
            "config", pa.list_(CONFIG_CHANGE), "Options to change, for the Flink version in use"
        ),
        Column("risk", TEXT, "live, restart, state-migration or data-loss"),
    ),
)

FLINK_CONFIG = Table(
    "flink_config",
    "Effective options per deployment, as its processes printed them; the current row of an option "
    "is the one printed last, and rows of a JobManager take precedence",
    (
        RUN_ID,
        DEPLOYMENT,
        Column("key", TEXT, "Option"),
        Column("value", TEXT, "Effective value, redacted"),
        Column("role", TEXT, "service.name of the process that printed the option"),
        Column("path", TEXT, "log.file.path of the log in which the option is printed"),
        Column("line", COUNT, "log.file.line"),
        Column("logged_at", TIME, "timestamp"),
    ),
)

# Views of the published, current rows, for readers.
TABLES: Mapping[str, Table] = {
    table.name: table
    for table in (
        LOG_FILES,
        EVENTS,
        STACK_TRACES,
        LOG_VOLUME,
        MATCHES,
        INCIDENTS,
        DIAGNOSES,
        FLINK_CONFIG,
        RUNS,
    )
}
