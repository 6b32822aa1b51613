"""Limits, each with its reason, and what the user says of the logs; every stage is given both."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


@dataclass(frozen=True, slots=True)
class Reading:
    """What the user knows of the logs and they do not say, and what must not be kept of them.

    ``encoding`` is that of files that are not UTF-8 and have no byte order mark.  ``layouts`` are
    regexes of header lines, tried before the known layouts.  With ``redacts_personal`` names of
    people and machines are masked like secrets.
    """

    encoding: str | None = None
    layouts: tuple[str, ...] = ()
    redacts_personal: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    reading: Reading = Reading()
    # A range is one task: large enough that start-up cost vanishes, small enough to balance cores.
    range_bytes: int = 64 * MIB
    # A line beyond this is cut (its length and hash are kept): one 500 MB line must not be held.
    max_line_bytes: int = 1 * MIB
    # A StackOverflowError prints 1,024 frames per throwable; head and tail of an event are kept.
    max_event_bytes: int = 512 * KIB
    # What a regex of a signature may look at, and for how long.
    max_match_chars: int = 64 * KIB
    regex_timeout_seconds: float = 0.25
    signature_budget_seconds: float = 10.0
    # A decompressed file beyond this is cut and marked partial.
    max_file_bytes: int = 64 * 1024 * MIB
    # What comes through a pipe is kept on disk; an endless one must not fill it.
    max_piped_bytes: int = 16 * GIB
    # An archive of more members is no support bundle.
    max_archive_members: int = 10_000
    # Evidence lines kept per diagnosis; the rest is counted.
    max_evidence: int = 5
    # Differences from the last healthy start kept per incident; the rest is counted.
    max_changes: int = 20
    # Observations of one kind, file and minute that a diagnosis looks at; the rest is counted.
    max_observations_per_key: int = 10
    # Traces, apart from which they are of one kind, that it tells apart in a minute.
    max_traces_per_key: int = 100
    # Observations of a deployment that one process holds (some 4 KB each): of more, longer periods
    # and less detail make up one kind.
    max_observations: int = 20_000
    # What diagnosing one deployment may take, beside reading it: a session cluster with 50,000 jobs
    # takes a minute, 300,000 events that all differ take 1 GB.
    max_diagnosis_seconds: float = 300.0
    max_diagnosis_bytes: int = 2 * GIB
    # Ids of scoring and context rules to leave out, to measure what each decides.
    rules_left_out: frozenset[str] = frozenset()
    # An unfinished last event of a file that was written to so recently is held back.
    settle_seconds: float = 10.0
    # Excerpts in results are for people.
    max_excerpt_chars: int = 400
    # A stack trace in a result: Flink's longest chains of distinct causes stay below this.
    max_trace_chars: int = 16_000


DEFAULT_SETTINGS = Settings()
