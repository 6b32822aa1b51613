"""Tests runs on Spark and Delta over a recorded log."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from flink_triage.errors import OutputHeldError, UsageError
from flink_triage.local import Options, run_local
from flink_triage.settings import Settings
from flink_triage.spark import publish
from flink_triage.spark.pipeline import diagnose_again, run
from flink_triage.spark.query.history import recurrences
from flink_triage.spark.query.read_result import read_result, read_table
from flink_triage.spark.tables.lock import held
from flink_triage.spark.tables.schemas import EVENTS, INCIDENTS, LOG_FILES, LOG_VOLUME, RUNS
from flink_triage.spark.tables.table_names import STORED
from flink_triage.spark.tables.warehouse import Warehouse

Listed = Callable[[Path], set[str]]
SETTLED = Options(settings=Settings(settle_seconds=-1e9))


NPE = "operator/user-code-exception/npe-1.16.0/logs"


@pytest.fixture
def logs(tmp_path: Path, recorded_logs: Path) -> Path:
    """A job whose user function throws, on Flink 1.16.0."""
    return Path(
        shutil.copytree(recorded_logs / NPE, tmp_path / "orders", copy_function=shutil.copyfile)
    )


@pytest.fixture(scope="module")
def once(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same logs and a file that is not a log, and a warehouse after one run; both read-only."""
    folder = tmp_path_factory.mktemp("once")
    logs, warehouse = folder / "orders", folder / "warehouse"
    shutil.copytree(Path(__file__).parents[1] / "logs" / NPE, logs, copy_function=shutil.copyfile)
    (logs / "core.log").write_bytes(bytes(range(256)) * 64)
    run(spark, [str(logs)], str(warehouse), SETTLED)
    return logs, warehouse


def jobmanager(logs: Path) -> Path:
    return max(logs.glob("*.log"), key=lambda path: path.stat().st_size)


def test_run_matches_the_local_runner_and_a_second_run_adds_nothing(
    spark: SparkSession, once: tuple[Path, Path], data_files: Listed
) -> None:
    logs, warehouse = once
    expected, found = run_local([str(logs)], SETTLED), read_result(spark, str(warehouse))
    assert found.incidents == expected.incidents
    assert found.unknown == expected.unknown
    assert found.coverage == expected.coverage
    assert found.effective_config == expected.effective_config
    tables = {f"{path.parent.name}_{path.name}" for path in warehouse.glob("_*/*")}
    assert tables == {f"_{table.stored_name}" for table in STORED.values()}
    before = data_files(warehouse)
    assert run(spark, [str(logs)], str(warehouse), SETTLED) == found.run.run_id
    assert data_files(warehouse) == before


def test_every_column_of_every_table_has_a_comment(
    spark: SparkSession, once: tuple[Path, Path]
) -> None:
    warehouse = Warehouse(str(once[1]))
    for table in STORED.values():
        described = spark.sql(f"DESCRIBE delta.`{warehouse.location(table.name)}`").collect()
        comments = {r["col_name"]: r["comment"] for r in described if "#" not in r["col_name"]}
        assert comments == {column.name: column.comment for column in table.columns}
        schema = spark.read.format("delta").load(warehouse.location(table.name)).schema
        required = {field.name for field in schema if not field.nullable}
        assert required == {column.name for column in table.columns if column.is_required}


def test_unread_files_are_in_the_ledger_with_a_reason(
    spark: SparkSession, once: tuple[Path, Path]
) -> None:
    warehouse = Warehouse(str(once[1]))
    rows = warehouse.published(spark, LOG_FILES).where(F.col("state") == "quarantined").collect()
    assert [(Path(row["path"]).name, bool(row["reason"])) for row in rows] == [("core.log", True)]
    counts = json.dumps(warehouse.read(spark, RUNS).first()["row_counts"])
    assert '"log_files"' in counts


