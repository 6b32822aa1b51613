"""Compares the results of both runners for every log, and queries the tables with Spark SQL."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import pytest
from pyspark.sql import Row, SparkSession

from benchmarks.floods import write_flood
from flink_triage.local import Options, run_local
from flink_triage.model import Result
from flink_triage.report import to_json
from flink_triage.settings import Settings
from flink_triage.spark.pipeline import run
from flink_triage.spark.query.read_result import create_views, read_result

LOGS = Path(__file__).parents[1] / "logs"
OPTIONS = Options(settings=Settings(settle_seconds=-1e9))

DOWN_TO_THE_LINE = """
    SELECT d.deployment, d.signature, m.path, m.byte_offset, m.line, m.excerpt, e.size_bytes
    FROM diagnoses d
    JOIN incidents i ON i.run_id = d.run_id AND i.incident_id = d.incident_id
    JOIN runs r ON r.run_id = d.run_id
    JOIN events e ON e.deployment = d.deployment
    JOIN matches m
      ON m.path = e.path AND m.byte_offset = e.byte_offset AND m.signature = d.signature
    WHERE d.rank = 1
"""


@pytest.fixture(scope="module")
def warehouse(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of a run over all logs of the project."""
    folder = tmp_path_factory.mktemp("all")
    run(spark, [str(LOGS)], str(folder), OPTIONS)
    return folder


@pytest.fixture(scope="module")
def expected() -> Result:
    return run_local([str(LOGS)], OPTIONS)


@pytest.fixture(scope="module")
def found(spark: SparkSession, warehouse: Path) -> Result:
    return read_result(spark, str(warehouse))


@pytest.mark.parametrize(
    "part", ["incidents", "unknown", "coverage", "effective_config", "stack_traces"]
)
def test_both_runners_agree_on_every_log(found: Result, expected: Result, part: str) -> None:
    actual = by_deployment(to_json(found)[part])
    wanted = by_deployment(to_json(expected)[part])
    assert actual == wanted
    assert list(actual) == list(wanted)


@pytest.mark.parametrize("most", [60, 300])
def test_both_runners_keep_the_same_observations_and_agree(
    spark: SparkSession, tmp_path: Path, most: int
) -> None:
    logs = tmp_path / "logs"
    for form, size in {"disconnects": 200_000, "session": 200_000, "jobs": 1_500_000}.items():
        # Each form is a separate deployment and part of a common one. Ranges split files, and some
        # ranges alone exceed the limit.
        for folder in (logs / form, logs / "all" / form):
            write_flood(form, folder, size)
    settings = replace(OPTIONS.settings, max_observations=most, range_bytes=250_000)
    options = replace(OPTIONS, settings=settings, group_by=r"logs/([^/]+)/")
    warehouse = tmp_path / "tables"
    run(spark, [str(logs)], str(warehouse), options)
    found = to_json(read_result(spark, str(warehouse)))
    wanted = to_json(run_local([str(logs)], options))
    for part in ("incidents", "unknown", "coverage", "effective_config", "stack_traces"):
        assert by_deployment(found[part]) == by_deployment(wanted[part]), part
    notes = [note for incident in found["incidents"] for note in incident["notes"]]
    assert any("were analyzed individually" in note for note in notes)
    create_views(spark, str(warehouse))
    kept = spark.sql(
        "SELECT deployment, count(*) AS rows FROM events GROUP BY deployment"
    ).collect()
    assert any(row["rows"] > most for row in kept)


def by_deployment(part: Any) -> Any:
    """Groups a list by deployment or fingerprint, so that a difference shows where it occurs."""
    if not isinstance(part, list):
        return part
    grouped: dict[str, list[Any]] = {}
    for item in part:
        grouped.setdefault(item.get("deployment") or item["fingerprint"], []).append(item)
    return grouped


def test_a_second_run_over_every_log_writes_nothing(
    spark: SparkSession, warehouse: Path, data_files: Callable[[Path], set[str]]
) -> None:
    before = data_files(warehouse)
    run(spark, [str(LOGS)], str(warehouse), OPTIONS)
    assert data_files(warehouse) == before


@pytest.fixture(scope="module")
def joined(spark: SparkSession, warehouse: Path) -> list[Row]:
    create_views(spark, str(warehouse))
    return spark.sql(DOWN_TO_THE_LINE).collect()


def test_plain_sql_leads_from_each_first_diagnosis_to_lines(
    joined: list[Row], expected: Result
) -> None:
    first = {(i.deployment, i.diagnoses[0].signature) for i in expected.incidents if i.diagnoses}
    assert len(first) > 10
    assert {(row["deployment"], row["signature"]) for row in joined} == first


def test_log_contains_the_excerpt_at_the_offset_of_the_match(joined: list[Row]) -> None:
    for row in joined:
        with opened(Path(row["path"])) as log:
            log.seek(row["byte_offset"])
            event = log.read(row["size_bytes"]).decode("utf-8", "replace")
        assert holds_words(event, row["excerpt"]), row


def opened(path: Path) -> IO[bytes]:
    """The decompressed file, because offsets count decompressed bytes."""
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")


def holds_words(event: str, excerpt: str) -> bool:
    """Whether the event contains the first words of an excerpt, which are not truncated or masked.

    JSON logs contain the class and the message of a throwable in separate fields, in any order.
    """
    words = excerpt.split()[:4]
    if event.startswith("{"):
        plain = event.replace("\\/", "/")
        return all(word.rstrip(":….") in plain for word in words)
    return " ".join(words).rstrip("….") in " ".join(event.split())
