"""Replaces known exceptions of Spark, Delta and the disk with errors that state what to do.

Delta and the JVM print the cause within a stack trace of hundreds of lines. The first pattern below
that matches this text determines the error. The patterns include errno(3) messages as
Java and Python print them, Delta's error classes, and Spark's messages about workers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from flink_triage.errors import CorruptStateError, EnvironmentProblem, FlinkTriageError

KEPT = "published results are still readable, and the next run continues from there"
DAMAGED = (
    "the tables are damaged: a file of the Delta log or of the data is missing or incomplete; "
    "restore the folder from a backup, or read the logs into a new warehouse"
)
_EXPLANATIONS: tuple[tuple[re.Pattern[str], type[FlinkTriageError], str], ...] = tuple(
    (re.compile(pattern), kind, words)
    for pattern, kind, words in (
        (
            r"No space left on device|Disk quota exceeded|File too large",
            EnvironmentProblem,
            f"no space left; free some space and run again: {KEPT}",
        ),
        (
            r"Read-only file system",
            EnvironmentProblem,
            f"is on a read-only file system; mount it for writing and run again: {KEPT}",
        ),
        (
            r"Permission denied|AccessControlException|Mkdirs failed to create|AccessDenied",
            EnvironmentProblem,
            f"is not writable by this user; grant write access and run again: {KEPT}",
        ),
        (
            r"Status Code: 50[0234]|AWSServiceThrottled|AWSServiceIOException|SdkClientException",
            EnvironmentProblem,
            f"the object store does not respond or throttles requests; run again later: {KEPT}",
        ),
        (
            r"OutOfMemoryError|GC overhead limit|Cannot allocate memory",
            EnvironmentProblem,
            f"Spark ran out of memory; raise FLINK_TRIAGE_DRIVER_MEMORY and run again: {KEPT}",
        ),
        (
            r"Python worker (exited unexpectedly|failed to connect)|ExecutorLostFailure",
            EnvironmentProblem,
            "a Spark worker died, usually because it ran out of memory; run again with fewer cores "
            f"(--master 'local[1]') or more memory: {KEPT}",
        ),
        (
            r"DELTA_(TRUNCATED|LOG_FILE|VERSIONS_NOT|STATE_RECOVER|MISSING_(TRANSACTION|DELTA)|"
            r"TABLE_NOT_FOUND|SCHEMA_NOT_SET|INVALID_CHECKPOINT|CHECKPOINT_|NO_COMMITS)|"
            r"ChecksumException|JsonParseException|JsonEOFException|MALFORMED_RECORD|"
            r"is not a Parquet file|"
            r"FAILED_READ_FILE|SparkFileNotFoundException",
            CorruptStateError,
            DAMAGED,
        ),
    )
)


@contextmanager
def explained(place: str) -> Iterator[None]:
    """Replace known errors of storage, memory, workers and tables with a one-line error.

    The message begins with ``place``. Other exceptions pass through.
    """
    try:
        yield
    except FlinkTriageError:
        raise
    except (PySparkException, OSError, RuntimeError) as error:
        found = explanation(str(error), place)
        if found is None:
            raise
        raise found from error
    except Exception as error:
        # py4j's errors share no base class with Spark's own, and do not exist under Connect.
        found = explanation(str(error), place) if _is_of_the_jvm(error) else None
        if found is None:
            raise
        raise found from error


def _is_of_the_jvm(error: Exception) -> bool:
    return type(error).__module__.startswith("py4j.")


def explanation(text: str, place: str) -> FlinkTriageError | None:
    """The error for the first pattern that matches ``text``; ``None`` if no pattern matches."""
    for pattern, kind, words in _EXPLANATIONS:
        if pattern.search(text):
            return kind(f"{place}: {words}")
    return None


def damaged(location: str) -> CorruptStateError:
    """The error for a table with missing or incomplete files."""
    return CorruptStateError(f"{location}: {DAMAGED}")