def test_a_grown_file_is_read_from_where_reading_ended_and_diagnosed_as_a_whole(
    spark: SparkSession, logs: Path, tmp_path: Path, settled: Options
) -> None:
    log = jobmanager(logs)
    whole = log.read_bytes()
    cut = whole.rindex(b"\n2", 0, len(whole) // 2) + 1
    log.write_bytes(whole[:cut])
    warehouse = str(tmp_path / "warehouse")
    first = run(spark, [str(logs)], warehouse, settled)
    log.write_bytes(whole)
    second = run(spark, [str(logs)], warehouse, settled)
    assert first != second
    expected, found = run_local([str(logs)], settled), read_result(spark, warehouse)
    assert found.incidents == expected.incidents
    assert found.coverage == expected.coverage
    events = Warehouse(warehouse).published(spark, EVENTS)
    assert events.where(F.col("run_id") == second).agg(F.min("byte_offset")).first()[0] >= cut
    assert events.count() == events.select("path", "byte_offset").distinct().count()


def test_logs_may_come_after_a_run_that_could_read_no_file(
    spark: SparkSession, logs: Path, tmp_path: Path, settled: Options
) -> None:
    warehouse = str(tmp_path / "warehouse")
    unreadable = tmp_path / "dump"
    unreadable.mkdir()
    (unreadable / "heap.log").write_bytes(b"JAVA PROFILE 1.0.2\0" + bytes(64))
    inputs = [str(unreadable), str(logs)]
    run(spark, inputs[:1], warehouse, settled)
    assert Warehouse(warehouse).read(spark, EVENTS).isEmpty()
    run(spark, inputs, warehouse, settled)
    expected, found = run_local(inputs, settled), read_result(spark, warehouse)
    assert found.incidents == expected.incidents
    assert found.coverage == expected.coverage


def test_stored_events_are_diagnosed_again_without_their_logs(
    spark: SparkSession, once: tuple[Path, Path], tmp_path: Path
) -> None:
    warehouse = str(shutil.copytree(once[1], tmp_path / "warehouse"))
    before = read_result(spark, warehouse)
    away = once[0].rename(once[0].with_name("away"))
    again = diagnose_again(spark, warehouse, SETTLED)
    after = read_result(spark, warehouse)
    away.rename(once[0])
    assert after.run.run_id == again != before.run.run_id
    assert replace(after, run=before.run) == before


SESSION_EXPIRED = """
title: The session of the input expired
severity: major
role: trigger
match:
  any:
    - throwable: java.lang.IllegalStateException
      literal: Session expired after
      regex: 'Session expired after (?P<seconds>[0-9]+) s'
cause: The session was not renewed in time.
remediation:
  summary: Renew the session in time.
  steps: [Renew it in time.]
  risk: live
references: [https://example.org/sessions]
examples:
  match:
    - |
      2026-03-01 06:00:00,000 ERROR org.apache.flink.runtime.taskmanager.Task [] - Reading failed.
      java.lang.IllegalStateException: Session expired after 30 s
          at org.example.Input.read(Input.java:1)
  no_match:
    - "2026-03-01 06:00:00,000 INFO  org.example.Input [] - Session opened"
"""


TASK = "org.apache.flink.runtime.taskmanager.Task"


def failed_reading(second: int) -> str:
    return (
        f"2026-03-01 06:00:{second:02},000 ERROR {TASK} [] - Reading failed.\n"
        f"java.lang.IllegalStateException: Session expired after {30 + second} s\n"
        "\tat org.example.Input.read(Input.java:1)\n"
    )


def test_a_new_signature_is_found_in_stored_events_and_old_verdicts_stay(
    spark: SparkSession, tmp_path: Path, settled: Options
) -> None:
    log, warehouse = (
        tmp_path / "logs" / "orders" / "app.log",
        Warehouse(str(tmp_path / "warehouse")),
    )
    log.parent.mkdir(parents=True)
    log.write_text("".join(map(failed_reading, range(4))))
    first = run(spark, [str(log.parent)], warehouse, settled)
    own = tmp_path / "own" / "acme" / "session-expired.yaml"
    own.parent.mkdir(parents=True)
    own.write_text(SESSION_EXPIRED)
    options = replace(settled, signature_directories=(tmp_path / "own",))
    # The result equals the result of reading the logs again.
    expected = run_local([str(log.parent)], options)
    shutil.rmtree(log.parent)
    before, messages = read_result(spark, warehouse), list[str]()
    second = diagnose_again(spark, warehouse, options, messages.append, is_rematch=True)
    after = read_result(spark, warehouse)
    assert before.incidents[0].diagnoses[0].signature == "operator/user-code-exception"
    assert after.incidents[0].diagnoses[0].signature == "acme/session-expired"
    # In the first run of a warehouse, incidents have no status; here, the incident was reported
    # before.
    assert [i.status for i in after.incidents] == ["ongoing"]
    assert tuple(replace(i, status=None) for i in after.incidents) == expected.incidents
    assert after.unknown == expected.unknown
    assert any(
        "4 stored events matched again: 4 changed, 0 are not fully stored" in line
        for line in messages
    )
    causes = {one.cause: one.count for one in recurrences(spark, warehouse)}
    assert causes["acme/session-expired"] == 4
    verdicts = warehouse.published(spark, INCIDENTS).join(warehouse.read(spark, RUNS), "run_id")
    found = {
        (row["run_id"], row["root_cause_signature"], row["signature_set"])
        for row in verdicts.select("*").toArrow().to_pylist()
    }
    assert found == {
        (first, "operator/user-code-exception", before.run.signature_set),
        (second, "acme/session-expired", after.run.signature_set),
    }
    # A later run continues from this state, and the same pack finds nothing else.
    log.parent.mkdir()
    log.write_text("".join(map(failed_reading, range(5))))
    run(spark, [str(log.parent)], warehouse, options)
    assert read_result(spark, warehouse).incidents[0].diagnoses[0].occurrences == 5
    diagnose_again(spark, warehouse, options, messages.append, is_rematch=True)
    assert "5 stored events matched again: 0 changed" in "".join(messages[-3:])


def test_rotation_and_gzip_add_no_event(
    spark: SparkSession, logs: Path, tmp_path: Path, settled: Options
) -> None:
    warehouse = Warehouse(str(tmp_path / "warehouse"))
    run(spark, [str(logs)], warehouse, settled)
    before = warehouse.published(spark, EVENTS).count()
    log = jobmanager(logs)
    log.with_name(log.name + ".1.gz").write_bytes(gzip.compress(log.read_bytes()))
    log.unlink()
    run(spark, [str(logs)], warehouse, settled)
    assert warehouse.published(spark, EVENTS).count() == before
    expected = run_local([str(logs)], settled).coverage
    assert read_result(spark, warehouse).coverage == expected
    # A sum over the files counts renamed content once.
    files = {row["path"] for row in read_table(spark, warehouse, "log_files").collect()}
    assert files == {str(path) for path in logs.iterdir()}


def test_a_run_killed_before_publishing_is_invisible_and_its_repeat_doubles_nothing(
    spark: SparkSession,
    logs: Path,
    tmp_path: Path,
    settled: Options,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    warehouse = Warehouse(str(tmp_path / "warehouse"))

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(publish, "_publish", killed)
        with pytest.raises(KeyboardInterrupt):
            run(spark, [str(logs)], warehouse, settled)
    with pytest.raises(UsageError, match="no run has been published"):
        read_result(spark, warehouse)
    run(spark, [str(logs)], warehouse, settled)
    assert read_result(spark, warehouse).coverage == run_local([str(logs)], settled).coverage
    events = warehouse.read(spark, EVENTS)
    assert events.count() == events.select("path", "byte_offset").distinct().count()


def test_small_ranges_change_no_row(
    spark: SparkSession, logs: Path, tmp_path: Path, settled: Options
) -> None:
    cut = replace(settled, settings=replace(settled.settings, range_bytes=20_000))
    warehouse = Warehouse(str(tmp_path / "warehouse"))
    run(spark, [str(logs)], warehouse, cut)
    expected, found = run_local([str(logs)], settled), read_result(spark, warehouse)
    assert found.incidents == expected.incidents
    assert found.coverage == expected.coverage
    volume = warehouse.published(spark, LOG_VOLUME).agg(F.sum("byte_count")).first()[0]
    assert volume == expected.coverage.bytes
    lines = {
        (row["path"], row["byte_offset"]): row["line"]
        for row in warehouse.published(spark, EVENTS).collect()
    }
    for (path, offset), line in lines.items():
        assert Path(path).read_bytes()[:offset].count(b"\n") + 1 == line


def test_a_lost_commit_is_not_published(
    spark: SparkSession,
    logs: Path,
    tmp_path: Path,
    settled: Options,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    warehouse = Warehouse(str(tmp_path / "warehouse"))
    append = Warehouse.append

    def losing(self, rows, table, batch, part=""):  # type: ignore[no-untyped-def]
        append(self, rows.limit(0) if table is EVENTS else rows, table, batch, part)

    monkeypatch.setattr(Warehouse, "append", losing)
    with pytest.raises(Exception, match="the run was not published"):
        run(spark, [str(logs)], warehouse, settled)
    assert warehouse.read(spark, RUNS).isEmpty()


def test_run_does_not_touch_a_held_warehouse(
    spark: SparkSession, logs: Path, tmp_path: Path, settled: Options
) -> None:
    folder = tmp_path / "warehouse"
    with (
        held(folder, datetime.now(UTC)),
        pytest.raises(OutputHeldError),
    ):
        run(spark, [str(logs)], str(folder), settled)
