"""``maintain``: tables after many runs in, the same rows in fewer files out."""

from __future__ import annotations

import argparse


def add_upkeep_command(
    commands_of: argparse._SubParsersAction[argparse.ArgumentParser],
) -> argparse.ArgumentParser:
    """The parser; the caller adds what says where the tables are."""
    maintain = commands_of.add_parser("maintain", help="join small files, remove what is old")
    maintain.add_argument(
        "--keep-days",
        type=float,
        metavar="DAYS",
        help="forget events that were read longer ago (default: keep all)",
    )
    maintain.add_argument(
        "--retention-hours",
        type=float,
        default=168.0,
        metavar="HOURS",
        help="how long replaced files stay, at least 168 (default: 168)",
    )
    maintain.add_argument("--quiet", "-q", action="store_true", help="no progress")
    maintain.set_defaults(run=run_maintain)
    return maintain


def run_maintain(arguments: argparse.Namespace) -> int:
    from flink_triage.cli.commands import need_tables

    need_tables(arguments)
    from flink_triage.cli.spark_commands import maintain_tables

    maintain_tables(arguments)
    return 0
