"""Defines the flags that several commands share, and converts them to options of the stages."""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from flink_triage.errors import UsageError
from flink_triage.local import Options
from flink_triage.logs.layouts.custom_layouts import check_layout
from flink_triage.logs.text.decode import encoding_named
from flink_triage.model import SEVERITIES
from flink_triage.remediation.versions import NEWEST, parse_version
from flink_triage.report import FORMATS
from flink_triage.settings import DEFAULT_SETTINGS, Reading

FAIL_ON = (*SEVERITIES, "none")
_AGO = re.compile(r"(\d{1,9})\s*(s|m|min|h|d|w)", re.ASCII)
_UNITS = {"s": "seconds", "m": "minutes", "min": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_TIME_OF_DAY = re.compile(r"\d\d:\d\d(:\d\d)?", re.ASCII)


def add_input_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("input")
    group.add_argument(
        "--group-by",
        default="directory",
        metavar="directory|file|REGEX",
        help="how files are grouped into deployments (default: directory)",
    )
    group.add_argument(
        "--signatures",
        action="append",
        default=[],
        metavar="DIR",
        help="add the signatures in DIR; a signature with a built-in ID replaces the built-in one",
    )
    group.add_argument(
        "--flink-version", metavar="VERSION", help="override the version in the logs"
    )
    group.add_argument(
        "--timezone",
        default="UTC",
        metavar="ZONE",
        help="time zone of timestamps that have none (default: UTC)",
    )
    group.add_argument(
        "--encoding",
        metavar="NAME",
        help="encoding of files that are not UTF-8, such as gbk or latin-1",
    )
    group.add_argument(
        "--layout",
        action="append",
        default=[],
        metavar="REGEX",
        help="regex for header lines; groups: at, level, logger, thread, message, job; repeatable",
    )
    group.add_argument(
        "--redact",
        default="secrets",
        choices=("secrets", "pii"),
        help="pii also masks IP and email addresses, hosts and users (default: secrets)",
    )
    group.add_argument(
        "--since",
        metavar="TIME",
        help="only events from this time on: ISO 8601, a time of day (05:52), or an age (2h)",
    )
    group.add_argument(
        "--until", metavar="TIME", help="only events before this time, as in --since"
    )
    group.add_argument("--workers", type=int, metavar="N", help="maximum number of local processes")
    add_spark_arguments(parser)


def add_spark_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("Spark")
    group.add_argument("--master", metavar="URL", help="Spark master (default: local[*])")
    group.add_argument("--remote", metavar="URL", help="Spark Connect server")


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    group.add_argument(
        "--format",
        action="append",
        default=[],
        choices=FORMATS,
        help="output format; repeatable, each with its own --output (default: text)",
    )
    group.add_argument(
        "--output",
        action="append",
        default=[],
        metavar="FILE",
        help="file for the --format at the same position (default: standard output)",
    )
    group.add_argument("--report", metavar="FILE.html", help="also write the HTML report")
    group.add_argument(
        "--fail-on",
        default="none",
        choices=FAIL_ON,
        help="exit 1 for a diagnosis of at least this severity; undetermined failures are major "
        "(default: none)",
    )
    group.add_argument(
        "--strict",
        action="store_true",
        help="exit 3 if input was skipped or truncated, or a signature or deployment was skipped",
    )
    # ``main`` sets it for callers that require the result.
    parser.set_defaults(on_result=None)
    group.add_argument("--quiet", "-q", action="store_true", help="print no progress")
    group.add_argument(
        "--verbose", "-v", action="store_true", help="also print reasons and alternatives"
    )


def add_warehouse_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("tables")
    group.add_argument("--warehouse", metavar="DIR", help="directory of the tables")
    group.add_argument("--catalog", metavar="NAME", help="catalog of the tables, with --schema")
    group.add_argument("--schema", metavar="NAME", help="schema of the tables, with --catalog")


def options_of(arguments: argparse.Namespace) -> Options:
    """The options of the stages; a ``UsageError`` states the flag, its value, and a valid form."""
    zone = _timezone(arguments.timezone)
    now = datetime.now(zone)
    since = _time("--since", arguments.since, now)
    until = _time("--until", arguments.until, now)
    if since is not None and until is not None and since >= until:
        raise UsageError(
            f"--since: {arguments.since} ({since.isoformat(timespec='seconds')}) is not before"
            f" --until {arguments.until} ({until.isoformat(timespec='seconds')})"
        )
    return Options(
        group_by=arguments.group_by,
        flink_version=_flink_version(arguments.flink_version),
        timezone=zone,
        since=since,
        until=until,
        signature_directories=tuple(Path(d) for d in arguments.signatures),
        workers=_workers(arguments.workers),
        settings=replace(
            DEFAULT_SETTINGS,
            reading=_reading(arguments),
            settle_seconds=_settle_seconds(arguments),
        ),
    )


def _settle_seconds(arguments: argparse.Namespace) -> float:
    seconds: float = getattr(arguments, "settle", DEFAULT_SETTINGS.settle_seconds)
    if not seconds >= 0:
        raise UsageError(f"--settle: got {seconds:g}, allowed: seconds, at least 0")
    return seconds


def _flink_version(text: str | None) -> str | None:
    if text is not None and parse_version(text) is None:
        raise UsageError(f"--flink-version: {text!r} is not a version such as {NEWEST} or 1.20.1")
    return text


def _workers(count: int | None) -> int | None:
    if count is not None and count < 1:
        raise UsageError(f"--workers: got {count}, allowed: whole numbers, at least 1")
    return count


def _reading(arguments: argparse.Namespace) -> Reading:
    return Reading(
        encoding=encoding_named(arguments.encoding) if arguments.encoding else None,
        layouts=tuple(check_layout(pattern) for pattern in arguments.layout),
        redacts_personal=arguments.redact == "pii",
    )


def _timezone(name: str) -> tzinfo:
    if name.upper() in ("UTC", "Z"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise UsageError(f"--timezone: {name!r} is not a time zone such as Europe/Berlin") from None


def _time(flag: str, value: str | None, now: datetime) -> datetime | None:
    """The time in a flag, in the zone of ``now`` unless it has its own zone.

    A time of day denotes its most recent occurrence that is not after ``now``.
    """
    if value is None:
        return None
    try:
        if ago := _AGO.fullmatch(value):
            return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        if _TIME_OF_DAY.fullmatch(value):
            at = datetime.combine(now.date(), time.fromisoformat(value), now.tzinfo)
            return at if at <= now else at - timedelta(days=1)
        at = datetime.fromisoformat(value.replace("Z", "+00:00"))
    except (ValueError, OverflowError):
        raise UsageError(
            f"{flag}: {value!r} is not a time such as 2026-11-21T05:52:20Z or 05:52, or an age such"
            " as 2h"
        ) from None
    return at if at.tzinfo is not None else at.replace(tzinfo=now.tzinfo)
