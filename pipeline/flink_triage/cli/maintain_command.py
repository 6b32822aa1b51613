"""The command ``maintain``, which compacts the tables, and removes old rows and unused files."""

from __future__ import annotations

import argparse


def add_upkeep_command(
    commands_of: argparse._SubParsersAction[argparse.ArgumentParser],
) -> argparse.ArgumentParser:
    """Add the parser; the caller adds the flags for the tables and for Spark."""
    maintain = commands_of.add_parser(
        "maintain", help="compact the tables, and remove old rows and unused files"
    )
    maintain.add_argument(
        "--keep-days",
        type=float,
        metavar="DAYS",
        help="delete rows of runs older than this, except current results "
        "(default: keep all except old batches)",
    )
    maintain.add_argument(
        "--retention-hours",
        type=float,
        default=168.0,
        metavar="HOURS",
        help="keep replaced files for this time, at least 168 (default: 168)",
    )
    maintain.add_argument("--quiet", "-q", action="store_true", help="print no progress")
    maintain.set_defaults(run=run_maintain)
    return maintain


def run_maintain(arguments: argparse.Namespace) -> int:
    from flink_triage.cli.commands import need_tables

    need_tables(arguments)
    from flink_triage.cli.spark_commands import maintain_tables

    maintain_tables(arguments)
    return 0
