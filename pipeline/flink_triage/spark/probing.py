"""Files in, what their heads tell out; the heads of many are read by the workers."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from flink_triage.logs.files import InputFile
from flink_triage.logs.profile import PROBE_BYTES, probe
from flink_triage.logs.storage import StorageOptions, is_uri, use_options
from flink_triage.model import FileProfile
from flink_triage.settings import MIB, Settings
from flink_triage.spark.row_types import SMALL, spark_schema
from flink_triage.spark.workers import in_worker
from flink_triage.stages import collector_at_rest

PROBED = pa.schema([("bin", SMALL), ("profiles", pa.binary())])
# Below this a job costs more than it spares: a full head takes 5 ms, a small file a third of one.
FROM_BYTES = 64 * MIB
# Of a store each answer is waited for.
FROM_STORED_BYTES = 16 * MIB
OPENING_BYTES = 8 * 1024
# A task takes 0.1 s to start and to end: there are so many, and more where each has much to do.
FEW_BINS = 8
SMALLEST_BIN_BYTES = 4 * MIB
LARGEST_BIN_BYTES = 64 * MIB


def probe_files(
    spark: SparkSession, files: Sequence[InputFile], settings: Settings, storage: StorageOptions
) -> list[FileProfile]:
    """Profiles of the files, in their order."""
    total = sum(map(_work, files))
    is_stored = any(is_uri(file.path) for file in files)
    if total < (FROM_STORED_BYTES if is_stored else FROM_BYTES):
        return [probe(file, settings) for file in files]
    bins = _bins(files, min(max(total // FEW_BINS, SMALLEST_BIN_BYTES), LARGEST_BIN_BYTES))
    shipped = [pickle.dumps(members) for members in bins]
    function = in_worker(__name__, "probe_bins", shipped, pickle.dumps((settings, storage)))
    ids = spark.range(0, len(bins), 1, numPartitions=len(bins))
    found = ids.mapInArrow(function, spark_schema(PROBED)).toArrow().to_pylist()
    by_bin = {row["bin"]: pickle.loads(row["profiles"]) for row in found}
    return [profile for index in range(len(bins)) for profile in by_bin[index]]


def _work(file: InputFile) -> int:
    return min(file.size_bytes, PROBE_BYTES) + OPENING_BYTES


def _bins(files: Sequence[InputFile], size_bytes: int) -> list[list[InputFile]]:
    """Neighbours together, each bin about as much work."""
    bins: list[list[InputFile]] = []
    room = 0
    for file in files:
        if room <= 0:
            bins.append([])
            room = size_bytes
        bins[-1].append(file)
        room -= _work(file)
    return bins


def probe_bins(
    batches: Iterator[pa.RecordBatch], shipped: Sequence[bytes], shipped_config: bytes
) -> Iterator[pa.RecordBatch]:
    """Rows of ``PROBED`` for rows ``id``, in a worker."""
    settings, storage = pickle.loads(shipped_config)
    use_options(storage)
    for batch in batches:
        for index in batch.column(0).to_pylist():
            with collector_at_rest():
                profiles = [probe(file, settings) for file in pickle.loads(shipped[index])]
            yield pa.RecordBatch.from_pylist(
                [{"bin": index, "profiles": pickle.dumps(profiles)}], PROBED
            )
