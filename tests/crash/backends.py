"""Locates the tables of the crash tests: in a folder, in S3, or in a schema (``CRASH_BACKEND``).

In all three cases, the files of a warehouse are in a local folder, so that the tests can copy the
warehouse and read its tables without Spark.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from flink_triage.spark.tables.table_names import STORED
from tests.e2e.object_store import served

BACKENDS = ("local", "s3", "catalog")
BACKEND = os.environ.get("CRASH_BACKEND", "local")
assert BACKEND in BACKENDS, f"CRASH_BACKEND: got {BACKEND!r}, allowed: {', '.join(BACKENDS)}"
BUCKET = "s3a://tables"

only_local = pytest.mark.skipif(BACKEND != "local", reason="requires the lock of a local folder")


@contextmanager
def tables_below(folder: Path) -> Iterator[Path]:
    """The folder for warehouses; workers that start within the block have access to it."""
    if BACKEND != "s3":
        yield folder
        return
    with served(folder) as store, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_CONF_DIR", str(store.configure(folder / "conf")))
        yield store.folder / "tables"


def place_of(spark: SparkSession, warehouse: Path) -> dict[str, str]:
    """The arguments of ``Warehouse`` for the tables whose files are in the folder."""
    if BACKEND == "s3":
        return {"directory": f"{BUCKET}/{warehouse.name}"}
    if BACKEND == "catalog":
        return {"schema": _schema_of(spark, warehouse)}
    return {"directory": str(warehouse)}


def _schema_of(spark: SparkSession, warehouse: Path) -> str:
    """A schema that contains the tables of the folder.

    The catalog is the in-memory catalog of the session. It is empty in a new session, so the tables
    that earlier drivers created are added to it.
    """
    schema = "s_" + re.sub(r"\W", "_", warehouse.name)
    spark.sql(f"CREATE SCHEMA IF NOT EXISTS {schema} LOCATION '{warehouse}'")
    for table in STORED.values():
        folder = warehouse / table.stored_name
        if any((folder / "_delta_log").glob("[0-9]*.json")):
            name = f"{schema}.{table.stored_name}"
            spark.sql(f"CREATE TABLE IF NOT EXISTS {name} USING delta LOCATION '{folder}'")
    return schema
