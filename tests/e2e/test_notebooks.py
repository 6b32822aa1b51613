"""Each notebook runs (the first one with and without Spark), and is stored without outputs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

PROJECT = Path(__file__).parents[2]
NOTEBOOKS = sorted((PROJECT / "notebooks").glob("*.ipynb"))
DIAGNOSIS = PROJECT / "notebooks" / "01_from_a_log_to_a_diagnosis.ipynb"
# A cell may take this long on a busy machine.
CELL_SECONDS = 600

START_SPARK = """
from flink_triage.spark.runtime.session import get_session

spark = get_session(master="local[2]")
"""
# Deletes the names that a notebook defined. A Spark session and its JVM keep running.
FORGET = "%reset -f"


@pytest.fixture(autouse=True)
def _package_path(monkeypatch: pytest.MonkeyPatch) -> None:
    put_package_on_path(monkeypatch)


def put_package_on_path(patch: pytest.MonkeyPatch) -> None:
    """Puts the package of this checkout on the path of the kernels, even if it is not installed."""
    known = os.environ.get("PYTHONPATH")
    package = str(PROJECT / "pipeline")
    patch.setenv("PYTHONPATH", os.pathsep.join([package, *([known] if known else [])]))


class Kernel:
    """A kernel that executes notebooks one after the other."""

    def __init__(self) -> None:
        self._client = NotebookClient(
            nbformat.v4.new_notebook(),
            timeout=CELL_SECONDS,
            kernel_name="python3",
            resources={"metadata": {"path": str(NOTEBOOKS[0].parent)}},
        )

    def __enter__(self) -> Kernel:
        return self

    def __exit__(self, *_: object) -> None:
        self._client._cleanup_kernel()

    def execute(self, notebook: Path, before: str = FORGET) -> dict[str, str]:
        """Returns each code cell's output by cell ID, and its media types under ``<id> kinds``.

        Raises an exception if a cell fails.
        """
        content = nbformat.read(notebook, as_version=4)
        content.cells = [nbformat.v4.new_code_cell(before, id="before"), *content.cells]
        self._client.nb = content
        self._client.execute(cleanup_kc=False)
        code = [cell for cell in content.cells if cell.cell_type == "code"]
        kinds = {f"{cell.id} kinds": " ".join(kinds_of(cell)) for cell in code}
        return {cell.id: "".join(shown(cell)) for cell in code} | kinds


def executed(notebook: Path) -> dict[str, str]:
    """Executes a notebook in a new kernel."""
    with Kernel() as kernel:
        return kernel.execute(notebook)


def kinds_of(cell: NotebookNode) -> Iterator[str]:
    """Yields the media types of the outputs that a cell displayed."""
    for output in cell.outputs:
        yield from output.get("data", {})


def shown(cell: NotebookNode) -> Iterator[str]:
    for output in cell.outputs:
        if output.output_type == "stream":
            yield output.text
        else:
            yield from output.get("data", {}).values()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_outputs(notebook: Path) -> None:
    cells = nbformat.read(notebook, as_version=4).cells
    code = [cell for cell in cells if cell.cell_type == "code"]
    assert [(cell.outputs, cell.execution_count) for cell in code] == [([], None)] * len(code)


def test_the_notebook_goes_from_a_log_to_a_diagnosis_without_spark() -> None:
    cells = executed(DIAGNOSIS)
    for deployment in ("disk-full", "flip", "broker-frozen"):
        assert f"{deployment}" in cells["incidents"]
    assert "healthy" in cells["incidents"]
    assert cells["ranked"].startswith("1  ")
    assert "disk/full" in cells["ranked"].split("\n")[0]
    assert "No space left on device" in cells["evidence"]
    assert "config.yaml for Flink 2.1.1" in cells["patch"]
    assert "execution.state-recovery.path" in cells["patch"]
    assert "<iframe srcdoc=" in cells["report"]
    assert "Disk, volume or quota is full" in cells["report"]
    assert cells["spark"].startswith("no session named spark")


@pytest.fixture(scope="module")
def on_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """A kernel whose notebooks share a session and a warehouse, so they read only new files."""
    with pytest.MonkeyPatch.context() as patch:
        put_package_on_path(patch)
        patch.setenv("FLINK_TRIAGE_WAREHOUSE", str(tmp_path_factory.mktemp("warehouse")))
        with Kernel() as kernel:
            yield kernel


def test_the_notebook_finds_the_same_on_a_given_spark(on_spark: Kernel) -> None:
    cells = on_spark.execute(DIAGNOSIS, before=START_SPARK)
    assert "the same incidents: True" in cells["spark"]
    assert "rocksdb/bad-table-magic" in cells["spark"]


def test_events_and_traces_of_an_incident_are_explored_in_the_tables(on_spark: Kernel) -> None:
    cells = on_spark.execute(book("02"))
    assert "4 deployments · 3 diagnosed (2 critical) · 1 healthy" in cells["setup"]
    assert "Disk, volume or quota is full" in cells["incident"]
    assert "Free or enlarge the full volume." in cells["incident"]
    assert "image/png" in drawn(cells, "volume")
    assert "image/png" in drawn(cells, "timeline")
    assert "CheckpointFailureManager" in cells["loggers"]
    assert "java.io.IOException" in cells["traces"]
    assert "no unknown failures" in cells["unknown"]
    assert "No space left on device" in cells["trace"]


def test_a_signature_is_drafted_checked_and_used() -> None:
    cells = executed(book("03"))
    assert "Exception in user code" in cells["log"]
    assert 'throwable: "com.acme.session.SessionExpiredException"' in cells["draft"]
    assert "lint: 0" in cells["check"]
    assert "test: 0" in cells["check"]
    assert "test: 2" in cells["mistake"]
    assert "acme/session-expired.yaml" in cells["mistake"]
    assert cells["use"].startswith("1 acme/session-expired")
    assert "'seconds': '1800'" in cells["use"]
    assert "Session of the enrichment service expired" in cells["use"]


def test_before_and_after_are_put_side_by_side() -> None:
    cells = executed(book("04"))
    assert "before  diagnosed" in cells["verdicts"]
    assert "after   healthy" in cells["verdicts"]
    assert "gone: checkpoint/async-phase-failed" in cells["diagnoses"]
    assert "new: nothing" in cells["diagnoses"]
    assert "only after:  0" in cells["fingerprints"]
    assert "execution.checkpointing.tolerable-failed-checkpoints" in cells["config"]
    assert "image/png" in drawn(cells, "plot")
    assert cells["note"].startswith("# Flink triage: 1 deployment")


def test_the_fleet_of_a_month_shows_what_returns_and_how_long_it_ran_between(
    on_spark: Kernel,
) -> None:
    cells = on_spark.execute(book("05"))
    assert "of 6 deployments" in cells["run"]
    assert "image/png" in drawn(cells, "trend")
    assert re.search(r"fleet-checkout\s+disk/full\s+6", cells["causes"])
    # Six failures on days 2, 11, 18, 23, 26, and 28: 26 days divided into five intervals.
    assert re.search(r"fleet-checkout\s+5\.2\s+2\.0\s+5", cells["mtbf"])
    assert "org.rocksdb.RocksDBException" in cells["new"]
    assert "characters" in cells["page"]


def book(number: str) -> Path:
    (notebook,) = (path for path in NOTEBOOKS if path.name.startswith(number))
    return notebook


def drawn(cells: dict[str, str], cell: str) -> str:
    return cells[f"{cell} kinds"]
