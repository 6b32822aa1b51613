"""Events of one deployment in, its incidents and what to carry out: the second way into Python."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from flink_triage.diagnosis import Carried, Continued, diagnose_on
from flink_triage.diagnosis.fold import fold
from flink_triage.diagnosis.unknown import merge_unknown
from flink_triage.local import Options, within
from flink_triage.model import Incident, Observation, UnknownFailure
from flink_triage.remediation import OptionTable
from flink_triage.settings import Settings
from flink_triage.signatures import SignaturePack
from flink_triage.spark.points import reached
from flink_triage.spark.row_types import FLAG, TEXT, TIME
from flink_triage.spark.rows import array, event_rows, observations_of
from flink_triage.spark.schemas import INCIDENTS
from flink_triage.spark.values import from_plain, to_plain
from flink_triage.spark.workers import ArrowFunction, in_worker
from flink_triage.stages import collector_at_rest

# What a deployment's row of `deployments` gives to its next diagnosis; null for one in whole.
STATE = pa.struct(
    [
        ("whole_run_id", TEXT),
        ("in_time_from", TIME),
        ("has_closed", FLAG),
        ("carried", pa.binary()),
        ("closed_unknown_json", TEXT),
    ]
)
_LATER = frozenset({"run_id", "status"})
INCIDENT = pa.struct([(c.name, c.type) for c in INCIDENTS.columns if c.name not in _LATER])
# One row per incident, and one per deployment with its state; without one it has to be diagnosed
# in whole.
DIAGNOSED_ROWS = pa.schema(
    [("deployment", TEXT), ("incident", INCIDENT), ("state", STATE), ("unknown_json", TEXT)]
)
# Observations waiting to be folded into those that are kept.
FOLD_EVERY = 20_000


@dataclass(frozen=True, slots=True)
class DiagnosisConfig:
    pack: SignaturePack
    settings: Settings
    flink_version: str | None
    since: datetime | None
    until: datetime | None


def diagnosing_function(config: DiagnosisConfig) -> ArrowFunction:
    """What ``applyInArrow`` calls on the events of a deployment, in order of path and offset.

    The first row has no path: it names the deployment, and holds its ``state``.
    """
    function = in_worker(__name__, "diagnose_group", pickle.dumps(config))
    # The annotations are strings there; Spark tells the iterator form by the types themselves.
    function.__annotations__ = {
        "batches": Iterator[pa.RecordBatch],
        "return": Iterator[pa.RecordBatch],
    }
    return function


def diagnose_group(batches: Iterator[pa.RecordBatch], shipped: bytes) -> Iterator[pa.RecordBatch]:
    with collector_at_rest():
        found = diagnose_rows(batches, shipped)
    yield found


@lru_cache(maxsize=1)
def _config(shipped: bytes) -> DiagnosisConfig:
    config: DiagnosisConfig = pickle.loads(shipped)
    return config


@lru_cache(maxsize=1)
def _option_table() -> OptionTable:
    return OptionTable.load()


def diagnose_rows(batches: Iterator[pa.RecordBatch], shipped_config: bytes) -> pa.RecordBatch:
    """Rows of ``DIAGNOSED_ROWS`` for the one deployment that ``batches`` are of."""
    reached("diagnose.deployment")
    config = _config(shipped_config)
    keep = config.settings.max_observations_per_key
    kept: list[Observation] = []
    waiting: list[Observation] = []
    deployment = ""
    state: Mapping[str, Any] | None = None
    bounds = Options(since=config.since, until=config.until)
    for batch in batches:
        if not deployment:
            deployment = batch.column("deployment")[0].as_py()
            state = batch.column("state")[0].as_py()
        events = pa.Table.from_batches([batch]).drop_columns(["state"])
        events = events.filter(pc.is_valid(events["path"]))
        waiting += within(observations_of(events), bounds)
        # Folding as much as is kept, each time, keeps the sum of all foldings linear.
        if len(waiting) >= max(FOLD_EVERY, len(kept)):
            kept, waiting = fold([*kept, *waiting], keep), []
    continued = diagnose_on(
        deployment,
        carried_of(state) if state is not None else None,
        [*kept, *waiting],
        config.pack,
        _option_table(),
        config.settings,
        config.flink_version,
    )
    if continued is None:
        return _batch([_needs_whole(deployment)])
    return _batch(_rows(deployment, continued, state, config.settings.max_evidence))


def _rows(
    deployment: str,
    continued: Continued,
    state: Mapping[str, Any] | None,
    max_evidence: int,
) -> list[dict[str, object]]:
    whole_run_id = state["whole_run_id"] if state is not None else None
    told = json.loads(state["closed_unknown_json"]) if state is not None else ()
    before = tuple(from_plain(UnknownFailure, value) for value in told)
    closed = merge_unknown((*before, *continued.closed.unknown), max_evidence)
    unknown = merge_unknown((*closed, *continued.open.unknown), max_evidence)
    carried = continued.carried
    next_ = {
        "whole_run_id": whole_run_id,
        "in_time_from": carried.in_time_from if carried is not None else None,
        "has_closed": carried is not None and carried.has_closed,
        "carried": carried_bytes(carried) if carried is not None else None,
        "closed_unknown_json": json.dumps(to_plain(closed)),
    }
    incidents = [(incident, True) for incident in continued.closed.incidents]
    incidents += [(incident, False) for incident in continued.open.incidents]
    rows: list[dict[str, object]] = [
        {"deployment": deployment, "state": next_, "unknown_json": json.dumps(to_plain(unknown))}
    ]
    for incident, is_closed in incidents:
        row = {**_incident_row(incident), "is_closed": is_closed, "whole_run_id": whole_run_id}
        rows.append({"deployment": deployment, "incident": row})
    return rows


def _needs_whole(deployment: str) -> dict[str, object]:
    return {"deployment": deployment}


def _batch(rows: list[dict[str, object]]) -> pa.RecordBatch:
    columns = [array([row.get(field.name) for row in rows], field.type) for field in DIAGNOSED_ROWS]
    return pa.RecordBatch.from_arrays(columns, schema=DIAGNOSED_ROWS)


def _incident_row(incident: Incident) -> dict[str, object]:
    best = incident.diagnoses[0] if incident.diagnoses else None
    return {
        "deployment": incident.deployment,
        "incident_id": incident.incident_id,
        "job_id": incident.job_id,
        "job_name": incident.job_name,
        "flink_version": incident.flink_version,
        "started_at": incident.started_at,
        "ended_at": incident.ended_at,
        "verdict": incident.verdict,
        "outcome": incident.outcome,
        "restarts": incident.restarts,
        "root_cause_signature": best.signature if best else None,
        "severity": best.severity if best else None,
        "confidence": best.confidence if best else None,
        "summary": incident.summary,
        "incident_json": json.dumps(to_plain(incident)),
    }


# --- what is carried ---------------------------------------------------------------------------


def carried_bytes(carried: Carried) -> bytes:
    """The observations as an Arrow stream of rows of `events`."""
    rows = event_rows(carried.observations, "", 0)
    batch = pa.RecordBatch.from_struct_array(rows)
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def carried_of(state: Mapping[str, Any]) -> Carried:
    """What ``carried_bytes`` was made of."""
    with pa.ipc.open_stream(state["carried"]) as reader:
        rows = reader.read_all()
    return Carried(tuple(observations_of(rows)), state["in_time_from"], state["has_closed"])
