"""Diagnoses the events of one deployment; returns its incidents and the state for the next run."""

from __future__ import annotations

import itertools
import json
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from flink_triage.analyzer import collector_at_rest
from flink_triage.diagnosis import Carried, IncrementalDiagnosis, diagnose_incrementally
from flink_triage.diagnosis.episodes.unknown_failures import merge_unknown
from flink_triage.diagnosis.resource_limits import Undiagnosed, guarded
from flink_triage.diagnosis.timeline.fold import Folder
from flink_triage.json_values import decode, encode
from flink_triage.local import Options, within
from flink_triage.model import Incident, Observation, UnknownFailure
from flink_triage.remediation import OptionTable
from flink_triage.settings import Settings
from flink_triage.signatures import SignaturePack
from flink_triage.spark.failpoints import failpoint
from flink_triage.spark.runtime.workers import ArrowFunction, in_worker
from flink_triage.spark.tables.arrow_types import FLAG, TEXT, TIME
from flink_triage.spark.tables.parcels import PARCEL_ROWS, RangePositions, in_file, packed, unpacked
from flink_triage.spark.tables.row_codec import STAGED_EVENT, array, event_rows, observations_of
from flink_triage.spark.tables.schemas import INCIDENTS

# The state in a row of `deployments`, from which the next diagnosis continues; null for a full
# diagnosis.
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
# One row per incident and one per deployment. The deployment's row has either its state or its
# diagnosis failure; if both are null, the deployment requires a full diagnosis.
DIAGNOSED_ROWS = pa.schema(
    [
        ("deployment", TEXT),
        ("incident", INCIDENT),
        ("state", STATE),
        ("unknown_json", TEXT),
        ("failure", TEXT),
    ]
)


@dataclass(frozen=True, slots=True)
class DiagnosisConfig:
    pack: SignaturePack
    settings: Settings
    flink_version: str | None
    since: datetime | None
    until: datetime | None
    positions: RangePositions
    # The witness of each deployment, for a Flink log without notable events.
    witnesses: Mapping[str, Observation]


def diagnosing_function(config: DiagnosisConfig) -> ArrowFunction:
    """Function for ``applyInArrow`` on the events of a deployment, in order of path and offset.

    The first row has no path: it contains the deployment and its ``state``.
    """
    return _on_groups("diagnose_events", config)


def parcels_function(config: DiagnosisConfig) -> ArrowFunction:
    """Function for ``applyInArrow`` on rows ``deployment, events, state`` of a deployment.

    ``events`` are staged parcels in any order. One row has the ``state`` and no events.
    """
    return _on_groups("diagnose_parcels", config)


def _on_groups(name: str, config: DiagnosisConfig) -> ArrowFunction:
    function = in_worker(__name__, name, pickle.dumps(config))
    # Annotations in this module are strings, but Spark detects the iterator form from actual types.
    function.__annotations__ = {
        "batches": Iterator[pa.RecordBatch],
        "return": Iterator[pa.RecordBatch],
    }
    return function


def diagnose_events(batches: Iterator[pa.RecordBatch], shipped: bytes) -> Iterator[pa.RecordBatch]:
    first = next(batches)
    deployment = first.column("deployment")[0].as_py()
    state = first.column("state")[0].as_py()

    def tables() -> Iterator[pa.Table]:
        for batch in itertools.chain((first,), batches):
            events = pa.Table.from_batches([batch]).drop_columns(["state"])
            yield events.filter(pc.is_valid(events["path"]))

    config = _config(shipped)
    with collector_at_rest():
        found = _diagnosed(deployment, state, _folded(tables(), config), config)
    yield found


def diagnose_parcels(batches: Iterator[pa.RecordBatch], shipped: bytes) -> Iterator[pa.RecordBatch]:
    config = _config(shipped)
    state: list[Mapping[str, Any]] = []
    names: set[str] = set()

    def tables() -> Iterator[pa.Table]:
        for batch in batches:
            names.update(batch.column("deployment").to_pylist())
            states = batch.column("state")
            state.extend(states.filter(states.is_valid()).to_pylist())
            for parcel in batch.column("events"):
                if parcel.is_valid:
                    yield in_file(unpacked(parcel.as_py()), config.positions)

    with collector_at_rest():
        kept = _folded(tables(), config)
        found = _diagnosed(names.pop(), state[0] if state else None, kept, config)
    yield found


