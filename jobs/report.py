"""Job: render what the newest published runs found, without new work."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from flink_triage.errors import FlinkTriageError
from flink_triage.report import render
from flink_triage.spark.results import read_result
from flink_triage.spark.session import get_session
from flink_triage.spark.tables import Warehouse


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="flink-triage-report", description=__doc__)
    parser.add_argument("--warehouse", metavar="DIR", help="folder or URI that holds the tables")
    parser.add_argument("--catalog", help="catalog of --schema")
    parser.add_argument("--schema", help="schema that holds the tables")
    parser.add_argument(
        "--format", default="text", choices=("text", "json", "markdown", "html"), dest="form"
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="default: standard output")
    arguments = parser.parse_args(argv)
    try:
        house = Warehouse(arguments.warehouse, arguments.catalog, arguments.schema)
        text = render(
            read_result(get_session(warehouse=arguments.warehouse), house), arguments.form
        )
    except FlinkTriageError as error:
        print(f"flink-triage: {error}", file=sys.stderr)
        return error.exit_code
    if arguments.output is None:
        print(text)
    else:
        arguments.output.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    code = main()
    if code:
        sys.exit(code)
