"""Reads notable events of logs with ``spark.read.format("flink_logs").load(path)``.

The source is read-only and requires no warehouse or ledger; it is meant for notebooks and SQL. It
returns the same events as a run with the same grouping and otherwise default options, with two
exceptions: it folds the events further if a file has thousands of notable events, and it does not
hold back the last event of a file that was just written. A single task reads each file, so that
``line`` counts from the start of the file.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from flink_triage.analyzer import Analyzer, collector_at_rest
from flink_triage.diagnosis.timeline.fold import Folder
from flink_triage.errors import UsageError
from flink_triage.local import Options, pack_of
from flink_triage.logs.detect.profile import probe
from flink_triage.logs.inputs.byte_ranges import binned
from flink_triage.logs.inputs.files import InputFile, deployment_of, list_inputs
from flink_triage.logs.readers.byte_account import Tally
from flink_triage.model import ByteRange
from flink_triage.settings import DEFAULT_SETTINGS
from flink_triage.spark.tables.arrow_types import spark_schema
from flink_triage.spark.tables.row_codec import event_rows
from flink_triage.spark.tables.schemas import EVENTS

# Without a warehouse, these columns are unknown.
_OF_A_WAREHOUSE = ("run_id", "file_id", "generation")
SCHEMA = pa.schema([(c.name, c.type) for c in EVENTS.columns if c.name not in _OF_A_WAREHOUSE])
# Small files are combined into tasks of about this size.
TASK_BYTES = 64 << 20
_ROWS = 4_096


def register(spark: SparkSession) -> None:
    """Register the format ``flink_logs`` in the session."""
    spark.dataSource.register(FlinkLogs)


class FlinkLogs(DataSource):
    """The format ``flink_logs``.

    Its options are ``path`` (a path or a JSON list of paths) and ``groupBy`` (as ``--group-by``).
    """

    @classmethod
    def name(cls) -> str:
        return "flink_logs"

    def schema(self) -> str:
        return spark_schema(SCHEMA)

    def reader(self, schema: object) -> DataSourceReader:
        return FlinkLogsReader(
            _paths(self.options.get("path")), self.options.get("groupBy", "directory")
        )


def _paths(given: str | None) -> tuple[str, ...]:
    if not given:
        raise UsageError("flink_logs: no path given, expected load(path)")
    if given.startswith("["):
        return tuple(json.loads(given))
    return (given,)


class FlinkLogsReader(DataSourceReader):
    """Lists and plans on the driver (with Spark Connect, on the server), and reads in tasks."""

    def __init__(self, paths: Sequence[str], group_by: str) -> None:
        self._paths = tuple(paths)
        self._group_by = group_by

    def partitions(self) -> Sequence[InputPartition]:
        files = list_inputs(self._paths).files
        bins = binned(files, lambda file: file.size_bytes, TASK_BYTES)
        return [InputPartition(pickle.dumps(some)) for some in bins or [[]]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        analyzer = Analyzer(pack_of(Options()), DEFAULT_SETTINGS)
        files: list[InputFile] = pickle.loads(partition.value)
        for file in files:
            profile = probe(file, DEFAULT_SETTINGS)
            if profile.problem is not None:
                continue
            byte_range = ByteRange(profile, deployment_of(file, self._group_by))
            folder = Folder(DEFAULT_SETTINGS)
            with collector_at_rest():
                for portion in analyzer.read(byte_range, Tally()):
                    folder.add(portion.observations)
                observations = folder.take()
            for at in range(0, len(observations), _ROWS):
                rows = event_rows(observations[at : at + _ROWS], "", 0)
                batch = pa.RecordBatch.from_struct_array(rows)
                yield batch.select(SCHEMA.names)
