"""The core runs without Spark. The import layers are a contract in ``pyproject.toml``."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[2]
PACKAGE = PROJECT / "pipeline" / "flink_triage"

SPARK_PACKAGES = frozenset({"pyspark", "delta", "py4j"})

# The package's ``__init__.py`` lists the public API, and is checked separately.
FRONT = PACKAGE / "__init__.py"


def roots_of(source: str) -> set[str]:
    """Returns the top-level packages that a module imports anywhere in the file."""
    roots = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            roots |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            roots.add(node.module.split(".")[0])
    return roots


def test_the_front_of_the_package_starts_nothing() -> None:
    """The first import of a Spark worker loads neither the command line nor Spark."""
    tree = ast.parse(FRONT.read_text(encoding="utf-8"))
    at_import = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert {node.module for node in at_import if isinstance(node, ast.ImportFrom)} == {
        "__future__",
        "typing",
    }
    assert not [node for node in at_import if isinstance(node, ast.Import)]


def test_tests_outside_of_spark_need_no_spark() -> None:
    found = {
        str(test.relative_to(PROJECT)): roots
        for folder in ("tests/unit", "tests/integration", "tests/signatures")
        for test in (PROJECT / folder).rglob("*.py")
        if (roots := roots_of(test.read_text(encoding="utf-8")) & SPARK_PACKAGES)
    }
    assert found == {}


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
