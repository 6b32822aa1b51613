"""Paths and options in, a result out, through Spark and the tables."""

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
    warehouse: str | None,
    arguments: argparse.Namespace | None = None,
) -> Result:
    """Run the pipeline into ``warehouse`` (or the catalog of ``arguments``) and read it back."""
    house = _house(warehouse, arguments)
    spark, listing = _session_for(paths, options, arguments)
    return _run(spark, paths, listing, options, house, arguments)


def run_after_the_last(
    paths: Sequence[str], options: Options, arguments: argparse.Namespace
) -> tuple[Result | None, Result]:
    """Run the pipeline; return the results before (None at first) and after the run."""
    from flink_triage.spark.query.results import read_result
    from flink_triage.spark.tables.published import published_runs

    house = _house(arguments.warehouse, arguments)
    spark, listing = _session_for(paths, options, arguments)
    before = read_result(spark, house) if published_runs(spark, house) else None
    return before, _run(spark, paths, listing, options, house, arguments)


def _run(
    spark: SparkSession,
    paths: Sequence[str],
    listing: Listing | None,
    options: Options,
    house: Warehouse,
    arguments: argparse.Namespace | None,
) -> Result:
    from flink_triage.spark.pipeline import run
    from flink_triage.spark.query.results import read_result

    skipped = getattr(arguments, "skip_batch", None)
    progress = _progress(arguments)
    run(spark, paths, house, options, progress, listing=listing, skipped_batch=skipped)
    return read_result(spark, house)


def last_result(arguments: argparse.Namespace) -> Result:
    """The result of the newest published runs."""
    from flink_triage.spark.query.results import read_result

    house = _published_house(arguments)
    return read_result(_session(arguments, size_bytes=0), house)


def match_again(options: Options, arguments: argparse.Namespace) -> tuple[Result, Result]:
    """Match today's signatures against the stored events; return the results before and after."""
    from flink_triage.spark.pipeline import diagnose_again
    from flink_triage.spark.query.results import read_result

    house = _published_house(arguments)
    spark = _session(arguments, size_bytes=_size_of_tables(arguments))
    before = read_result(spark, house)
    diagnose_again(spark, house, options, _progress(arguments), is_rematch=True)
    return before, read_result(spark, house)


def maintain_tables(arguments: argparse.Namespace) -> None:
    """Compact the tables and remove old rows."""
    house = _published_house(arguments)
    from flink_triage.spark.maintain import Upkeep, maintain

    upkeep = Upkeep(arguments.keep_days, arguments.retention_hours)
    spark = _session(arguments, size_bytes=_size_of_tables(arguments))
    maintain(spark, house, upkeep, _progress(arguments))


def checks_of_worker(arguments: argparse.Namespace) -> list[Check]:
    """Checks of a worker of the session with ``--worker PATH``."""
    need_spark()
    from flink_triage.cli.worker_checks import check_worker, first_file

    first_file(arguments.worker)
    return check_worker(_session(arguments, size_bytes=0), arguments.worker)


def open_tables(arguments: argparse.Namespace) -> tuple[SparkSession, Warehouse]:
    """A session, and the tables that the flags name."""
    house = _published_house(arguments)
    return _session(arguments, size_bytes=0), house


def _size_of_tables(arguments: argparse.Namespace) -> int | None:
    from flink_triage.spark.starting import bytes_of, files_below

    warehouse = arguments.warehouse
    return bytes_of(files_below(warehouse)) if warehouse and not is_uri(warehouse) else None


def _house(warehouse: str | None, arguments: argparse.Namespace | None) -> Warehouse:
    need_spark()
    from flink_triage.spark.tables.warehouse import Warehouse

    catalog = getattr(arguments, "catalog", None)
    schema = getattr(arguments, "schema", None)
    return Warehouse(None, catalog, schema) if schema else Warehouse(warehouse)


def _published_house(arguments: argparse.Namespace) -> Warehouse:
    """The warehouse; raises ``UsageError`` if the local disk shows that no run is published.

    The disk of a server cannot be checked.
    """
    house = _house(arguments.warehouse, arguments)
    from flink_triage.spark.tables.schemas import RUNS

    if not getattr(arguments, "remote", None) and house.is_on_disk(RUNS) is False:
        raise house.unpublished()
    return house


def _session(arguments: argparse.Namespace | None, *, size_bytes: int | None) -> SparkSession:
    from flink_triage.spark.runtime.session import get_session

    return get_session(size_bytes=size_bytes, **_where(arguments))


def _session_for(
    paths: Sequence[str], options: Options, arguments: argparse.Namespace | None
) -> tuple[SparkSession, Listing | None]:
    from flink_triage.spark.starting import session_and_listing

    return session_and_listing(paths, options, **_where(arguments))


def _where(arguments: argparse.Namespace | None) -> dict[str, Any]:
    """Arguments of a session, from the flags."""
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

    def tell(message: str) -> None:
        print(f"{time.monotonic() - started:5.0f} s  {message}", file=sys.stderr)

    return tell
