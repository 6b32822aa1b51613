"""Limits of all stages, each with its reason, and the user's settings for reading the logs."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


@dataclass(frozen=True, slots=True)
class Reading:
    """Properties of the logs that only the user knows, and data that must not be stored.

    ``encoding`` applies to files that are not UTF-8 and have no byte order mark. ``layouts`` are
    regexes of header lines, tried before the built-in layouts. With ``redacts_personal``, names of
    people and machines are masked like secrets.
    """

    encoding: str | None = None
    layouts: tuple[str, ...] = ()
    redacts_personal: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    reading: Reading = Reading()
    # A range is one task: start-up cost is negligible, but cores are still balanced.
    range_bytes: int = 64 * MIB
    # The rest of a longer line is only counted: a 500 MB line must not be kept in memory.
    max_line_bytes: int = 1 * MIB
    # A StackOverflowError prints 1,024 frames per throwable; head and tail of an event are kept.
    max_event_bytes: int = 512 * KIB
    # Maximum text and time for one regex of a signature.
    max_match_chars: int = 64 * KIB
    regex_timeout_seconds: float = 0.25
    signature_budget_seconds: float = 10.0
    # A larger decompressed file is cut and marked as partial.
    max_file_bytes: int = 64 * 1024 * MIB
    # Data from a pipe is stored on disk; an endless pipe must not fill it.
    max_piped_bytes: int = 16 * GIB
    # A larger archive is not a support bundle.
    max_archive_members: int = 10_000
    # Evidence lines kept per diagnosis; the rest is counted.
    max_evidence: int = 5
    # Differences from the last healthy start kept per incident; the rest is counted.
    max_changes: int = 20
    # Observations of one kind, file and minute that a diagnosis uses; the rest is counted.
    max_observations_per_key: int = 10
    # Distinct traces of otherwise equal observations per minute; the rest is counted.
    max_traces_per_key: int = 100
    # Observations of a deployment that one process keeps (about 4 KB each); above that, kinds cover
    # longer periods with less detail.
    max_observations: int = 20_000
    # Limits for diagnosing one deployment, in addition to reading it: a session cluster with 50,000
    # jobs takes a minute, and 300,000 distinct events take 1 GB.
    max_diagnosis_seconds: float = 300.0
    max_diagnosis_bytes: int = 2 * GIB
    # Ids of scoring and context rules to omit, to measure the effect of each.
    rules_left_out: frozenset[str] = frozenset()
    # An unfinished last event of a file that was modified this recently is held back.
    settle_seconds: float = 10.0
    # Excerpts in results are read by people.
    max_excerpt_chars: int = 400
    # A stack trace in a result: Flink's longest chains of distinct causes are shorter.
    max_trace_chars: int = 16_000


DEFAULT_SETTINGS = Settings()
