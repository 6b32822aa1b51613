"""Code that runs on Spark uses only APIs that Spark Connect supports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
MODULES = sorted(
    path
    for folder in ("pipeline/flink_triage/spark", "pipeline/flink_triage/cli", "jobs")
    for path in (PROJECT / folder).rglob("*.py")
)
# Names that PySpark rejects for Spark Connect (connect/session.py, dataframe.py, column.py, and
# readwriter.py), and APIs of the Spark context, which Spark Connect does not have.
CLASSIC = frozenset(
    {
        "_jc", "_jcols", "_jconf", "_jdf", "_jmap", "_jreader", "_jsc", "_jseq", "_jsparkSession",
        "_jvm", "_sc", "_gateway", "accumulator", "emptyRDD", "foreachRDD",
        "mapPartitions", "newSession", "parallelize", "rdd", "sparkContext", "textFile",
        "wholeTextFiles", "_active_spark_context", "enableHiveSupport",
    }
)  # fmt: skip
CLASSIC_NAMES = frozenset({"SparkContext", "SparkConf", "SQLContext", "Accumulator"})
# Functions that start a classic session, and run only without a remote server.
STARTS_CLASSIC = {("session.py", "_start"), ("session.py", "_submitted")}


def classic_uses(source: str) -> Iterator[tuple[str, str]]:
    """Yields (enclosing function, name) for each use of an API that Connect sessions lack."""
    tree = ast.parse(source)
    inside = {
        id(node): function.name
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Attribute) and node.attr in CLASSIC:
            names = [node.attr]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "pyspark":
            names = [alias.name for alias in node.names if alias.name in CLASSIC_NAMES]
        elif isinstance(node, ast.Import):
            names = [a.name for a in node.names if a.name.split(".")[0] == "py4j"]
        yield from ((inside.get(id(node), ""), name) for name in names)


@pytest.mark.parametrize("module", MODULES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_only_apis_of_a_connect_session_are_used(module: Path) -> None:
    found = classic_uses(module.read_text(encoding="utf-8"))
    assert [use for use in found if (module.name, use[0]) not in STARTS_CLASSIC] == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param("def f(df):\n    return df.rdd", [("f", "rdd")], id="rdd"),
        pytest.param("spark._jvm.java", [("", "_jvm")], id="the JVM"),
        pytest.param(
            "def g(spark):\n    spark.sparkContext.broadcast(1)",
            [("g", "sparkContext")],
            id="the Spark context",
        ),
        pytest.param(
            "from pyspark import SparkConf", [("", "SparkConf")], id="the Spark configuration"
        ),
        pytest.param(
            "import py4j.java_gateway", [("", "py4j.java_gateway")], id="the Py4J gateway"
        ),
        pytest.param("df.select('rdd').where('_jvm')", [], id="names inside a string"),
    ],
)
def test_each_form_of_a_classic_use_is_seen(source: str, expected: list[tuple[str, str]]) -> None:
    assert list(classic_uses(source)) == expected
