"""Limits of the stages, with their reasons, and the user's settings for reading logs."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


@dataclass(frozen=True, slots=True)
class Reading:
    """Properties of the logs that cannot be detected, and whether to mask personal data.

    ``encoding`` applies to files whose encoding is not detected. ``layouts`` are regexes for header
    lines, which are tried before the built-in layouts. With ``redacts_personal``, email and IP
    addresses, host names, and user names are masked.
    """

    encoding: str | None = None
    layouts: tuple[str, ...] = ()
    redacts_personal: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    reading: Reading = Reading()
    # At this size, the overhead per range is negligible, and the load is still balanced across
    # cores.
    range_bytes: int = 64 * MIB
    # The rest of a longer line is not stored, because a 500 MB line must not be kept in memory.
    max_line_bytes: int = 1 * MIB
    # Of a longer event, only the head and tail are kept. A StackOverflowError prints 1,024 frames
    # per throwable.
    max_event_bytes: int = 512 * KIB
    # The maximum text length for matching, the timeout of one regex on one event, and the total
    # time of a signature's regexes in one process.
    max_match_chars: int = 64 * KIB
    regex_timeout_seconds: float = 0.25
    signature_budget_seconds: float = 10.0
    # A larger file, compressed or not, is read up to this size and reported as partial. Also limits
    # the total size of the members of an archive.
    max_file_bytes: int = 64 * 1024 * MIB
    # Data from a pipe is stored in a temporary file, and an endless pipe must not fill the disk.
    max_piped_bytes: int = 16 * GIB
    # Members of an archive beyond this number are not read. Support bundles have fewer members.
    max_archive_members: int = 10_000
    # Evidence lines kept per diagnosis and per unknown failure; the others are only counted.
    max_evidence: int = 5
    # Differences from the last healthy start kept per incident; the others are only counted.
    max_changes: int = 20
    # Observations kept per kind, stack trace, file, and minute; the others are only counted.
    # ``fold_grains`` lists the exceptions.
    max_observations_per_key: int = 10
    # Distinct traces kept of otherwise equal observations per minute; the others are only counted.
    max_traces_per_key: int = 100
    # Observations of a deployment that one process keeps (about 4 KB each). Above this limit, they
    # are folded over longer periods and with less detail.
    max_observations: int = 20_000
    # Limits on the CPU time and memory for diagnosing one deployment, without reading its logs. A
    # session cluster with 50,000 jobs takes a minute, and 300,000 distinct events take 1 GB.
    max_diagnosis_seconds: float = 300.0
    max_diagnosis_bytes: int = 2 * GIB
    # IDs of scoring and context rules to omit, to measure the effect of each rule.
    rules_left_out: frozenset[str] = frozenset()
    # In Spark runs, the last event of a file that was modified within this time is left to the
    # next run, because it may be incomplete, except in compressed files and log store exports.
    settle_seconds: float = 10.0
    # Longer excerpts in results are cut, so that they remain readable.
    max_excerpt_chars: int = 400
    # The middle of longer stack traces in results is omitted.
    max_trace_chars: int = 16_000


DEFAULT_SETTINGS = Settings()
