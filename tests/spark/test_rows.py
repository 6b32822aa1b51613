"""Tests the conversion of model values to Arrow and back; no session is started."""

from __future__ import annotations

import json
import pickle
from dataclasses import fields, replace
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from flink_triage.errors import CorruptStateError
from flink_triage.json_values import decode, encode
from flink_triage.model import (
    Event,
    Fingerprint,
    Frame,
    Lifecycle,
    Match,
    Observation,
    StackTrace,
    Throwable,
    TraceRow,
)
from flink_triage.reach import Spread, Subtask
from flink_triage.spark.tables.arrow_types import COUNT, TEXT, TIME, spark_schema
from flink_triage.spark.tables.evolution import missing_columns
from flink_triage.spark.tables.parcels import (
    PARCEL_BYTES,
    PARCEL_ROWS,
    RangePositions,
    in_file,
    open_parcels,
    parcels_of,
    unpacked,
)
from flink_triage.spark.tables.row_codec import (
    RANGE_NUMBER,
    event_rows,
    observations_of,
    scrub,
    trace_rows,
)
from flink_triage.spark.tables.schemas import EVENTS, RUN_ID, TABLES
from flink_triage.spark.tables.table_spec import TABLE_VERSION, Column, Table, arrow_schema

AT = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
VALUES: dict[str, object] = {
    "str": "text",
    "int": 7,
    "bool": True,
    "datetime | None": AT,
    "str | None": "text",
    "int | None": 7,
    "Process | None": "jobmanager",
    "Product | None": "other",
    "Spread | None": Spread(
        frozenset({Subtask("Map", 2, 3), Subtask("Map", None, None)}),
        frozenset({"b", "a"}),
        frozenset({"p"}),
    ),
}


def filled(kind: type, **given: object) -> object:
    """A value of ``kind`` without default values in any field, so that a lost field is detected."""
    values = {field.name: VALUES.get(str(field.type)) for field in fields(kind)} | given
    assert None not in values.values(), f"{kind.__name__}: a field of a type that is new here"
    return kind(**values)


def observation() -> Observation:
    match = filled(Match, captures={"expected": "1", "found": "2"})
    event = filled(Event, lifecycle=filled(Lifecycle))
    made = filled(
        Observation,
        event=event,
        fingerprint=Fingerprint("v1:a", "v1:b", "v1:c"),
        matches=(match, match),
        has_frames=False,
    )
    assert isinstance(made, Observation)
    return made


def test_complete_observation_survives_the_round_trip() -> None:
    rows = event_rows([observation()], "f", 0)
    table = pa.Table.from_batches([pa.RecordBatch.from_struct_array(rows)])
    assert list(observations_of(table)) == [observation()]


def test_empty_observation_survives_the_round_trip() -> None:
    event = Event("p", 0, 1, 1, None, None, None, None, "")
    names = {field.name: None for field in fields(Observation)}
    known = {"deployment": "d", "event": event, "matches": (), "occurrences": 1, "has_frames": True}
    bare = Observation(**(names | known))  # type: ignore[arg-type]
    rows = event_rows([bare], "f", 0)
    table = pa.Table.from_batches([pa.RecordBatch.from_struct_array(rows)])
    assert list(observations_of(table)) == [bare]


def test_part_of_a_table_is_read_as_that_part() -> None:
    full = observation()
    bare = replace(full, matches=(), event=replace(full.event, lifecycle=None, logged_at=None))
    one = replace(full, matches=(replace(full.matches[0], captures={}), full.matches[1]))
    made = [full, bare, one, full, bare]
    rows = event_rows(made, "f", 0)
    table = pa.Table.from_batches([pa.RecordBatch.from_struct_array(rows)])
    for start in range(len(made)):
        for size in range(1, len(made) - start + 1):
            part = list(observations_of(table.slice(start, size)))
            assert part == made[start : start + size]


def test_a_lone_surrogate_does_not_end_a_run() -> None:
    event = Event("p", 0, 1, 1, None, None, None, None, "half \ud83d of it")
    names = {field.name: None for field in fields(Observation)}
    known = {"deployment": "d", "event": event, "matches": (), "occurrences": 1, "has_frames": True}
    rows = event_rows([Observation(**(names | known))], "f", 0)  # type: ignore[arg-type]
    assert rows.field("message").to_pylist() == ["half \ufffd of it"]


def staged(*observations: Observation, number: int = 0) -> pa.RecordBatch:
    rows = pa.RecordBatch.from_struct_array(event_rows(observations, "f", 0))
    return rows.append_column(RANGE_NUMBER, pa.array([number] * len(rows), pa.int32()))


