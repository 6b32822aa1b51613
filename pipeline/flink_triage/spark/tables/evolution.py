"""Finds the columns that a stored table lacks, and builds the select list that fills them.

A build may read tables of a different build: within a table version, columns are only added.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql.types import DataType, StructType

from flink_triage.errors import CorruptStateError
from flink_triage.spark.tables.arrow_types import spark_type
from flink_triage.spark.tables.table_spec import TABLE_VERSION, Column, Table, version_of


def missing_columns(schema: StructType, table: Table, place: str) -> tuple[Column, ...]:
    """Columns, and fields of structs as ``column.field``, that the table at ``place`` lacks.

    Raises ``CorruptStateError`` for a table of a different version, for a table of a different
    program that lacks columns, and for a required column that is missing or any column of a
    different type.
    """
    there = {field.name: field for field in schema.fields}
    version = version_of(there["run_id"].metadata) if "run_id" in there else None
    if version is not None and version != TABLE_VERSION:
        raise other_version(place, version)
    missing = [column for column in table.columns if column.name not in there]
    if missing and version is None:
        raise CorruptStateError(
            f"{place}: has no column {', '.join(column.name for column in missing)}, "
            "and was not created by flink-triage; write to a new warehouse"
        )
    for column in table.columns:
        if column.name in there:
            missing += _lacking(column.name, there[column.name].dataType, column.type, place)
    for column in missing:
        if column.is_required:
            raise _incompatible(place, column.name, "missing", column.type)
    return tuple(missing)


def _lacking(name: str, found: DataType, wanted: pa.DataType, place: str) -> Iterator[Column]:
    """Fields that a struct lacks; raises ``CorruptStateError`` if the types differ otherwise."""
    if isinstance(found, StructType) and pa.types.is_struct(wanted):
        there = {field.name: field.dataType for field in found.fields}
        for field in wanted:
            inner = f"{name}.{field.name}"
            if field.name in there:
                yield from _lacking(inner, there[field.name], field.type, place)
            else:
                yield Column(inner, field.type, "")
    elif found.simpleString() != _plain(wanted):
        raise _incompatible(place, name, found.simpleString(), wanted)


def _plain(kind: pa.DataType) -> str:
    """The type as ``simpleString`` of Spark's types prints it."""
    return spark_type(kind).replace("`", "").replace(": ", ":").replace(", ", ",")


def _incompatible(place: str, name: str, found: str, wanted: pa.DataType) -> CorruptStateError:
    return CorruptStateError(
        f"{place}: column {name} is {found}, expected {_plain(wanted)}; write to a new warehouse"
    )


def other_version(place: str, version: int) -> CorruptStateError:
    return CorruptStateError(
        f"{place}: has table version {version}, this release reads {TABLE_VERSION}; "
        "use the release that wrote it, or read the logs into a new warehouse with "
        "flink-triage run --warehouse DIR"
    )


def select_list(table: Table, missing: Iterable[Column]) -> list[str]:
    """SQL for all columns of the table, in schema order; null for missing ones."""
    lacking = {column.name for column in missing}
    return [f"{_value(c.name, c.type, lacking)} AS `{c.name}`" for c in table.columns]


def _value(path: str, kind: pa.DataType, lacking: set[str]) -> str:
    if path in lacking:
        return f"CAST(NULL AS {spark_type(kind)})"
    if not any(name.startswith(f"{path}.") for name in lacking):
        return _quoted(path)
    fields = (f"'{f.name}', {_value(f'{path}.{f.name}', f.type, lacking)}" for f in kind)
    return f"IF({_quoted(path)} IS NULL, NULL, named_struct({', '.join(fields)}))"


def _quoted(path: str) -> str:
    return ".".join(f"`{name}`" for name in path.split("."))
