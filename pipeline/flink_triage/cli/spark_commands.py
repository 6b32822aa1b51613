"""Runs the commands that use Spark and the tables."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from flink_triage.errors import EnvironmentProblem
from flink_triage.local import Options
from flink_triage.logs.inputs.files import Listing
from flink_triage.logs.inputs.storage import is_uri
from flink_triage.model import Result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from flink_triage.spark.runtime.doctor import Check
    from flink_triage.spark.tables.warehouse import Warehouse

Progress = Callable[[str], None]


def run_on_spark(
    paths: Sequence[str],
    options: Options,
    folder: str | None,
    arguments: argparse.Namespace | None = None,
) -> Result:
    """Run the pipeline with tables in ``folder``, or in a catalog, and return the result."""
    warehouse = _warehouse_of(folder, arguments)
    spark, listing = _session_for(paths, options, arguments)
    return _run(spark, paths, listing, options, warehouse, arguments)


def run_after_the_last(
    paths: Sequence[str], options: Options, arguments: argparse.Namespace
) -> tuple[Result | None, Result]:
    """Run the pipeline; return the results before (None for the first run) and after the run."""
    from flink_triage.spark.query.read_result import read_result
    from flink_triage.spark.tables.published_runs import published_runs

    warehouse = _warehouse_of(arguments.warehouse, arguments)
    spark, listing = _session_for(paths, options, arguments)
    before = read_result(spark, warehouse) if published_runs(spark, warehouse) else None
    return before, _run(spark, paths, listing, options, warehouse, arguments)


def _run(
    spark: SparkSession,
    paths: Sequence[str],
    listing: Listing | None,
    options: Options,
    warehouse: Warehouse,
    arguments: argparse.Namespace | None,
) -> Result:
    from flink_triage.spark.pipeline import run
    from flink_triage.spark.query.read_result import read_result

    skipped = getattr(arguments, "skip_batch", None)
    progress = _progress(arguments)
    run(spark, paths, warehouse, options, progress, listing=listing, skipped_batch=skipped)
    return read_result(spark, warehouse)


def last_result(arguments: argparse.Namespace) -> Result:
    """The result of the newest published run of each deployment."""
    from flink_triage.spark.query.read_result import read_result

    warehouse = _published_warehouse(arguments)
    return read_result(_session(arguments, size_bytes=0), warehouse)


def match_again(options: Options, arguments: argparse.Namespace) -> tuple[Result, Result]:
    """Match the current signatures against stored events; return the results before and after."""
    from flink_triage.spark.pipeline import diagnose_again
    from flink_triage.spark.query.read_result import read_result

    warehouse = _published_warehouse(arguments)
    spark = _session(arguments, size_bytes=_size_of_tables(arguments))
    before = read_result(spark, warehouse)
    diagnose_again(spark, warehouse, options, _progress(arguments), is_rematch=True)
    return before, read_result(spark, warehouse)


def maintain_tables(arguments: argparse.Namespace) -> None:
    """Compact the tables, and remove old batches, unused files and, on request, other old rows."""
    warehouse = _published_warehouse(arguments)
    from flink_triage.spark.maintain import Upkeep, maintain

    upkeep = Upkeep(arguments.keep_days, arguments.retention_hours)
    spark = _session(arguments, size_bytes=_size_of_tables(arguments))
    maintain(spark, warehouse, upkeep, _progress(arguments))


def checks_of_worker(arguments: argparse.Namespace) -> list[Check]:
    """Check a worker of a new session, for ``doctor --worker PATH``."""
    need_spark()
    from flink_triage.cli.worker_checks import check_worker, first_file

    first_file(arguments.worker)
    return check_worker(_session(arguments, size_bytes=0), arguments.worker)


def open_tables(arguments: argparse.Namespace) -> tuple[SparkSession, Warehouse]:
    """A session, and the tables that the flags locate."""
    warehouse = _published_warehouse(arguments)
    return _session(arguments, size_bytes=0), warehouse


def _size_of_tables(arguments: argparse.Namespace) -> int | None:
    from flink_triage.spark.startup import bytes_of, files_below

    folder = arguments.warehouse
    return bytes_of(files_below(folder)) if folder and not is_uri(folder) else None


def _warehouse_of(folder: str | None, arguments: argparse.Namespace | None) -> Warehouse:
    need_spark()
    from flink_triage.spark.tables.warehouse import Warehouse

    catalog = getattr(arguments, "catalog", None)
    schema = getattr(arguments, "schema", None)
    return Warehouse(None, catalog, schema) if schema else Warehouse(folder)


def _published_warehouse(arguments: argparse.Namespace) -> Warehouse:
    """The warehouse; raises ``UsageError`` if the local disk contains no published run.

    The disk of a remote server cannot be checked.
    """
    warehouse = _warehouse_of(arguments.warehouse, arguments)
    from flink_triage.spark.tables.schemas import RUNS

    if not getattr(arguments, "remote", None) and warehouse.is_on_disk(RUNS) is False:
        raise warehouse.unpublished()
    return warehouse


def _session(arguments: argparse.Namespace | None, *, size_bytes: int | None) -> SparkSession:
    from flink_triage.spark.runtime.session import get_session

    return get_session(size_bytes=size_bytes, **_where(arguments))


def _session_for(
    paths: Sequence[str], options: Options, arguments: argparse.Namespace | None
) -> tuple[SparkSession, Listing | None]:
    from flink_triage.spark.startup import session_and_listing

    return session_and_listing(paths, options, **_where(arguments))


def _where(arguments: argparse.Namespace | None) -> dict[str, Any]:
    """The arguments for a session, from the flags."""
    return {
        "master": getattr(arguments, "master", None),
        "remote": getattr(arguments, "remote", None),
        "verbose": getattr(arguments, "verbose", False),
        "warehouse": getattr(arguments, "warehouse", None),
    }


def need_spark() -> None:
    try:
        import pyspark  # noqa: F401
    except ImportError:
        raise EnvironmentProblem(
            "Spark is not installed: pip install 'flink-triage[spark]', or use diagnose"
        ) from None


def _progress(arguments: argparse.Namespace | None) -> Progress:
    if arguments is None or arguments.quiet:
        return lambda message: None
    started = time.monotonic()

    def print_progress(message: str) -> None:
        print(f"{time.monotonic() - started:5.0f} s  {message}", file=sys.stderr)

    return print_progress
