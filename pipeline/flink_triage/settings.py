"""The limits of all stages, with reasons, and the user's settings for reading logs."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


@dataclass(frozen=True, slots=True)
class Reading:
    """Properties of the logs that cannot be detected, and whether to mask personal data.

    ``encoding`` applies to files that are not UTF-8 and have no byte order mark. ``layouts`` are
    regexes for header lines, which are tried before the built-in layouts. With
    ``redacts_personal``, names of people and machines are masked like secrets.
    """

    encoding: str | None = None
    layouts: tuple[str, ...] = ()
    redacts_personal: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    reading: Reading = Reading()
    # A range is one task. At this size, the task overhead is negligible, and the load is still
    # balanced across cores.
    range_bytes: int = 64 * MIB
    # The rest of a longer line is only counted, because a 500 MB line must not be kept in memory.
    max_line_bytes: int = 1 * MIB
    # Of a longer event, only the head and tail are kept. A StackOverflowError prints 1,024 frames
    # per throwable.
    max_event_bytes: int = 512 * KIB
    # The maximum text length and time for one regex of a signature.
    max_match_chars: int = 64 * KIB
    regex_timeout_seconds: float = 0.25
    signature_budget_seconds: float = 10.0
    # A larger decompressed file is truncated and marked as partial.
    max_file_bytes: int = 64 * 1024 * MIB
    # Data from a pipe is stored on disk, and an endless pipe must not fill the disk.
    max_piped_bytes: int = 16 * GIB
    # An archive with more members is not a support bundle.
    max_archive_members: int = 10_000
    # Evidence lines kept per diagnosis; the others are only counted.
    max_evidence: int = 5
    # Differences from the last healthy start kept per incident; the others are only counted.
    max_changes: int = 20
    # Observations of one kind, file, and minute that a diagnosis uses; the others are only counted.
    max_observations_per_key: int = 10
    # Distinct traces of otherwise equal observations per minute; the others are only counted.
    max_traces_per_key: int = 100
    # Observations of a deployment that one process keeps (about 4 KB each). Above this limit, they
    # are folded over longer periods and with less detail.
    max_observations: int = 20_000
    # Time and memory limits for diagnosing one deployment, excluding the time and memory to read
    # it. A session cluster with 50,000 jobs takes a minute, and 300,000 distinct events take 1 GB.
    max_diagnosis_seconds: float = 300.0
    max_diagnosis_bytes: int = 2 * GIB
    # IDs of scoring and context rules to omit, to measure the effect of each rule.
    rules_left_out: frozenset[str] = frozenset()
    # If a file was modified within this time, an incomplete last event is held back.
    settle_seconds: float = 10.0
    # Excerpts in results must remain readable.
    max_excerpt_chars: int = 400
    # Stack traces in results are cut at this length; Flink's longest chains of distinct causes are
    # shorter.
    max_trace_chars: int = 16_000


DEFAULT_SETTINGS = Settings()
