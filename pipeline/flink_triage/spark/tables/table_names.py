"""The stored tables, and the tables derived from them."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from flink_triage.spark.tables.arrow_types import TEXT
from flink_triage.spark.tables.schemas import (
    BATCH,
    DEPLOYMENT,
    DEPLOYMENTS,
    DIAGNOSES,
    EVENTS,
    FLINK_CONFIG,
    INCIDENTS,
    LOG_FILES,
    LOG_VOLUME,
    MATCHES,
    REMATCHES,
    RUN_ID,
    RUNS,
    STACK_TRACES,
)
from flink_triage.spark.tables.table_spec import Column, Table

BATCHES = Table(
    "batches",
    "State: the content and the read positions of each run; the rows of other tables are derived "
    "from it. `maintain` removes rows several days after their run was published",
    (
        RUN_ID,
        BATCH,
        Column("kind", TEXT, "header, file, summary, event, trace, volume or rematch"),
        DEPLOYMENT,
        Column("rows", pa.binary(), "The header as JSON, or rows of the kind as an Arrow stream"),
    ),
    partitioned_by=("batch", "kind"),
    kind="state",
)


def _struct_of(table: Table) -> pa.StructType:
    """The columns of a table derived from `diagnosed`, without ``run_id`` and ``deployment``."""
    own = (RUN_ID, DEPLOYMENT)
    return pa.struct([(c.name, c.type) for c in table.columns if c not in own])


DIAGNOSED = Table(
    "diagnosed",
    "Results of each run: one row per incident, and one per deployment with the state for the next "
    "run; read as `incidents`, `diagnoses` and `deployments`",
    (
        RUN_ID,
        DEPLOYMENT,
        Column("incident", _struct_of(INCIDENTS), "A row of `incidents`"),
        Column("state", _struct_of(DEPLOYMENTS), "The state for the next run"),
        Column("failure", TEXT, "Reason why the deployment could not be diagnosed"),
    ),
    skipped_by=("run_id", "deployment"),
)

# The stored tables; only a rematch writes to `rematches`.
STORED: Mapping[str, Table] = {
    table.name: table
    for table in (
        BATCHES,
        LOG_FILES,
        EVENTS,
        STACK_TRACES,
        LOG_VOLUME,
        DIAGNOSED,
        REMATCHES,
        RUNS,
    )
}
# The source table of each derived table, by the name of the derived table.
DERIVED: Mapping[str, Table] = {
    MATCHES.name: EVENTS,
    FLINK_CONFIG.name: EVENTS,
    INCIDENTS.name: DIAGNOSED,
    DIAGNOSES.name: INCIDENTS,
    DEPLOYMENTS.name: DIAGNOSED,
}
