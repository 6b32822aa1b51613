"""What a table consists of: its columns with Arrow types and comments, and the version of all."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: pa.DataType
    comment: str
    is_required: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table; one that is stored is ``_raw/name`` in a folder and ``raw_name`` in a schema.

    ``partitioned_by`` and ``skipped_by`` are columns that readers filter by.
    """

    name: str
    comment: str
    columns: tuple[Column, ...]
    partitioned_by: tuple[str, ...] = ()
    skipped_by: tuple[str, ...] = ("run_id",)
    kind: Literal["raw", "state"] = "raw"

    @property
    def stored_name(self) -> str:
        return f"{self.kind}_{self.name}"

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def type_of(self, name: str) -> pa.DataType:
        return next(column.type for column in self.columns if column.name == name)


def arrow_schema(table: Table) -> pa.Schema:
    return pa.schema([(column.name, column.type) for column in table.columns])


# Increase this when rows of an earlier version can no longer be read as they are; an added column
# is no reason. The version is in the comment of each table's column run_id, so every reader gets it
# with the schema.
TABLE_VERSION = 2
_VERSION = re.compile(r"table version (\d+)")


def version_of(metadata: Mapping[str, Any]) -> int | None:
    """The version of a table, by the metadata of its column run_id; None where it is not ours."""
    found = _VERSION.search(str(metadata.get("comment", "")))
    return int(found[1]) if found else None
