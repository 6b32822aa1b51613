"""Sends alerts about the changes between two results; failed deliveries are printed on stderr."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from datetime import UTC, datetime

from flink_triage.alerts.changes import changes_between
from flink_triage.alerts.messages import KINDS, Kind, Message, messages_for
from flink_triage.errors import UsageError
from flink_triage.model import Result


def add_alert_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("alerts")
    group.add_argument(
        "--alert",
        action="append",
        default=[],
        choices=KINDS,
        help="report new, worse and resolved incidents; repeatable; the URL is taken from "
        "FLINK_TRIAGE_SLACK_URL, FLINK_TRIAGE_WEBHOOK_URL or FLINK_TRIAGE_ALERTMANAGER_URL",
    )
    group.add_argument(
        "--dry-run", action="store_true", help="print alerts on stderr instead of sending them"
    )


def addresses_of(arguments: argparse.Namespace) -> Mapping[Kind, str]:
    """The address for each kind of alert, empty for a dry run.

    Raises ``UsageError`` for ``--dry-run`` without ``--alert``, and for a missing or invalid URL.
    """
    if arguments.dry_run and not arguments.alert:
        raise UsageError("--dry-run prints the alerts of --alert; add --alert")
    from flink_triage.alerts.sending import address_of

    kinds = dict.fromkeys(arguments.alert)
    return {kind: "" if arguments.dry_run else address_of(kind) for kind in kinds}


def alert(before: Result | None, after: Result, addresses: Mapping[Kind, str]) -> None:
    """Send alerts about new, worse, and resolved incidents; without an address, print them."""
    changes = changes_between(before, after)
    now = datetime.now(UTC)
    for kind, address in addresses.items():
        for message in messages_for(kind, changes, after.run.run_id, now):
            _deliver(message, address)


def _deliver(message: Message, address: str) -> None:
    if not address:
        print(f"--alert {message.kind}: {message.body.decode()}", file=sys.stderr)
        return
    from flink_triage.alerts.sending import send

    problem = send(message, address)
    if problem is not None:
        print(f"--alert {message.kind}: not sent: {problem}; the run is published", file=sys.stderr)
