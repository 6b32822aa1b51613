"""Wraps functions of this package so that Spark workers can run them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import flink_triage

ArrowFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def rows_in_tasks(spark: SparkSession, work: Iterable[bytes]) -> DataFrame:
    """One row ``id, work`` for each item, in a separate partition; ids count from 0."""
    column = pa.array(work, pa.binary())
    count = len(column)
    values = pa.table({"id": pa.array(range(count), pa.int64()), "work": column})
    ids = spark.range(0, count, 1, numPartitions=count)
    return ids.join(F.broadcast(spark.createDataFrame(values)), "id")


def in_worker(module: str, name: str, *shipped: Any) -> ArrowFunction:
    """Function for ``mapInArrow`` and ``applyInArrow`` that calls the generator ``name``.

    The generator is a function of ``module``; its arguments are the batches and ``shipped``. The
    returned function does not refer to modules of this package, so that a worker can first add the
    driver's copy of the package to its path; an installed wheel takes precedence. For the same
    reason, pass ``shipped`` as pickled bytes.
    """
    package_root = str(Path(flink_triage.__file__).parent.parent)
    folder = str(Path.cwd())

    def call(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import importlib
        import os
        import sys

        import pyarrow as pa

        # The default pool retains freed memory, about a tenth of a worker's memory.
        pa.set_memory_pool(pa.system_memory_pool())
        if package_root not in sys.path:
            sys.path.append(package_root)
        # Inputs may be relative to the driver's working directory.
        if os.path.isdir(folder):
            os.chdir(folder)
        yield from getattr(importlib.import_module(module), name)(batches, *shipped)

    return call
