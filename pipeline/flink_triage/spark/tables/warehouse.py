"""Delta tables in a folder or a schema, with idempotent appends and reads of published rows."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from flink_triage.errors import UsageError
from flink_triage.spark.failpoints import failpoint
from flink_triage.spark.tables.ddl import column_ddl, create_statement, quoted
from flink_triage.spark.tables.evolution import missing_columns, other_version, select_list
from flink_triage.spark.tables.lock import held
from flink_triage.spark.tables.schemas import RUNS, TABLES
from flink_triage.spark.tables.table_names import DERIVED, STORED
from flink_triage.spark.tables.table_spec import Column, Table
from flink_triage.spark.tables.views import CURRENT, ROWS, VIEWS, tables_of

# Another writer committed first: nothing was written, and a retry may succeed.
# The last alternative means that another run is creating the same table.
CONFLICT = re.compile(
    r"DELTA_(CONCURRENT|METADATA_CHANGED|PROTOCOL_CHANGED|CREATE_TABLE_WITH_NON_EMPTY_LOCATION)"
)
# The first commits of a table conflict with each other: allow more tries than runs are likely to
# start at once.
MAX_TRIES = 12
FIRST_WAIT_SECONDS = 0.2
LONGEST_WAIT_SECONDS = 3.0
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Warehouse:
    """The location of the tables: ``directory`` (a path or URI), or ``schema``.

    The ``schema`` is in ``catalog``, if set. Raises ``UsageError`` for invalid values.
    """

    directory: str | None = None
    catalog: str | None = None
    schema: str | None = None

    def __post_init__(self) -> None:
        if (self.directory is None) == (self.schema is None):
            raise UsageError("warehouse: exactly one of directory and schema must be set")
        for flag, name in (("--catalog", self.catalog), ("--schema", self.schema)):
            if name is not None and not NAME.fullmatch(name):
                raise UsageError(
                    f"{flag}: {name!r} is not a valid name; use ASCII letters, digits and "
                    "underscores, and do not begin with a digit"
                )

    @classmethod
    def at(cls, place: str | Warehouse) -> Warehouse:
        """The warehouse at a path or URI; a warehouse is returned unchanged."""
        return cls(place) if isinstance(place, str) else place

    @property
    def local_path(self) -> Path | None:
        """The folder, if it is on a file system of this machine."""
        if self.directory is None:
            return None
        if self.directory.startswith("file:"):
            return Path(self.directory.removeprefix("file:").replace("///", "/", 1))
        return None if re.match(r"[a-z][a-z0-9+.-]+:", self.directory) else Path(self.directory)

    def hold(self, now: datetime) -> AbstractContextManager[None]:
        """Lock a local folder during the block.

        Elsewhere, nothing is locked: Delta detects conflicts, if the storage has atomic commits.
        """
        local = self.local_path
        return held(local, now) if local is not None else nullcontext()

    def location(self, name: str) -> str:
        """The path of the stored table's folder or, in a schema, its qualified name."""
        table = STORED.get(name)
        if self.directory is not None:
            local = self.local_path
            root = str(local.absolute()) if local is not None else self.directory.rstrip("/")
            return f"{root}/_{table.kind}/{name}" if table else f"{root}/{name}"
        return self.qualified(table.stored_name if table else name)

    @property
    def place(self) -> str:
        """The folder, or a table of the schema, as shown in errors."""
        return self.directory or self.location(RUNS.name)

    def qualified(self, name: str) -> str:
        """``name``, preceded by the catalog, if set, and the schema; each part is in backquotes."""
        return ".".join(f"`{part}`" for part in (self.catalog, self.schema, name) if part)

    def identifier(self, table: Table) -> str:
        """The name of the table in SQL."""
        location = self.location(table.name)
        return location if self.directory is None else f"delta.`{location}`"

    def exists(self, spark: SparkSession, table: Table) -> bool:
        while table.name in DERIVED:
            table = DERIVED[table.name]
        on_disk = self.is_on_disk(table)
        if on_disk is not None:
            return on_disk
        found = self._is_stored(spark, self.location(table.name))
        if not found and table is RUNS and self._is_stored(spark, self._first_location()):
            raise other_version(self._first_location(), 1)
        return found

    def _is_stored(self, spark: SparkSession, location: str) -> bool:
        if self.directory is None:
            return bool(spark.catalog.tableExists(location))
        try:
            _ = spark.read.format("delta").load(location).columns
        except AnalysisException:
            return False
        return True

    def _first_location(self) -> str:
        """The location of the table `runs` in the first release."""
        return self.qualified(RUNS.name) if self.directory is None else f"{self.directory}/runs"

    def is_on_disk(self, table: Table) -> bool | None:
        """Whether the table exists, if it is in a local folder; otherwise ``None``.

        Raises ``CorruptStateError`` for tables of the first release.
        """
        local = self.local_path
        if local is None:
            return None
        found = _has_commits(Path(self.location(table.name)))
        if not found and table is RUNS and _has_commits(local / RUNS.name):
            raise other_version(self._first_location(), 1)
        return found

    def unpublished(self) -> UsageError:
        """The error for a command that requires a published run."""
        return UsageError(f"{self.location('runs')}: no run has been published here")

    def _load(self, spark: SparkSession, table: Table) -> DataFrame:
        location = self.location(table.name)
        if self.directory is None:
            return spark.read.table(location)
        return spark.read.format("delta").load(location)

    def read(self, spark: SparkSession, table: Table) -> DataFrame:
        """All rows of the table, published or not, with the columns in schema order.

        Raises ``CorruptStateError`` if the table has a different version or incompatible columns.
        """
        if table.name in DERIVED:
            return spark.sql(ROWS[table.name], source=self.read(spark, DERIVED[table.name]))
        rows = self._load(spark, table)
        return rows.selectExpr(*select_list(table, self._missing(rows, table)))

    def _missing(self, rows: DataFrame, table: Table) -> tuple[Column, ...]:
        """Columns that a table of a different build lacks; raises the same errors as ``read``."""
        return missing_columns(rows.schema, table, self.location(table.name))

    def bring_up_to_date(self, spark: SparkSession) -> list[str]:
        """Add missing columns to tables of an earlier build; return each as ``table.column``.

        If the process is killed, the next run adds the remaining columns. Raises
        ``CorruptStateError`` for a table that cannot be used, before any table is changed.
        """
        tables = [table for table in STORED.values() if self.exists(spark, table)]
        with ThreadPoolExecutor() as pool:
            found = list(pool.map(lambda one: self._missing(self._load(spark, one), one), tables))
        lacking = [
            (table, missing) for table, missing in zip(tables, found, strict=True) if missing
        ]
        for table, missing in lacking:
            columns = ", ".join(map(column_ddl, missing))
            spark.sql(f"ALTER TABLE {self.identifier(table)} ADD COLUMNS ({columns})")
            failpoint(f"added.{table.name}")
        return [f"{table.name}.{column.name}" for table, missing in lacking for column in missing]

    def append(self, rows: DataFrame, table: Table, batch: int, part: str = "") -> None:
        """Append ``rows`` once: a second append for the same batch (and ``part``) writes nothing.

        The append is a Delta transaction whose version is the batch number: Delta silently skips a
        version that does not exceed the application's last version in the table. After a conflict
        with another writer, the append is tried again, up to ``MAX_TRIES`` times in total.
        """
        application = f"flink-triage/{part}" if part else "flink-triage"
        writer = rows.select(*table.column_names).write.format("delta").mode("append")
        writer = writer.options(txnAppId=application, txnVersion=str(batch))
        location = self.location(table.name)
        failpoint(f"append.{part or table.name}")
        if self.directory is None:
            _with_retries(lambda: writer.saveAsTable(location))
        else:
            _with_retries(lambda: writer.save(location))
        failpoint(f"appended.{part or table.name}")

    def delete(self, spark: SparkSession, table: Table, gone: str) -> None:
        """Delete the rows that meet an SQL condition; without such rows, nothing is committed."""
        if not self.read(spark, table).where(gone).isEmpty():
            spark.sql(f"DELETE FROM {self.identifier(table)} WHERE {gone}")

    def delete_matching(
        self, spark: SparkSession, table: Table, gone: DataFrame, by: Sequence[str]
    ) -> None:
        """Delete the rows that match a row of ``gone`` in the columns ``by``."""
        if not gone.isEmpty():
            agree = " AND ".join(f"t.{name} = g.{name}" for name in by)
            spark.sql(
                f"MERGE INTO {self.identifier(table)} t USING {{gone}} g ON {agree} "
                "WHEN MATCHED THEN DELETE",
                gone=gone.select(*by).distinct(),
            )

    def create(self, spark: SparkSession, tables: Iterable[Table] = tuple(STORED.values())) -> None:
        """Create those of the stored ``tables`` that are missing, without rows, in parallel."""
        missing = [table for table in tables if not self.exists(spark, table)]

        def create_one(table: Table) -> None:
            _with_retries(lambda: spark.sql(create_statement(table, self.identifier(table))))

        with ThreadPoolExecutor() as pool:
            list(pool.map(create_one, missing))

    def create_views(self, spark: SparkSession) -> tuple[str, ...]:
        """Create the views of the published, current rows; return their names.

        In a schema, the views are permanent; for a folder, they are temporary views of the session.
        """
        names = {name: self._source(spark, table) for name, table in STORED.items()}
        kind = "VIEW" if self.directory is None else "TEMPORARY VIEW"
        for name, query in VIEWS.items():
            place = self.qualified(name) if self.directory is None else f"`{name}`"
            comment = f" COMMENT {quoted(TABLES[name].comment)}"
            spark.sql(f"CREATE OR REPLACE {kind} {place}{comment} AS {query.format(**names)}")
        return tuple(VIEWS)

    def _source(self, spark: SparkSession, table: Table) -> str:
        """The SQL relation of the table: its identifier, or a subquery if columns are missing."""
        missing = self._missing(self._load(spark, table), table)
        if not missing:
            return self.identifier(table)
        return f"(SELECT {', '.join(select_list(table, missing))} FROM {self.identifier(table)})"

    def current(self, spark: SparkSession, name: str, runs: DataFrame | None = None) -> DataFrame:
        """The current rows of the view ``name``, after all published runs or only ``runs``."""
        names = tables_of(CURRENT[name]) - {RUNS.name}
        frames: dict[str, Any] = {of: self.read(spark, STORED[of]) for of in names}
        frames[RUNS.name] = self.read(spark, RUNS) if runs is None else runs
        return spark.sql(CURRENT[name], **frames)

    def published(self, spark: SparkSession, table: Table) -> DataFrame:
        """All rows of published runs, current or not."""
        rows = self.read(spark, table)
        return rows.join(F.broadcast(self.runs(spark)), "run_id", "left_semi")

    def runs(self, spark: SparkSession, until: str | None = None) -> DataFrame:
        """The column ``run_id`` of the published runs, up to the run ``until`` if it is set."""
        runs = self.read(spark, RUNS).select("run_id")
        return runs if until is None else runs.where(F.col("run_id") <= until)


def listed(names: Iterable[str]) -> str:
    """An SQL list of ids or fingerprints, which consist of letters, digits, dashes and colons."""
    return ", ".join(f"'{name}'" for name in sorted(names))


def _has_commits(folder: Path) -> bool:
    """Whether the log has a commit; a killed run may leave a log folder without one."""
    log = folder / "_delta_log"
    return any(file.suffix in (".json", ".parquet") for file in log.glob("[0-9]*"))


def _with_retries(write: Callable[[], object]) -> object:
    """Write; after a conflict, wait and write again, up to ``MAX_TRIES`` times in total."""
    wait = FIRST_WAIT_SECONDS
    for _ in range(MAX_TRIES - 1):
        try:
            return write()
        except Exception as error:  # py4j's errors share no root with Spark's own
            if not CONFLICT.search(str(error)):
                raise
        # Writers that conflicted would otherwise conflict again.
        time.sleep(wait * random.uniform(0.5, 1.5))
        wait = min(2 * wait, LONGEST_WAIT_SECONDS)
    return write()
