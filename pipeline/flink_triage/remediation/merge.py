"""Merges the changes of several diagnoses into one consistent list, best diagnosis first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from flink_triage.model import ConfigChange
from flink_triage.remediation.option_table import OptionTable
from flink_triage.remediation.values import is_placeholder
from flink_triage.remediation.versions import NEWEST, flink_line

Ranked = tuple[int, ConfigChange]


def merge_changes(
    ranked: Iterable[tuple[int, Sequence[ConfigChange]]],
    flink_version: str | None = None,
    *,
    table: OptionTable | None = None,
) -> tuple[ConfigChange, ...]:
    """One change per key and scope from (rank of the diagnosis, its changes); rank 1 is the best.

    For several raises, the largest value is kept, for several lowers the smallest. Any other
    conflict is decided by rank, and the reason mentions the changes that were not applied. A change
    that is already set for one diagnosis is replaced by a different change of another diagnosis.
    The result is ordered by rank, then by position in the lists.
    """
    options = table or OptionTable.load()
    line = flink_line(flink_version) or NEWEST
    groups: dict[tuple[str, str], list[Ranked]] = {}
    for rank, changes in sorted(ranked, key=lambda item: item[0]):
        for change in changes:
            groups.setdefault((change.scope, _same_name(change, options, line)), []).append(
                (rank, change)
            )
    return tuple(_merge(group, options, line) for group in groups.values())


def _same_name(change: ConfigChange, table: OptionTable, line: str) -> str:
    """The common key for old and new names of one option."""
    if change.scope not in {"cluster", "job"}:
        return change.key
    return table.key_for(change.key, line) or change.key


def _merge(group: Sequence[Ranked], table: OptionTable, line: str) -> ConfigChange:
    wanted = [item for item in group if item[1].action != "already-set"] or list(group)
    winner_rank, winner = wanted[0]
    for rank, change in wanted[1:]:
        if change.action == winner.action and _exceeds(change, winner, table, line):
            winner_rank, winner = rank, change
    refused = [
        f"diagnosis {rank} would {_wish(change)}: not applied"
        for rank, change in wanted
        if rank != winner_rank and _contradicts(change, winner, table, line)
    ]
    if not refused:
        return winner
    return replace(winner, reason=f"{winner.reason} ({'; '.join(dict.fromkeys(refused))})")


def _exceeds(change: ConfigChange, other: ConfigChange, table: OptionTable, line: str) -> bool:
    if change.action not in {"raise", "lower"} or is_placeholder(change.value):
        return False
    if is_placeholder(other.value):
        return True  # a number is more useful to the reader than "<larger>"
    left, right = (table.amount(item.key, line, item.value) for item in (change, other))
    if left is None or right is None:
        return False
    return left > right if change.action == "raise" else left < right


def _contradicts(change: ConfigChange, winner: ConfigChange, table: OptionTable, line: str) -> bool:
    if change.action == winner.action and change.action in {"raise", "lower", "remove"}:
        return False
    left, right = (table.measure(item.key, line, item.value) for item in (change, winner))
    is_equal = change.value == winner.value or (left is not None and left == right)
    if "remove" in {change.action, winner.action}:
        return change.action != winner.action
    return not is_equal


def _wish(change: ConfigChange) -> str:
    return "remove it" if change.action == "remove" else f"{change.action} it to {change.value}"
