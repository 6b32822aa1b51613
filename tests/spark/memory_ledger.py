"""A ledger as a list of rows, and planner runs over real files; no session is started."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from flink_triage.logs.inputs.files import InputFile, Listing, deployment_of
from flink_triage.settings import Settings
from flink_triage.spark.ingest.changed_files import LedgerEntry, WorkPlan, plan_work
from flink_triage.spark.ingest.content_identity import heads_agree
from flink_triage.spark.ingest.examine_files import Look, Wanted, look_at
from flink_triage.spark.ingest.ledger import Row, entry_of, finished_row, planned_rows
from flink_triage.spark.ingest.ranges import RangeTask
from flink_triage.spark.tables.schemas import LOG_FILES


@dataclass
class MemoryLedger:
    """A ledger for the planner, like `TableLedger`, over rows in the order of their publication."""

    rows: list[dict[str, Any]] = field(default_factory=list)

    @property
    def entries(self) -> list[LedgerEntry]:
        nulls = dict.fromkeys(LOG_FILES.column_names)
        newest = {(row["file_id"], row["generation"]): row for row in self.rows}
        current = {row["path"]: row for row in self.rows}
        return [
            entry_of(nulls | row | {"is_current": current[row["path"]] is row})
            for row in self.rows
            if newest[row["file_id"], row["generation"]] is row
        ]

    def changed(self, files: Sequence[InputFile]) -> Iterator[tuple[int, LedgerEntry | None]]:
        known = {entry.path: entry for entry in self.entries if entry.is_current}
        for index, file in enumerate(files):
            yield index, known.get(file.path)

    def at(self, paths: Sequence[str]) -> Iterator[LedgerEntry]:
        yield from (e for e in self.entries if e.is_current and e.path in paths)

    def alike(self, heads: Sequence[tuple[str, bytes]]) -> Iterator[LedgerEntry]:
        for entry in self.entries:
            if entry.mark.consumed_bytes and any(
                of == entry.deployment and heads_agree(head, entry.mark.head) for of, head in heads
            ):
                yield entry


def plan_over(
    listing: Listing,
    ledger: MemoryLedger,
    settings: Settings,
    now: datetime,
    of: Callable[[InputFile], str] = deployment_of,
    look: Callable[[Wanted], Look] | None = None,
) -> WorkPlan:
    def look_in_test_time(wanted: Wanted) -> Look:
        # Tests set the modification time of files. Their change time is that of the test.
        found = look_at(wanted, settings)
        return replace(found, changed_at=found.modified_at)

    look_at_one = look or look_in_test_time
    return plan_work(
        listing.files,
        listing.quarantined,
        ledger,
        lambda wanted: [look_at_one(file) for file in wanted],
        deployment_of=of,
        now=now,
        settle_seconds=settings.settle_seconds,
        salt=str(len(ledger.rows)),
    )


def rows_after(
    plan: WorkPlan, tasks: Sequence[RangeTask], summaries: Sequence[Mapping[str, Any]]
) -> list[Row]:
    """Rows of the ledger after the plan was executed, with a summary of each task."""
    return [
        finished_row(row, summaries[row["first_range"] :][: row["range_count"]])
        for row in planned_rows(plan, tasks)
    ]
