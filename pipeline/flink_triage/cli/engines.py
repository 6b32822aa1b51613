"""Paths and options in, a result out, by way of Spark and the tables."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import EnvironmentProblem
from ..local import Options
from ..logs.storage import is_uri
from ..model import Result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ..spark.tables import Warehouse

Progress = Callable[[str], None]


def run_on_spark(
    paths: Sequence[str],
    options: Options,
    warehouse: str | None,
    arguments: argparse.Namespace | None = None,
) -> Result:
    """Run the pipeline into ``warehouse`` (or the catalog of ``arguments``) and read it back."""
    from ..spark.pipeline import run
    from ..spark.results import read_result

    house = _house(warehouse, arguments)
    spark = _session(arguments, size_bytes=_size(paths))
    run(spark, paths, house, options, _progress(arguments))
    return read_result(spark, house)


def run_after_the_last(
    paths: Sequence[str], options: Options, arguments: argparse.Namespace
) -> tuple[Result | None, Result]:
    """Run the pipeline; what was published before it (None at first), and after."""
    from ..spark.results import read_result
    from ..spark.schemas import RUNS

    house = _house(arguments.warehouse, arguments)
    spark = _session(arguments, size_bytes=_size(paths))
    before = read_result(spark, house) if house.exists(spark, RUNS) else None
    return before, run_on_spark(paths, options, arguments.warehouse, arguments)


def last_result(arguments: argparse.Namespace) -> Result:
    """What the newest published runs found."""
    from ..spark.results import read_result

    return read_result(_session(arguments, size_bytes=0), _house(arguments.warehouse, arguments))


def match_again(options: Options, arguments: argparse.Namespace) -> tuple[Result, Result]:
    """Look for today's signatures in the stored events; what was published before, and after."""
    from ..spark.pipeline import diagnose_again
    from ..spark.results import read_result

    house = _house(arguments.warehouse, arguments)
    spark = _session(arguments, size_bytes=_size_of_tables(arguments))
    before = read_result(spark, house)
    diagnose_again(spark, house, options, _progress(arguments), is_rematch=True)
    return before, read_result(spark, house)


def maintain_tables(arguments: argparse.Namespace) -> None:
    """Join small files of the tables, and remove what is old."""
    house = _house(arguments.warehouse, arguments)
    from ..spark.upkeep import Upkeep, maintain

    upkeep = Upkeep(arguments.keep_days, arguments.retention_hours)
    spark = _session(arguments, size_bytes=_size_of_tables(arguments))
    maintain(spark, house, upkeep, _progress(arguments))


def open_tables(arguments: argparse.Namespace) -> tuple[SparkSession, Warehouse]:
    """A session, and the tables that the flags name."""
    house = _house(arguments.warehouse, arguments)
    return _session(arguments, size_bytes=0), house


def _size_of_tables(arguments: argparse.Namespace) -> int | None:
    return _size([arguments.warehouse]) if arguments.warehouse else None


def _house(warehouse: str | None, arguments: argparse.Namespace | None) -> Warehouse:
    _need_spark()
    from ..spark.tables import Warehouse

    catalog = getattr(arguments, "catalog", None)
    schema = getattr(arguments, "schema", None)
    return Warehouse(None, catalog, schema) if schema else Warehouse(warehouse)


def _session(arguments: argparse.Namespace | None, *, size_bytes: int | None) -> SparkSession:
    from ..spark.session import get_session

    return get_session(
        master=getattr(arguments, "master", None),
        remote=getattr(arguments, "remote", None),
        verbose=getattr(arguments, "verbose", False),
        size_bytes=size_bytes,
        warehouse=getattr(arguments, "warehouse", None),
    )


def _need_spark() -> None:
    try:
        import pyspark  # noqa: F401
    except ImportError:
        raise EnvironmentProblem(
            "Spark is not installed: pip install 'flink-triage[spark]', or use diagnose"
        ) from None


def _size(paths: Sequence[str]) -> int | None:
    total = 0
    if any(map(is_uri, paths)):
        # Listing an object store twice costs.
        return None
    for path in map(Path, paths):
        files = path.rglob("*") if path.is_dir() else [path]
        total += sum(file.stat().st_size for file in files if file.is_file())
    return total


def _progress(arguments: argparse.Namespace | None) -> Progress:
    if arguments is None or arguments.quiet:
        return lambda message: None
    started = time.monotonic()

    def tell(message: str) -> None:
        print(f"{time.monotonic() - started:5.0f} s  {message}", file=sys.stderr)

    return tell
