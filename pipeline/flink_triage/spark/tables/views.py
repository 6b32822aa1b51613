"""The SQL query of each view, with the names of stored tables in braces.

A stored table contains all rows that runs wrote, unless they were deleted. A view contains the
current rows of the runs in ``{runs}``. For readers, these are all published runs. For the state
after an earlier run, they are the runs up to that run.
"""

from __future__ import annotations

from collections.abc import Mapping
from string import Formatter

import pyarrow as pa

from flink_triage.spark.tables.arrow_types import CONFIG_CHANGE, TEXT, spark_type
from flink_triage.spark.tables.schemas import (
    DEPLOYMENTS,
    DIAGNOSES,
    EVENTS,
    FLINK_CONFIG,
    INCIDENTS,
    LOG_FILES,
    LOG_VOLUME,
    MATCHES,
    RUNS,
    STACK_TRACES,
)

# Fields that `diagnoses` takes from the JSON of an incident.
_REMEDIATION = pa.struct(
    [
        ("summary", TEXT),
        ("steps", pa.list_(TEXT)),
        ("config", pa.list_(CONFIG_CHANGE)),
        ("risk", TEXT),
    ]
)
_OF_DIAGNOSIS = DIAGNOSES.columns[3:-4]
_DIAGNOSIS = pa.struct(
    [*((column.name, column.type) for column in _OF_DIAGNOSIS), ("remediation", _REMEDIATION)]
)
_DIAGNOSED_JSON = f"struct<diagnoses: array<{spark_type(_DIAGNOSIS)}>>"

# Rows of a table that is not stored, derived from its source.
ROWS: Mapping[str, str] = {
    INCIDENTS.name: "SELECT run_id, deployment, incident.* FROM {source} "
    "WHERE incident IS NOT NULL",
    DEPLOYMENTS.name: "SELECT run_id, deployment, state.* FROM {source} WHERE state IS NOT NULL",
    MATCHES.name: "SELECT e.run_id, e.deployment, m.signature, m.alternative, m.captures, "
    "m.excerpt, m.depth_from_root, e.file_id, e.generation, e.path, e.byte_offset, "
    "e.line + m.line_offset AS line, e.logged_at, e.fingerprint, e.job_id, e.task, e.subtask "
    "FROM {source} e LATERAL VIEW explode(e.matches) AS m",
    FLINK_CONFIG.name: "SELECT run_id, deployment, lifecycle.key AS key, "
    "coalesce(lifecycle.value, '') AS value, role, path, line, logged_at FROM {source} "
    "WHERE lifecycle.kind = 'config' AND lifecycle.key IS NOT NULL",
    DIAGNOSES.name: "SELECT run_id, deployment, incident_id, "
    + ", ".join(f"d.{column.name}" for column in _OF_DIAGNOSIS)
    + ", d.remediation.summary AS remediation_summary, d.remediation.steps, "
    "d.remediation.config, d.remediation.risk FROM (SELECT run_id, deployment, incident_id, "
    f"explode(from_json(incident_json, '{_DIAGNOSED_JSON}').diagnoses) AS d FROM {{source}})",
}

_PUBLISHED = "run_id IN (SELECT run_id FROM {runs})"


def _events() -> str:
    """SQL for events with the matches of the newest rematch that changed them, if any."""
    key = ("file_id", "generation", "byte_offset")
    columns = ", ".join(
        "coalesce(r.newest, e.matches) AS matches" if name == "matches" else f"e.{name}"
        for name in EVENTS.column_names
    )
    same = " AND ".join(f"r.{name} = e.{name}" for name in key)
    return (
        f"SELECT {columns} FROM {{events}} e LEFT JOIN (SELECT {', '.join(key)}, "
        f"max_by(matches, run_id) AS newest FROM {{rematches}} WHERE {_PUBLISHED} "
        f"GROUP BY {', '.join(key)}) r ON {same} WHERE e.{_PUBLISHED}"
    )


