"""flink-triage finds and ranks the root causes of Apache Flink failures, based only on logs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

__all__ = [
    "Diagnosis",
    "Incident",
    "Options",
    "Result",
    "__version__",
    "create_views",
    "diagnose",
    "from_json",
    "read_result",
    "read_table",
    "render",
    "run",
    "to_json",
]

if TYPE_CHECKING:
    from flink_triage.api import diagnose
    from flink_triage.local import Options
    from flink_triage.model import Diagnosis, Incident, Result
    from flink_triage.report import from_json, render, to_json
    from flink_triage.spark.pipeline import run
    from flink_triage.spark.query.read_result import create_views, read_result, read_table

_HOME = {
    "Diagnosis": "model",
    "Incident": "model",
    "Options": "local",
    "Result": "model",
    "diagnose": "api",
    "from_json": "report",
    "read_result": "spark.query.read_result",
    "read_table": "spark.query.read_result",
    "create_views": "spark.query.read_result",
    "render": "report",
    "run": "spark.pipeline",
    "to_json": "report",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that a Spark worker does not import the reports."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    # These names are also used in notebooks, which display results as HTML or Markdown.
    importlib.import_module(".report.formats.notebook", __name__).show_richly()
    return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
