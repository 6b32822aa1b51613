"""Delta tables in a folder or a schema: rows go in once per batch, published rows come out."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from flink_triage.errors import CorruptStateError, UsageError
from flink_triage.spark.lock import held
from flink_triage.spark.points import reached
from flink_triage.spark.row_types import spark_type
from flink_triage.spark.schemas import (
    RUN_ID,
    RUNS,
    TABLE_VERSION,
    TABLES,
    VERSION_KEY,
    Column,
    Table,
    column_ddl,
    create_statement,
)

# Another writer's commit came between: nothing was written, and a second try may well succeed.
CONFLICT = re.compile(r"DELTA_(CONCURRENT|METADATA_CHANGED|PROTOCOL_CHANGED)")
# First commits of a table conflict with each other: more tries than runs are started at once.
MAX_TRIES = 12
FIRST_WAIT_SECONDS = 0.2
LONGEST_WAIT_SECONDS = 3.0
PROPERTIES = {
    # A commit remembers its batch for so long; reruns of an unpublished batch come much sooner.
    "delta.setTransactionRetentionDuration": "interval 30 days",
    # What readers filter by stands first; minima and maxima of 32 columns take a second a commit.
    "delta.dataSkippingNumIndexedCols": "3",
}
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Warehouse:
    """Where the tables are: ``directory`` (a path or URI), or ``catalog`` and ``schema``."""

    directory: str | None = None
    catalog: str | None = None
    schema: str | None = None

    def __post_init__(self) -> None:
        if (self.directory is None) == (self.schema is None):
            raise UsageError("warehouse: give either --warehouse DIR or --schema (with --catalog)")
        for flag, name in (("--catalog", self.catalog), ("--schema", self.schema)):
            if name is not None and not NAME.fullmatch(name):
                raise UsageError(f"{flag}: {name!r} is not a name of letters, digits and _")

    @property
    def local_path(self) -> Path | None:
        """The folder, when it is on a file system of this machine."""
        if self.directory is None:
            return None
        if self.directory.startswith("file:"):
            return Path(self.directory.removeprefix("file:").replace("///", "/", 1))
        return None if re.match(r"[a-z][a-z0-9+.-]+:", self.directory) else Path(self.directory)

    def hold(self, now: datetime) -> AbstractContextManager[None]:
        """Hold a local folder for the length of the block; elsewhere Delta sees conflicts."""
        local = self.local_path
        return held(local, now) if local is not None else nullcontext()

    def location(self, name: str) -> str:
        """Path of the table's folder, or its qualified name."""
        if self.directory is not None:
            local = self.local_path
            root = str(local.absolute()) if local is not None else self.directory.rstrip("/")
            return f"{root}/{name}"
        return ".".join(f"`{part}`" for part in (self.catalog, self.schema, name) if part)

    def identifier(self, table: Table) -> str:
        """What SQL calls the table."""
        location = self.location(table.name)
        return location if self.directory is None else f"delta.`{location}`"

    def exists(self, spark: SparkSession, table: Table) -> bool:
        on_disk = self.is_on_disk(table)
        if on_disk is not None:
            return on_disk
        if self.directory is None:
            return bool(spark.catalog.tableExists(self.location(table.name)))
        try:
            _ = self._load(spark, table).columns
        except AnalysisException:
            return False
        return True

    def is_on_disk(self, table: Table) -> bool | None:
        """Whether the table exists, where no session is needed to know: in a local folder."""
        local = self.local_path
        if local is None:
            return None
        # A killed run may leave the folder of a log without its first commit.
        log = local / table.name / "_delta_log"
        return any(file.suffix in (".json", ".parquet") for file in log.glob("[0-9]*"))

    def unpublished(self) -> UsageError:
        """For who needs a published run where there is none."""
        return UsageError(f"{self.location('runs')}: no run has been published here")

    def _load(self, spark: SparkSession, table: Table) -> DataFrame:
        location = self.location(table.name)
        if self.directory is None:
            return spark.read.table(location)
        return spark.read.format("delta").load(location)

    def read(self, spark: SparkSession, table: Table) -> DataFrame:
        """All rows of the table, published or not, in schema order."""
        rows = self._load(spark, table)
        missing = self.missing_columns(rows.schema, table)
        # An earlier release did not have them.
        nulls = {c.name: F.lit(None).cast(spark_type(c.type)) for c in missing}
        return rows.select(
            *(nulls[name].alias(name) if name in nulls else name for name in table.column_names)
        )

    def missing_columns(self, schema: StructType, table: Table) -> tuple[Column, ...]:
        """Columns that a table of an earlier release lacks.

        Raises ``CorruptStateError`` for a table of another version, and for one that lacks columns
        and was not written by flink-triage.
        """
        there = {field.name: field.metadata for field in schema.fields}
        version = there.get("run_id", {}).get(VERSION_KEY)
        missing = tuple(column for column in table.columns if column.name not in there)
        if version is not None and int(version) != TABLE_VERSION:
            raise CorruptStateError(
                f"{self.location(table.name)}: has table version {version}, this release reads "
                f"{TABLE_VERSION}; use the release that wrote it, or read the logs into a new "
                "warehouse with flink-triage run --warehouse DIR"
            )
        if missing and version is None:
            raise CorruptStateError(
                f"{self.location(table.name)}: has no column "
                f"{', '.join(column.name for column in missing)}, and is not ours; "
                "write to a new warehouse"
            )
        return missing

    def bring_up_to_date(self, spark: SparkSession) -> list[str]:
        """Add to tables of an earlier release what they lack; returns ``table.column`` of each.

        A kill leaves some tables with and some without; the next pass adds the rest.  Raises as
        ``missing_columns`` does, before anything is changed.
        """
        tables = [table for table in TABLES.values() if self.exists(spark, table)]
        lacking = [(t, self.missing_columns(self._load(spark, t).schema, t)) for t in tables]
        for table, missing in lacking:
            if missing:
                columns = ", ".join(map(column_ddl, missing))
                spark.sql(f"ALTER TABLE {self.identifier(table)} ADD COLUMNS ({columns})")
                reached(f"added.{table.name}")
        return [f"{table.name}.{column.name}" for table, missing in lacking for column in missing]

    def append(
        self, rows: DataFrame, table: Table, run_id: str, application: str | None = None
    ) -> None:
        """Append ``rows`` once: a second append by the same ``application`` writes nothing.

        By default it is named for table and run, and in a folder of this machine, which a run holds
        alone, the table's log tells whether it was there before.  Elsewhere, and where the name is
        given because runs may race for it, Delta tells: by a transaction whose version is always 1,
        because what does not exceed the last version of an application is skipped without a word.
        A conflict with another writer is tried again, a few times.
        """
        name = application or _application(table, run_id)
        if application is not None or self.local_path is None:
            named = {"txnAppId": name, "txnVersion": "1"}
        elif self._appended(table, name) is None:
            named = {"userMetadata": name}
        else:
            return
        writer = rows.select(*_commented(table)).write.format("delta").mode("append")
        writer = writer.options(**PROPERTIES, **named)
        location = self.location(table.name)
        reached(f"append.{table.name}")
        if self.directory is None:
            _with_retries(lambda: writer.saveAsTable(location))
        else:
            _with_retries(lambda: writer.save(location))
        reached(f"appended.{table.name}")

    def appended_count(self, table: Table, run_id: str) -> int | None:
        """Rows that the run's commit added, by the log of a local table.

        None where the table is not local, or its log no longer holds the commit.
        """
        added = self._appended(table, _application(table, run_id))
        if added is None:
            return None
        return sum(int(json.loads(add["stats"])["numRecords"]) for add in added)

    def _appended(self, table: Table, application: str) -> list[Mapping[str, Any]] | None:
        """The files that the commit of ``application`` added, the newest such commit's."""
        local = self.local_path
        if local is None:
            return None
        for commit in sorted((local / table.name / "_delta_log").glob("*.json"), reverse=True):
            text = commit.read_text(encoding="utf-8")
            if application not in text:
                continue
            actions = [json.loads(line) for line in text.split("\n") if line]
            if any(_committer(action) == application for action in actions):
                return [action["add"] for action in actions if "add" in action]
        return None

    def create(self, spark: SparkSession, tables: Iterable[Table] = TABLES.values()) -> None:
        """Create the tables that are not there, empty; a run does so by itself."""
        for table in tables:
            spark.sql(create_statement(table, self.identifier(table)))

    def published(
        self, spark: SparkSession, table: Table, runs: DataFrame | None = None
    ) -> DataFrame:
        """Rows of published runs, or of ``runs``, which have a ``run_id``."""
        rows = self.read(spark, table)
        if table is RUNS:
            return rows
        ids = (self.runs(spark) if runs is None else runs).select("run_id")
        return rows.join(F.broadcast(ids), "run_id", "left_semi")

    def runs(self, spark: SparkSession, until: str | None = None) -> DataFrame:
        """run_id, at: the published runs, or those up to the run ``until``."""
        runs = self.read(spark, RUNS).groupBy("run_id").agg(F.max("finished_at").alias("at"))
        if until is None:
            return runs
        bound = runs.where(F.col("run_id") == until).select(F.col("at").alias("bound"))
        known = runs.join(F.broadcast(bound), F.col("at") <= F.col("bound"))
        return known.select("run_id", "at")

    # --- staging: what workers hand over, kept until the run is published ---------------------

    def write_staging(self, rows: DataFrame, name: str) -> None:
        if self.directory is None:
            rows.write.format("delta").mode("overwrite").saveAsTable(self.location(name))
        else:
            rows.write.mode("overwrite").option("compression", "lz4").parquet(self.location(name))

    def staging_part(self, name: str, part: str) -> str:
        """Where a part is staged besides: in the folder, which readers of the folder do not see,
        or in a table of its own."""
        return f"{name}_{part}" if self.directory is None else f"{name}/_{part}"

    def read_staging(self, spark: SparkSession, name: str, schema: str) -> DataFrame:
        if self.directory is None:
            return spark.read.table(self.location(name))
        # With the schema given, no job reads it from the files.
        return spark.read.schema(schema).parquet(self.location(name))


def _with_retries(write: Callable[[], None]) -> None:
    """Write; after a conflict wait, and write again."""
    wait = FIRST_WAIT_SECONDS
    for _ in range(MAX_TRIES - 1):
        try:
            return write()
        except Exception as error:  # py4j's errors share no root with Spark's own
            if not CONFLICT.search(str(error)):
                raise
        # Those that conflicted once would otherwise meet again.
        time.sleep(wait * random.uniform(0.5, 1.5))
        wait = min(2 * wait, LONGEST_WAIT_SECONDS)
    return write()


def _committer(action: Mapping[str, Any]) -> str | None:
    """The application that an action of a commit names, if any."""
    named: str | None = action.get("txn", {}).get("appId")
    return named or action.get("commitInfo", {}).get("userMetadata")


def _application(table: Table, run_id: str) -> str:
    return f"flink-triage/{table.name}/{run_id}"


def _commented(table: Table) -> list[SparkColumn]:
    """Columns with what a table that is made of them says of each, and of its version."""
    return [
        F.col(column.name).alias(
            column.name,
            metadata={"comment": column.comment}
            | ({VERSION_KEY: str(TABLE_VERSION)} if column is RUN_ID else {}),
        )
        for column in table.columns
    ]
