"""The definition of a table: columns with Arrow types and comments, and the table version."""

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
    """A table; a stored one is ``_raw/name`` in a folder and ``raw_name`` in a schema.

    A stored table of the kind ``state`` is ``_state/name`` and ``state_name``. ``skipped_by`` are
    the columns whose statistics Delta uses to skip files (``delta.dataSkippingStatsColumns``).
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


# Increase this when rows of an earlier version can no longer be read; an added column does not
# require it. The version is in the comment of the column run_id of each table, so that readers get
# it with the schema.
TABLE_VERSION = 2
_VERSION = re.compile(r"table version (\d+)")


def version_of(metadata: Mapping[str, Any]) -> int | None:
    """The version in the metadata of the column run_id; ``None`` for tables of other programs."""
    found = _VERSION.search(str(metadata.get("comment", "")))
    return int(found[1]) if found else None
