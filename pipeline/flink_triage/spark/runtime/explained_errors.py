"""Exceptions of Spark, Delta and the disk in, errors that say what to do out.

Delta and the JVM bury the cause in a trace of hundreds of lines; the first known phrase decides.
Phrases: errno(3) as Java and Python print it, Delta's error classes, Spark's messages about
workers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from flink_triage.errors import CorruptStateError, EnvironmentProblem, FlinkTriageError

KEPT = "what was published before can be read, and the next run goes on from there"
DAMAGED = (
    "the tables are damaged: a file of Delta's log or of its data is missing or torn; "
    "restore the folder from a copy, or read the logs into a new warehouse"
)
_PHRASES: tuple[tuple[re.Pattern[str], type[FlinkTriageError], str], ...] = tuple(
    (re.compile(pattern), kind, words)
    for pattern, kind, words in (
        (
            r"No space left on device|Disk quota exceeded|File too large",
            EnvironmentProblem,
            f"no space left; free some and run again: {KEPT}",
        ),
        (
            r"Read-only file system",
            EnvironmentProblem,
            f"is on a read-only file system; mount it for writing and run again: {KEPT}",
        ),
        (
            r"Permission denied|AccessControlException|Mkdirs failed to create|AccessDenied",
            EnvironmentProblem,
            f"may not be written by this user; give it the right and run again: {KEPT}",
        ),
        (
            r"Status Code: 50[0234]|AWSServiceThrottled|AWSServiceIOException|SdkClientException",
            EnvironmentProblem,
            f"the store does not answer, or asks for fewer requests; run again later: {KEPT}",
        ),
        (
            r"OutOfMemoryError|GC overhead limit|Cannot allocate memory",
            EnvironmentProblem,
            f"Spark ran out of memory; raise FLINK_TRIAGE_DRIVER_MEMORY and run again: {KEPT}",
        ),
        (
            r"Python worker (exited unexpectedly|failed to connect)|ExecutorLostFailure",
            EnvironmentProblem,
            "a worker of Spark died, most often for want of memory; run again with fewer cores "
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
    """Replace known errors of storage, memory and workers at ``place`` by an error of one line.

    Other exceptions pass through.
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
    """The known error that ``text`` contains, or None."""
    for pattern, kind, words in _PHRASES:
        if pattern.search(text):
            return kind(f"{place}: {words}")
    return None


def damaged(location: str) -> CorruptStateError:
    """The error for a table that lacks a part."""
    return CorruptStateError(f"{location}: {DAMAGED}")