def test_lines_of_a_range_inside_a_file_count_from_its_beginning() -> None:
    inside = pa.Table.from_batches([staged(observation(), number=7)])
    line = observation().event.line
    assert in_file(inside, RangePositions({7: 1000})).column("line").to_pylist() == [line + 1000]
    assert in_file(inside, RangePositions({6: 1000})).column("line").to_pylist() == [line]


def test_small_parcels_are_opened_together() -> None:
    parcels = [p for n in range(3) for p in parcels_of(staged(observation(), number=n))]
    column = pa.RecordBatch.from_pydict({"rows": pa.array(parcels * (PARCEL_ROWS // 4))})
    shipped = pickle.dumps(("event", RangePositions({2: 1000})))
    batches = list(open_parcels(iter([column, column]), shipped))
    assert [len(batch) for batch in batches] == [PARCEL_ROWS, PARCEL_ROWS // 2]
    assert batches[0].schema.names == [n for n in EVENTS.column_names if n != "run_id"]
    line = observation().event.line
    assert batches[0].column("line").to_pylist()[:4] == [line, line, line + 1000, line]


def test_a_parcel_is_bounded_by_rows_and_by_bytes() -> None:
    small = staged(*[observation()] * (2 * PARCEL_ROWS + 1))
    assert [len(unpacked(parcel)) for parcel in parcels_of(small)] == [PARCEL_ROWS, PARCEL_ROWS, 1]
    text = "x" * (PARCEL_BYTES // 3)
    large = staged(*[replace(observation(), event=replace(observation().event, message=text))] * 7)
    parcels = list(parcels_of(large))
    assert sum(len(unpacked(parcel)) for parcel in parcels) == 7
    assert all(unpacked(parcel).nbytes <= PARCEL_BYTES for parcel in parcels)
    assert list(parcels_of(small.slice(0, 0))) == []


def test_scrubbing_keeps_valid_text() -> None:
    assert scrub(["\U0001f600", {"a": "é"}]) == ["\U0001f600", {"a": "é"}]


def test_suppressed_chains_are_kept() -> None:
    hidden = Throwable("a.Hidden", "in finally", (Frame("a.B", "close"),), relation="suppressed")
    thrown = Throwable(
        "a.Thrown", "m", (Frame("a.B", "run", "B.java", 3),), suppressed=((hidden,),)
    )
    trace = StackTrace((thrown,))
    (row,) = trace_rows(
        [TraceRow(Fingerprint("v1:a", "v1:b"), trace, "exemplar", 2, AT, AT)]
    ).to_pylist()
    suppressed = json.loads(row["throwables"][0]["suppressed_json"])
    assert [[decode(Throwable, item, "") for item in chain] for chain in suppressed] == [[hidden]]


def test_plain_values_come_back_as_they_were() -> None:
    assert decode(Observation, json.loads(json.dumps(encode(observation()))), "") == observation()


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_every_column_of_a_table_has_a_comment(table: object) -> None:
    assert isinstance(table, Table)
    assert all(column.comment for column in table.columns)
    assert len(set(table.column_names)) == len(table.columns)
    assert "run_id" in table.column_names
    assert spark_schema(arrow_schema(table)).count("`run_id` string") == 1


SIDE = pa.struct([("left", COUNT), ("right", pa.list_(TEXT))])
OWN = Table("own", "", (RUN_ID, Column("at", TIME, ""), Column("side", SIDE, "")))


def stored(*columns: StructField) -> StructType:
    """The schema of a table with these columns in addition to ``run_id``."""
    told = {"comment": f"table version {TABLE_VERSION}"}
    return StructType([StructField("run_id", StringType(), metadata=told), *columns])


def test_missing_columns_include_fields_of_structs() -> None:
    at, left = StructField("at", TimestampType()), StructField("left", LongType())
    right = StructField("right", ArrayType(StringType()))
    more = StructField("more", StringType())
    for schema, expected in (
        (stored(at, StructField("side", StructType([right, more, left])), more), []),
        (stored(at, StructField("side", StructType([left]))), ["side.right"]),
        (stored(StructField("side", StructType([]))), ["at", "side.left", "side.right"]),
    ):
        assert [c.name for c in missing_columns(schema, OWN, "/own")] == expected


def test_a_column_that_cannot_be_added_or_used_is_refused() -> None:
    needed = Table("own", "", (RUN_ID, Column("batch", COUNT, "", is_required=True)))
    with pytest.raises(CorruptStateError, match="/own: column batch is missing, expected bigint"):
        missing_columns(stored(), needed, "/own")
    words = "/own: column side.right is array<bigint>, expected array<string>"
    side = StructType([StructField("right", ArrayType(LongType()))])
    with pytest.raises(CorruptStateError, match=words):
        missing_columns(stored(StructField("side", side)), OWN, "/own")
