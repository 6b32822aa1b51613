"""Job: read what is new in the inputs into the warehouse, diagnose it, publish.

For ``spark-submit`` and for a ``python_wheel_task``; prints the run's id.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import timezone
from pathlib import Path
from zoneinfo import ZoneInfo

from flink_triage.errors import FlinkTriageError
from flink_triage.local import Options
from flink_triage.spark.pipeline import run
from flink_triage.spark.starting import session_and_listing
from flink_triage.spark.tables import Warehouse


def add_warehouse(parser: argparse.ArgumentParser) -> None:
    """Where the tables are: a folder, or a schema of a catalog."""
    parser.add_argument("--warehouse", metavar="DIR", help="folder or URI that holds the tables")
    parser.add_argument("--catalog", help="catalog of --schema")
    parser.add_argument("--schema", help="schema that holds the tables")


def warehouse_of(arguments: argparse.Namespace) -> Warehouse:
    return Warehouse(arguments.warehouse, arguments.catalog, arguments.schema)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; returns the exit code, because a Databricks task fails on ``sys.exit(0)``."""
    parser = argparse.ArgumentParser(prog="flink-triage-ingest", description=__doc__)
    parser.add_argument("--input", action="append", required=True, metavar="PATH")
    add_warehouse(parser)
    parser.add_argument("--group-by", default="directory", metavar="directory|file|REGEX")
    parser.add_argument("--signatures", action="append", default=[], type=Path, metavar="DIR")
    parser.add_argument("--flink-version")
    parser.add_argument("--timezone", default="UTC")
    arguments = parser.parse_args(argv)
    options = Options(
        group_by=arguments.group_by,
        flink_version=arguments.flink_version,
        timezone=timezone.utc if arguments.timezone == "UTC" else ZoneInfo(arguments.timezone),
        signature_directories=tuple(arguments.signatures),
    )
    try:
        house = warehouse_of(arguments)
        spark, listing = session_and_listing(
            arguments.input, options, warehouse=arguments.warehouse
        )
        run_id = run(
            spark,
            arguments.input,
            house,
            options,
            progress=lambda message: print(message, file=sys.stderr),
            listing=listing,
        )
    except FlinkTriageError as error:
        print(f"flink-triage: {error}", file=sys.stderr)
        return error.exit_code
    print(run_id)
    return 0


if __name__ == "__main__":
    code = main()
    if code:
        sys.exit(code)
