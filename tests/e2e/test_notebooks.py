"""Each notebook runs from a clean kernel, with and without Spark, and is stored without outputs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

PROJECT = Path(__file__).parents[2]
NOTEBOOKS = sorted((PROJECT / "notebooks").glob("*.ipynb"))
DIAGNOSIS = PROJECT / "notebooks" / "01_from_a_log_to_a_diagnosis.ipynb"
# A reader waits no longer for a notebook, on two cores and with Spark.
CELL_SECONDS = 90

START_SPARK = """
from flink_triage.spark.session import get_session

spark = get_session(master="local[2]")
"""
STOP_SPARK = "spark.stop()"


@pytest.fixture(autouse=True)
def _package_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels find the package of this folder, installed or not."""
    known = os.environ.get("PYTHONPATH")
    package = str(PROJECT / "pipeline")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([package, *([known] if known else [])]))


def executed(notebook: Path, *, before: str = "", after: str = "") -> dict[str, str]:
    """What each code cell printed and displayed, by cell id; raises for a cell that fails."""
    content = nbformat.read(notebook, as_version=4)
    extra = {"before": before, "after": after}
    first, last = (nbformat.v4.new_code_cell(code, id=name) for name, code in extra.items())
    content.cells = [first, *content.cells, last]
    client = NotebookClient(
        content,
        timeout=CELL_SECONDS,
        kernel_name="python3",
        resources={"metadata": {"path": str(notebook.parent)}},
    )
    client.execute()
    return {cell.id: "".join(shown(cell)) for cell in content.cells if cell.cell_type == "code"}


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
    assert "execution.checkpointing.num-retained: 3" in cells["patch"]
    assert "<iframe srcdoc=" in cells["report"]
    assert "A disk or storage volume is full" in cells["report"]
    assert cells["spark"].startswith("no session named spark")


def test_the_notebook_finds_the_same_on_a_given_spark() -> None:
    cells = executed(DIAGNOSIS, before=START_SPARK, after=STOP_SPARK)
    assert "the same incidents: True" in cells["spark"]
    assert "rocksdb/bad-table-magic" in cells["spark"]
