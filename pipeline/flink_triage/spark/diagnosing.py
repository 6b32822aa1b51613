"""Events of one deployment in, rows of `incidents` out: the second crossing into Python."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import flink_triage
from flink_triage.diagnosis import diagnose
from flink_triage.diagnosis.fold import fold
from flink_triage.local import Options, within
from flink_triage.model import Incident, Observation, UnknownFailure
from flink_triage.remediation import OptionTable
from flink_triage.settings import Settings
from flink_triage.signatures import SignaturePack
from flink_triage.spark.points import reached
from flink_triage.spark.rows import LATER, array, observations_of
from flink_triage.spark.schemas import INCIDENTS
from flink_triage.spark.values import to_plain

INCIDENT_ROWS = pa.schema(
    [(column.name, column.type) for column in INCIDENTS.columns if column.name not in LATER]
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


def diagnosing_function(
    config: DiagnosisConfig,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What ``applyInArrow`` calls on the events of a deployment, in order of path and offset.

    A row without a path only names its deployment.
    """
    package_root = str(Path(flink_triage.__file__).parent.parent)
    shipped_config = pickle.dumps(config)

    def diagnose_group(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import sys

        if package_root not in sys.path:
            sys.path.append(package_root)
        from flink_triage.spark.diagnosing import diagnose_rows

        yield diagnose_rows(batches, shipped_config)

    # The annotations are strings here; Spark tells the iterator form by the types themselves.
    diagnose_group.__annotations__ = {
        "batches": Iterator[pa.RecordBatch],
        "return": Iterator[pa.RecordBatch],
    }
    return diagnose_group


@lru_cache(maxsize=1)
def _config(shipped: bytes) -> DiagnosisConfig:
    config: DiagnosisConfig = pickle.loads(shipped)
    return config


@lru_cache(maxsize=1)
def _option_table() -> OptionTable:
    return OptionTable.load()


def diagnose_rows(batches: Iterator[pa.RecordBatch], shipped_config: bytes) -> pa.RecordBatch:
    """Rows of `incidents` for the one deployment that ``batches`` are of."""
    reached("diagnose.deployment")
    config = _config(shipped_config)
    keep = config.settings.max_observations_per_key
    kept: list[Observation] = []
    waiting: list[Observation] = []
    deployment = ""
    bounds = Options(since=config.since, until=config.until)
    for batch in batches:
        deployment = deployment or batch.column("deployment")[0].as_py()
        events = pa.Table.from_batches([batch])
        events = events.filter(pc.is_valid(events["path"]))
        waiting += within(observations_of(events), bounds)
        # Folding as much as is kept, each time, keeps the sum of all foldings linear.
        if len(waiting) >= max(FOLD_EVERY, len(kept)):
            kept, waiting = fold([*kept, *waiting], keep), []
    incidents, unknown, _ = diagnose(
        fold([*kept, *waiting], keep),
        config.pack,
        _option_table(),
        config.settings,
        config.flink_version,
        deployments=(deployment,),
    )
    return incident_rows(incidents, unknown)


def incident_rows(
    incidents: tuple[Incident, ...], unknown: tuple[UnknownFailure, ...]
) -> pa.RecordBatch:
    """Rows of `incidents`, in their order; the first also carries what no signature names."""
    rows = [_row(incident) for incident in incidents]
    if rows:
        rows[0]["unknown_json"] = json.dumps(to_plain(unknown))
    columns = [array([row.get(field.name) for row in rows], field.type) for field in INCIDENT_ROWS]
    return pa.RecordBatch.from_arrays(columns, schema=INCIDENT_ROWS)


def _row(incident: Incident) -> dict[str, object]:
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
