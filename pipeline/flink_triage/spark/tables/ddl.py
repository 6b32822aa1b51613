"""Generates the SQL that creates a table or adds a column, with comments."""

from __future__ import annotations

from flink_triage.spark.tables.arrow_types import spark_type
from flink_triage.spark.tables.table_spec import Column, Table


def create_statement(table: Table, identifier: str) -> str:
    """SQL that creates the table, with its comments, if it does not exist."""
    columns = ",\n  ".join(map(column_ddl, table.columns))
    partitioned = f"PARTITIONED BY ({', '.join(table.partitioned_by)})\n"
    return (
        f"CREATE TABLE IF NOT EXISTS {identifier} (\n  {columns}\n) USING delta\n"
        f"{partitioned if table.partitioned_by else ''}"
        f"COMMENT {quoted(table.comment)}\n"
        f"TBLPROPERTIES ('delta.dataSkippingStatsColumns' = '{','.join(table.skipped_by)}')"
    )


def column_ddl(column: Column) -> str:
    """The DDL of a column, or of a struct field with the name ``column.field``."""
    required = " NOT NULL" if column.is_required else ""
    name = ".".join(f"`{part}`" for part in column.name.split("."))
    comment = f" COMMENT {quoted(column.comment)}" if column.comment else ""
    return f"{name} {spark_type(column.type)}{required}{comment}"


def quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
