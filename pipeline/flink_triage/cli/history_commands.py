"""The commands ``compare`` and ``history``, which read causes and their counts from the tables."""

from __future__ import annotations

import argparse
import re
import sys
from datetime import UTC, datetime

from flink_triage.errors import UsageError
from flink_triage.model.periods import Period
from flink_triage.report.formats.comparison import render_comparison, render_recurrences

_ALLOWED = "a run ID or a window START..END of ISO 8601 times; START or END may be omitted"
_RUN_ID = re.compile(r"[0-9a-fTZ-]{8,80}")


def add_history_commands(
    commands_of: argparse._SubParsersAction[argparse.ArgumentParser],
) -> list[argparse.ArgumentParser]:
    """Add the two parsers; the caller adds the flags that locate the tables."""
    compare = commands_of.add_parser(
        "compare", help="compare two runs or windows: new, worse, better and gone causes"
    )
    compare.add_argument("before", metavar="BEFORE", help="a run ID, or START..END")
    compare.add_argument("after", metavar="AFTER", help="a run ID, or START..END")
    compare.add_argument(
        "--deployment", action="append", default=[], help="only this deployment (repeatable)"
    )
    history = commands_of.add_parser(
        "history", help="list all causes: new or known, with times, places and counts"
    )
    compare.set_defaults(run=run_compare)
    history.set_defaults(run=run_history)
    for parser in (compare, history):
        parser.add_argument("--format", choices=("text", "json"), default="text")
        parser.add_argument("--quiet", "-q", action="store_true", help="print no progress")
        parser.add_argument("--master", metavar="URL", help="Spark master (default: local[*])")
        parser.add_argument("--remote", metavar="URL", help="Spark Connect server")
    return [compare, history]


def run_compare(arguments: argparse.Namespace) -> int:
    before, after = period_of(arguments.before), period_of(arguments.after)
    from flink_triage.cli.commands import need_tables
    from flink_triage.cli.spark_commands import open_tables

    need_tables(arguments)
    from flink_triage.spark.query.history import compare

    spark, warehouse = open_tables(arguments)
    comparison = compare(spark, warehouse, before, after, arguments.deployment)
    sys.stdout.write(render_comparison(comparison, arguments.format))
    return 0


def run_history(arguments: argparse.Namespace) -> int:
    from flink_triage.cli.commands import need_tables
    from flink_triage.cli.spark_commands import open_tables

    need_tables(arguments)
    from flink_triage.spark.query.history import recurrences

    spark, warehouse = open_tables(arguments)
    sys.stdout.write(render_recurrences(recurrences(spark, warehouse), arguments.format))
    return 0


def period_of(text: str) -> Period:
    """The period of a run ID or of ``START..END``.

    Raises ``UsageError`` for any other text, and if ``END`` is not after ``START``.
    """
    if ".." in text:
        start, _, end = text.partition("..")
        since, until = _time(text, start), _time(text, end)
        if since is not None and until is not None and since >= until:
            raise UsageError(f"compare: window {text!r}: the end must be after the start")
        return Period(text, None, since, until)
    if _RUN_ID.fullmatch(text):
        return Period(f"run {text}", text)
    raise UsageError(f"compare: {text!r} is not {_ALLOWED}")


def _time(text: str, value: str) -> datetime | None:
    if not value:
        return None
    try:
        at = datetime.fromisoformat(value.replace("Z", "+00:00"))
    except ValueError:
        raise UsageError(f"compare: {text!r} is not {_ALLOWED}") from None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
