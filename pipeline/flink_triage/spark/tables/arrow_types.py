"""The Arrow types of rows, and their conversion to Spark types."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

TEXT = pa.string()
COUNT = pa.int64()
SMALL = pa.int32()
TIME = pa.timestamp("us", tz="UTC")
FLAG = pa.bool_()
REAL = pa.float64()
TEXTS = pa.list_(TEXT)

LIFECYCLE = pa.struct(
    [
        ("kind", TEXT),
        ("job_id", TEXT),
        ("job_name", TEXT),
        ("task", TEXT),
        ("subtask", SMALL),
        ("parallelism", SMALL),
        ("attempt", SMALL),
        ("from_state", TEXT),
        ("to_state", TEXT),
        ("checkpoint_id", COUNT),
        ("resource_id", TEXT),
        ("key", TEXT),
        ("value", TEXT),
    ]
)
MATCH = pa.struct(
    [
        ("signature", TEXT),
        ("alternative", SMALL),
        ("captures", pa.map_(TEXT, TEXT)),
        ("excerpt", TEXT),
        ("depth_from_root", SMALL),
        ("line_offset", SMALL),
    ]
)
SPREAD = pa.struct(
    [
        (
            "subtasks",
            pa.list_(pa.struct([("task", TEXT), ("subtask", SMALL), ("parallelism", SMALL)])),
        ),
        ("hosts", TEXTS),
        ("paths", TEXTS),
    ]
)
FRAME = pa.struct(
    [
        ("class_name", TEXT),
        ("method", TEXT),
        ("file", TEXT),
        ("line", SMALL),
        ("jar", TEXT),
        ("origin", TEXT),
    ]
)
THROWABLE = pa.struct(
    [
        ("type", TEXT),
        ("message", TEXT),
        ("frames", pa.list_(FRAME)),
        ("omitted_frame_count", SMALL),
        ("relation", TEXT),
        ("is_serialized", FLAG),
        # The suppressed cause chains, as JSON, because Spark has no recursive types.
        ("suppressed_json", TEXT),
    ]
)
PROBLEM = pa.struct([("path", TEXT), ("reason", TEXT)])
CONFIG_CHANGE = pa.struct(
    [
        ("key", TEXT),
        ("value", TEXT),
        ("action", TEXT),
        ("reason", TEXT),
        ("scope", TEXT),
        ("restart", FLAG),
        ("current", TEXT),
        ("current_source", TEXT),
    ]
)
EVIDENCE = pa.struct(
    [("path", TEXT), ("line", COUNT), ("offset", COUNT), ("at", TIME), ("excerpt", TEXT)]
)


def spark_type(kind: pa.DataType) -> str:
    """The type in Spark's DDL, for example ``array<string>``."""
    if pa.types.is_struct(kind):
        inner = ", ".join(f"`{field.name}`: {spark_type(field.type)}" for field in kind)
        return f"struct<{inner}>"
    if pa.types.is_map(kind):
        return f"map<{spark_type(kind.key_type)}, {spark_type(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"array<{spark_type(kind.value_type)}>"
    return _SCALARS[kind]


_SCALARS: Mapping[pa.DataType, str] = {
    TEXT: "string",
    COUNT: "bigint",
    SMALL: "int",
    TIME: "timestamp",
    FLAG: "boolean",
    REAL: "double",
    pa.binary(): "binary",
}


def spark_schema(schema: pa.Schema) -> str:
    """The columns and their types in Spark's DDL, separated by commas."""
    return ", ".join(f"`{field.name}` {spark_type(field.type)}" for field in schema)
