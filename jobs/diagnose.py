"""Job: diagnose the stored events of all deployments anew, without reading a log; publish."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from flink_triage.errors import FlinkTriageError
from flink_triage.local import Options
from flink_triage.spark.pipeline import diagnose_again
from flink_triage.spark.session import get_session
from flink_triage.spark.tables import Warehouse


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="flink-triage-diagnose", description=__doc__)
    parser.add_argument("--warehouse", metavar="DIR", help="folder or URI that holds the tables")
    parser.add_argument("--catalog", help="catalog of --schema")
    parser.add_argument("--schema", help="schema that holds the tables")
    parser.add_argument("--signatures", action="append", default=[], type=Path, metavar="DIR")
    parser.add_argument("--flink-version")
    arguments = parser.parse_args(argv)
    options = Options(
        flink_version=arguments.flink_version,
        signature_directories=tuple(arguments.signatures),
    )
    try:
        house = Warehouse(arguments.warehouse, arguments.catalog, arguments.schema)
        spark = get_session(size_bytes=None, warehouse=arguments.warehouse)
        print(diagnose_again(spark, house, options))
    except FlinkTriageError as error:
        print(f"flink-triage: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    code = main()
    if code:
        sys.exit(code)