def _stack_traces() -> str:
    """SQL for one row per trace: counts over all runs, and the text of its first occurrence."""
    folded = {
        "event_count": "sum(event_count)",
        "first_seen_at": "min(first_seen_at)",
        "last_seen_at": "max(last_seen_at)",
        "run_id": "min(run_id)",
        "fingerprint": "fingerprint",
    }
    columns = ", ".join(
        f"{folded.get(name) or f'min_by({name}, struct(first_seen_at, run_id))'} AS {name}"
        for name in STACK_TRACES.column_names
    )
    return f"SELECT {columns} FROM {{stack_traces}} WHERE {_PUBLISHED} GROUP BY fingerprint"


# Run ids sort in publication order. The current incidents of a deployment are the incidents of its
# newest run, and the closed incidents since its last diagnosis over all events.
_NEWEST = (
    "SELECT deployment, max(run_id) AS newest, max_by(state.whole_run_id, run_id) AS whole_run_id "
    f"FROM {{diagnosed}} WHERE state IS NOT NULL AND {_PUBLISHED} GROUP BY deployment"
)
_DEPLOYMENTS = (
    f"SELECT d.* FROM ({ROWS[DEPLOYMENTS.name].format(source='{diagnosed}')}) d "
    f"JOIN ({_NEWEST}) n ON n.deployment = d.deployment AND n.newest = d.run_id"
)
_INCIDENTS = (
    f"SELECT i.* FROM ({ROWS[INCIDENTS.name].format(source='{diagnosed}')}) i "
    f"JOIN ({_NEWEST}) n ON n.deployment = i.deployment AND n.whole_run_id = i.whole_run_id "
    f"WHERE i.{_PUBLISHED} AND (i.is_closed OR i.run_id = n.newest)"
)
# The value printed last is current; values printed by a JobManager take precedence.
_FLINK_CONFIG = (
    "SELECT latest.run_id, deployment, key, latest.value, latest.role, latest.path, latest.line, "
    "latest.logged_at FROM (SELECT deployment, key, max_by("
    "struct(run_id, value, role, path, line, logged_at), "
    "struct(coalesce(role = 'jobmanager', false), logged_at, path, line, run_id)) AS latest "
    f"FROM ({ROWS[FLINK_CONFIG.name].format(source='{events}')}) WHERE {_PUBLISHED} "
    "GROUP BY deployment, key)"
)
# The newest row of each file content, under the last path of that content.
_CONTENTS = (
    "SELECT *, row_number() OVER (PARTITION BY path ORDER BY run_id DESC) = 1 AS is_current FROM "
    "(SELECT *, row_number() OVER (PARTITION BY file_id, generation ORDER BY run_id DESC) AS place "
    f"FROM {{log_files}} WHERE {_PUBLISHED}) WHERE place = 1"
)
_OF_FILES = ", ".join(LOG_FILES.column_names)

# The query of each view.
VIEWS: Mapping[str, str] = {
    RUNS.name: "SELECT * FROM {runs}",
    EVENTS.name: _events(),
    STACK_TRACES.name: _stack_traces(),
    LOG_VOLUME.name: f"SELECT * FROM {{log_volume}} WHERE {_PUBLISHED}",
    MATCHES.name: ROWS[MATCHES.name].format(source=f"({_events()})"),
    INCIDENTS.name: _INCIDENTS,
    DIAGNOSES.name: ROWS[DIAGNOSES.name].format(source=f"({_INCIDENTS})"),
    FLINK_CONFIG.name: _FLINK_CONFIG,
    LOG_FILES.name: f"SELECT {_OF_FILES} FROM ({_CONTENTS}) WHERE is_current",
}
# The ledger, including file contents whose path now has different content (not ``is_current``).
CONTENTS = "contents"
# Queries for internal use, in addition to the views.
CURRENT: Mapping[str, str] = {
    **VIEWS,
    DEPLOYMENTS.name: _DEPLOYMENTS,
    CONTENTS: f"SELECT {_OF_FILES}, is_current FROM ({_CONTENTS})",
}


def tables_of(query: str) -> set[str]:
    """The names of the stored tables in a query, which are in braces."""
    return {name for _, name, _, _ in Formatter().parse(query) if name}