@lru_cache(maxsize=1)
def _config(shipped: bytes) -> DiagnosisConfig:
    config: DiagnosisConfig = pickle.loads(shipped)
    return config


@lru_cache(maxsize=1)
def _option_table() -> OptionTable:
    return OptionTable.load()


def _folded(tables: Iterable[pa.Table], config: DiagnosisConfig) -> list[Observation]:
    """Observations within the time bounds, folded while they are read."""
    bounds = Options(since=config.since, until=config.until)
    folder = Folder(config.settings)
    for events in tables:
        folder.add(within(observations_of(events), bounds))
    return folder.take()


def _diagnosed(
    deployment: str,
    state: Mapping[str, Any] | None,
    observations: Sequence[Observation],
    config: DiagnosisConfig,
) -> pa.RecordBatch:
    """Rows of the diagnosis; one row with the failure if it raises or exceeds a limit.

    One row with only the deployment means that all its events must be diagnosed.
    """
    witness = config.witnesses.get(deployment)
    if not observations and witness is not None:
        observations = [witness]

    def rows() -> list[dict[str, object]]:
        failpoint("diagnose.deployment", deployment)
        continued = diagnose_incrementally(
            deployment,
            carried_of(state) if state is not None else None,
            observations,
            config.pack,
            _option_table(),
            config.settings,
            config.flink_version,
        )
        if continued is None:
            return [_needs_whole(deployment)]
        return _rows(deployment, continued, state, config.settings.max_evidence)

    found = guarded(rows, config.settings)
    if isinstance(found, Undiagnosed):
        found = [{"deployment": deployment, "failure": found.reason}]
    return _batch(found)


def _rows(
    deployment: str,
    continued: IncrementalDiagnosis,
    state: Mapping[str, Any] | None,
    max_evidence: int,
) -> list[dict[str, object]]:
    whole_run_id = state["whole_run_id"] if state is not None else None
    encoded = json.loads(state["closed_unknown_json"]) if state is not None else ()
    before = tuple(decode(UnknownFailure, value, "unknown_json") for value in encoded)
    closed = merge_unknown((*before, *continued.closed.unknown), max_evidence)
    unknown = merge_unknown((*closed, *continued.open.unknown), max_evidence)
    carried = continued.carried
    next_ = {
        "whole_run_id": whole_run_id,
        "in_time_from": carried.in_time_from if carried is not None else None,
        "has_closed": carried is not None and carried.has_closed,
        "carried": carried_bytes(carried) if carried is not None else None,
        "closed_unknown_json": json.dumps(encode(closed)),
    }
    incidents = [(incident, True) for incident in continued.closed.incidents]
    incidents += [(incident, False) for incident in continued.open.incidents]
    rows: list[dict[str, object]] = [
        {"deployment": deployment, "state": next_, "unknown_json": json.dumps(encode(unknown))}
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
        "incident_json": json.dumps(encode(incident)),
    }


# --- carried state ------------------------------------------------------------------------------


def carried_bytes(carried: Carried) -> bytes:
    """The observations as compressed rows of `events`."""
    observations = carried.observations
    parts = (observations[at : at + PARCEL_ROWS] for at in range(0, len(observations), PARCEL_ROWS))
    rows = (pa.RecordBatch.from_struct_array(event_rows(part, "", 0)) for part in parts)
    return packed(pa.schema(STAGED_EVENT), rows)


def carried_of(state: Mapping[str, Any]) -> Carried:
    """The carried state in the ``state`` of a deployment, which ``carried_bytes`` encoded."""
    observations = tuple(observations_of(unpacked(state["carried"])))
    return Carried(observations, state["in_time_from"], state["has_closed"])
