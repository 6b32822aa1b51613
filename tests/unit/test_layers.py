"""Imports point one way, and only the outer layers know Spark."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
PACKAGE = PROJECT / "pipeline" / "flink_triage"

# From what knows nobody to what knows all. A part imports itself and earlier rows, never its own
# row or a later one.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("disk_cache", "fields", "grains", "pickles", "plain_yaml", "spread"),
    ("comparison", "errors", "model", "settings", "user_regex", "yaml_documents"),
    ("logs",),
    ("traces",),
    ("product", "signatures"),
    ("recurrence", "remediation"),
    ("diagnosis", "rematch", "stages"),
    ("local",),
    ("alerts", "api", "report", "spark"),
    ("cli",),
    ("__main__",),
)
LEVEL = {part: level for level, row in enumerate(LAYERS) for part in row}
SPARK_LAYERS: tuple[tuple[str, ...], ...] = (
    ("failpoints",),
    ("runtime",),
    ("tables",),
    ("ingest",),
    ("diagnose", "query"),
    ("finish", "maintain", "source"),
    ("pipeline",),
    ("starting",),
)
SPARK_LEVEL = {part: level for level, row in enumerate(SPARK_LAYERS) for part in row}
SPARK = "flink_triage.spark."
SPARK_PACKAGES = frozenset({"pyspark", "delta", "py4j"})
MAY_IMPORT_SPARK = frozenset({"spark", "cli"})

# The front of the package names its public parts, and is looked at on its own.
FRONT = PACKAGE / "__init__.py"
MODULES = sorted(set(PACKAGE.rglob("*.py")) - {FRONT})


def part_of(module: Path) -> str:
    """``logs`` for ``flink_triage/logs/scan.py``, ``model`` for ``flink_triage/model.py``."""
    return module.relative_to(PACKAGE).with_suffix("").parts[0]


def imported_names(source: str, package: tuple[str, ...] = ()) -> Iterator[str]:
    """Full dotted names that a module of ``package`` imports, wherever in the file it does so."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            named = (*base, node.module) if node.module else base
            yield from (".".join((*named, alias.name)) for alias in node.names)


def imports_of(module: Path) -> set[str]:
    package = ("flink_triage", *module.relative_to(PACKAGE).parent.parts)
    return set(imported_names(module.read_text(encoding="utf-8"), package))


def parts_imported(names: set[str]) -> set[str]:
    """Parts of ours among ``names``; the version and the package itself belong to no part."""
    ours = (name.split(".") for name in names if name.startswith("flink_triage."))
    return {words[1] for words in ours} & LEVEL.keys()


def wrong_imports(part: str, imported: set[str]) -> set[str]:
    return {other for other in imported if other != part and LEVEL[other] >= LEVEL[part]}


def name_of(module: Path) -> str:
    return str(module.relative_to(PACKAGE))


def test_every_part_of_the_package_has_a_layer() -> None:
    assert {part_of(module) for module in MODULES} <= LEVEL.keys()


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_a_module_imports_only_what_lies_below_it(module: Path) -> None:
    assert wrong_imports(part_of(module), parts_imported(imports_of(module))) == set()


@pytest.mark.parametrize("module", sorted((PACKAGE / "spark").rglob("*.py")), ids=name_of)
def test_a_module_of_spark_imports_only_what_lies_below_its_folder(module: Path) -> None:
    part = module.relative_to(PACKAGE / "spark").with_suffix("").parts[0]
    names = {name.split(".")[2] for name in imports_of(module) if name.startswith(SPARK)}
    above = {
        other
        for other in names & SPARK_LEVEL.keys()
        if other != part and SPARK_LEVEL[other] >= SPARK_LEVEL[part]
    }
    assert part == "__init__" or above == set()


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_only_spark_and_the_command_import_spark(module: Path) -> None:
    roots = {name.split(".")[0] for name in imports_of(module)}
    if part_of(module) not in MAY_IMPORT_SPARK:
        assert roots & SPARK_PACKAGES == set()


def test_the_front_of_the_package_starts_nothing() -> None:
    """What a Spark worker imports first loads neither the command line nor Spark."""
    tree = ast.parse(FRONT.read_text(encoding="utf-8"))
    at_import = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert {node.module for node in at_import if isinstance(node, ast.ImportFrom)} == {
        "__future__",
        "typing",
    }
    assert not [node for node in at_import if isinstance(node, ast.Import)]


def test_unit_tests_need_no_spark() -> None:
    found = {
        str(test.relative_to(PROJECT)): roots & SPARK_PACKAGES
        for folder in ("tests/unit", "tests/signatures")
        for test in (PROJECT / folder).rglob("*.py")
        if (roots := {n.split(".")[0] for n in imported_names(test.read_text(encoding="utf-8"))})
        & SPARK_PACKAGES
    }
    assert found == {}


@pytest.mark.parametrize(
    ("source", "package", "expected"),
    [
        pytest.param("from .. import model", ("flink_triage", "logs"), "model", id="two dots"),
        pytest.param("from ..model import Event", ("flink_triage", "logs"), "model", id="name"),
        pytest.param("from .scan import x", ("flink_triage", "logs"), "logs", id="one dot"),
        pytest.param("import flink_triage.report", ("flink_triage",), "report", id="absolute"),
        pytest.param(
            "def f():\n    from flink_triage.cli.main import main",
            ("flink_triage", "logs"),
            "cli",
            id="inside a function",
        ),
    ],
)
def test_every_form_of_an_import_is_seen(
    source: str, package: tuple[str, ...], expected: str
) -> None:
    assert parts_imported(set(imported_names(source, package))) == {expected}


def test_an_import_upwards_is_told() -> None:
    assert wrong_imports("logs", {"logs", "model", "report"}) == {"report"}
    assert wrong_imports("report", {"spark", "diagnosis"}) == {"spark"}


WITHOUT_SPARK = """
import sys
for name in ("pyspark", "delta", "py4j", "pyarrow", "pandas"):
    sys.modules[name] = None
from flink_triage.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_the_core_runs_where_spark_is_not_installed(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    words = ["demo", "--engine", "local", "--quiet", "--format", "html", "--output", str(page)]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_SPARK, *words],
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
