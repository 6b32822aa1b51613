"""Runs checks inside a Spark worker.

``doctor`` checks the machine that it runs on. On serverless compute and on a cluster, the workers
are different machines. There, memory is limited, and so are the files that a user-defined function
may open and the modules that it may import.
"""

from __future__ import annotations

import os
import platform
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from flink_triage import __version__
from flink_triage.cli.demo import demo_logs
from flink_triage.errors import FlinkTriageError, UsageError
from flink_triage.local import Options, run_local
from flink_triage.logs.inputs.files import open_binary
from flink_triage.logs.inputs.storage import is_uri
from flink_triage.settings import KIB, MIB

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from flink_triage.spark.runtime.doctor import Check

# Resident memory for diagnosing a deployment with many failures (docs/performance.md).
WORKER_BYTES = 600 * MIB
_HEAD_BYTES = 64 * KIB


def check_worker(spark: SparkSession, path: str) -> list[Check]:
    """Run the checks in a worker, each in a separate query, because a check may kill the worker.

    ``path`` is a URI, a file, or a folder with a file in it. Raises ``UsageError`` for other paths.
    """
    file = first_file(path)
    return [
        _check_in_worker(spark, "worker", lambda: describe_worker()),
        _check_in_worker(spark, "input", lambda: read_head(file)),
        _check_in_worker(spark, "diagnosis", lambda: diagnose_demo()),
        _check_in_worker(spark, "memory", lambda: hold_memory(WORKER_BYTES)),
    ]


def first_file(path: str) -> str:
    """The path itself if it is a URI or a file, or else one of the files below the folder.

    Raises ``UsageError`` if there is no such file. Not all files of the folder are listed.
    """
    if is_uri(path) or os.path.isfile(path):
        return path
    for folder, _, names in os.walk(path):
        if names:
            return os.path.join(folder, min(names))
    raise UsageError(
        f"--worker: got {path}, expected a URI, a log file, or a folder that contains a log file"
    )


def describe_worker() -> str:
    return f"flink-triage {__version__} on Python {platform.python_version()}"


def read_head(file: str) -> str:
    with open_binary(file) as stream:
        head = stream.read(_HEAD_BYTES)
    return f"read {len(head):,} bytes of {file}"


def diagnose_demo() -> str:
    """Diagnose the logs in the package; this loads Hyperscan, the signatures, and their data."""
    result = run_local([str(path) for path in demo_logs()], Options(workers=1))
    found = sorted({d.signature for i in result.incidents for d in i.diagnoses if d.rank == 1})
    if not found:
        raise FlinkTriageError("the demo logs were read, but none of their failures were found")
    return f"found {', '.join(found)}"


def hold_memory(wanted_bytes: int) -> str:
    """Keep ``wanted_bytes`` resident in this process; a worker that exceeds its limit is killed."""
    before = _resident_bytes()
    # These pages are written, unlike the pages of a bytearray of zeros.
    held = b"\x01" * max(0, wanted_bytes - before)
    return f"{(before + len(held)) // MIB} MiB resident, {wanted_bytes // MIB} MiB required"


def _resident_bytes() -> int:
    """Resident memory of this process; 0 without ``/proc``, so that the check allocates more."""
    try:
        pages = Path("/proc/self/statm").read_text().split()[1]
    except OSError:
        return 0
    return int(pages) * resource.getpagesize()


def _check_in_worker(spark: SparkSession, name: str, look: Callable[[], str]) -> Check:
    from flink_triage.spark.runtime.doctor import Check

    def in_worker(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            try:
                state, detail = "ok", look()
            except Exception as error:
                state, detail = "problem", f"{type(error).__name__}: {error}"
            yield pa.RecordBatch.from_pydict({"state": [state], "detail": [detail]})

    try:
        frame = spark.range(0, 1, 1, 1).mapInArrow(in_worker, "state string, detail string")
        row = frame.collect()[0]
    except Exception as error:  # Killed workers raise different exceptions on different platforms.
        return Check(name, "problem", _cause(str(error)))
    return Check(name, row["state"], row["detail"])


def _cause(message: str) -> str:
    """The Python error at the end of a worker's traceback, or the first line."""
    lines = [line.strip() for line in message.split("\n") if line.strip()]
    errors = [line for line in lines if line.partition(":")[0].endswith("Error")]
    return errors[-1] if errors else next(iter(lines), "the worker ended without a message")
