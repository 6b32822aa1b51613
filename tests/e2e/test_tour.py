"""Commands of docs/tour.md that start Spark print the documented output.

The queries in docs/tables.md and the Spark example in docs/api.md run.
"""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import flink_triage as ft
from flink_triage.cli.main import main
from flink_triage.spark.runtime.session import get_session
from flink_triage.spark.tables.schemas import TABLES
from flink_triage.spark.tables.table_names import STORED
from tests.e2e.test_docs import api_code, blocks, is_shown_in, link_inputs, shown_commands


@pytest.fixture(scope="module")
def toured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory in which all tour commands that require Java have been run, in order."""
    folder = tmp_path_factory.mktemp("tour")
    link_inputs(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        get_session(master="local[2]")
        for shown in shown_commands("docs/tour.md"):
            if shown.needs_java:
                run_as_shown(shown.words, shown.output, shown.exit_code)
    return folder


def run_as_shown(words: list[str], output: str, exit_code: int) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = main(words)
    assert (code, is_shown_in(output, printed.getvalue())) == (exit_code, True), printed.getvalue()


@pytest.fixture
def spark(toured: Path) -> SparkSession:
    """A session with a view for each table that the tour wrote."""
    session = get_session()
    assert set(ft.create_views(session, str(toured / "warehouse"))) == set(TABLES)
    return session


def test_the_tour_leaves_what_it_promises(toured: Path) -> None:
    tables = {path.name for path in (toured / "warehouse").glob("_*/*")}
    assert tables == set(STORED)
    assert "<html" in (toured / "report.html").read_text(encoding="utf-8")
    assert "flip-1.16.0" in (toured / "incidents.md").read_text(encoding="utf-8")


def test_the_python_with_spark_of_the_interface_page_runs(
    toured: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(toured)
    exec(compile(api_code()[1], "docs/api.md", "exec"), {"ft": ft})
    assert "|rocksdb/bad-table-magic" in capsys.readouterr().out


@pytest.mark.parametrize("query", blocks("docs/tables.md", "sql"))
def test_a_query_of_the_page_of_tables_finds_rows(spark: SparkSession, query: str) -> None:
    assert spark.sql(query).count() > 0


@pytest.mark.parametrize(
    "deployment",
    [
        "flip-1.16.0",
        "flip-2.1.1",
        "flip-1.20.1-json-ecs",
    ],
)
def test_a_diagnosis_leads_down_to_the_line_that_the_log_holds(
    spark: SparkSession, deployment: str
) -> None:
    query = blocks("docs/tables.md", "sql")[0]
    rows = [row for row in spark.sql(query).collect() if row["deployment"] == deployment]
    assert rows
    for row in rows:
        lines = Path(row["path"]).read_text(encoding="utf-8").split("\n")
        assert "Bad table magic number" in row["excerpt"]
        assert "Bad table magic number" in lines[row["line"] - 1]
