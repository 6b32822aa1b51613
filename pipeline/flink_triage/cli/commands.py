"""Runs each command with its parsed arguments, and returns its exit code."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from flink_triage import exit_codes
from flink_triage.api import diagnose as diagnose_here
from flink_triage.cli.alerting import addresses_of, alert
from flink_triage.cli.arguments import options_of
from flink_triage.cli.demo import demo_logs
from flink_triage.cli.outputs import write_outputs
from flink_triage.cli.progress import ProgressLine
from flink_triage.cli.standard_input import piped_inputs
from flink_triage.errors import UsageError
from flink_triage.local import Options, pack_of
from flink_triage.model import Result
from flink_triage.report.facts.sanitize import clean


def diagnose(arguments: argparse.Namespace) -> int:
    """Run the stages on this machine without Spark, or on Spark with a temporary warehouse."""
    options = options_of(arguments)
    with piped_inputs(arguments.paths) as paths:
        if arguments.engine == "spark":
            return _on_spark(paths, options, arguments, None)
        return _here(paths, options, arguments)


def run(arguments: argparse.Namespace) -> int:
    options = options_of(arguments)
    addresses = addresses_of(arguments)
    need_tables(arguments)
    if arguments.rematch:
        from flink_triage.cli.spark_commands import match_again

        _warn_of_skipped_files(options)
        known, after = match_again(options, arguments)
        if addresses:
            alert(known, after, addresses)
        return write_outputs(after, arguments)
    if not addresses:
        return _on_spark(arguments.paths, options, arguments, arguments.warehouse)
    from flink_triage.cli.spark_commands import run_after_the_last

    _warn_of_skipped_files(options)
    before, after = run_after_the_last(arguments.paths, options, arguments)
    alert(before, after, addresses)
    return write_outputs(after, arguments)


def report(arguments: argparse.Namespace) -> int:
    need_tables(arguments)
    from flink_triage.cli.spark_commands import last_result

    return write_outputs(last_result(arguments), arguments)


def demo(arguments: argparse.Namespace) -> int:
    options = Options()
    paths = [str(path) for path in demo_logs()]
    if arguments.engine == "local":
        return _here(paths, options, arguments)
    return _on_spark(paths, options, arguments, arguments.warehouse)


def doctor(arguments: argparse.Namespace) -> int:
    if arguments.worker:
        from flink_triage.cli.spark_commands import checks_of_worker

        checks = checks_of_worker(arguments)
    else:
        from flink_triage.spark.runtime.doctor import check_environment

        checks = check_environment()
    for check in checks:
        if not check.is_ok or not arguments.quiet:
            print(f"{check.state:<8} {check.name}: {check.detail}")
    return 0 if all(check.is_ok for check in checks) else exit_codes.ENVIRONMENT


def signatures(arguments: argparse.Namespace) -> int:
    from flink_triage.cli import signature_commands

    return signature_commands.ACTIONS[arguments.action](arguments)


def _here(paths: list[str], options: Options, arguments: argparse.Namespace) -> int:
    _warn_of_skipped_files(options)
    with ProgressLine(arguments.quiet) as progress:
        result = diagnose_here(paths, options, progress=progress)
    return write_outputs(result, arguments)


def _warn_of_skipped_files(options: Options) -> None:
    for skipped in pack_of(options).skipped:
        print(f"flink-triage: warning: file skipped: {clean(skipped.reason)}", file=sys.stderr)


def _on_spark(
    paths: list[str], options: Options, arguments: argparse.Namespace, warehouse: str | None
) -> int:
    from flink_triage.cli.spark_commands import run_on_spark

    _warn_of_skipped_files(options)
    if warehouse is None and not getattr(arguments, "catalog", None):
        with tempfile.TemporaryDirectory(prefix="flink-triage-") as temporary:
            result: Result = run_on_spark(paths, options, temporary, arguments)
            return write_outputs(result, arguments)
    return write_outputs(run_on_spark(paths, options, warehouse, arguments), arguments)


def need_tables(arguments: argparse.Namespace) -> None:
    """Check the flags that locate the tables, and announce the start of Spark on stderr.

    Raises ``UsageError`` unless the flags locate the tables in exactly one way, and if
    ``--warehouse`` is a file. Raises ``EnvironmentProblem`` if Spark is not installed.
    """
    from flink_triage.cli.spark_commands import need_spark

    if bool(arguments.catalog) != bool(arguments.schema):
        raise UsageError("--catalog and --schema must be used together")
    if bool(arguments.warehouse) == bool(arguments.catalog):
        raise UsageError(
            "specify the tables in one way: --warehouse DIR, or --catalog and --schema"
        )
    if arguments.warehouse and Path(arguments.warehouse).is_file():
        raise UsageError(f"--warehouse: {arguments.warehouse} is a file, not a directory")
    need_spark()
    if not arguments.quiet:
        print("starting Spark", file=sys.stderr)
