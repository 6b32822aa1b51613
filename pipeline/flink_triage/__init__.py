"""flink-triage: ranked root causes of Apache Flink failures, from the logs alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = ["Diagnosis", "Incident", "Options", "Result", "__version__", "diagnose"]

if TYPE_CHECKING:
    from .api import diagnose
    from .local import Options
    from .model import Diagnosis, Incident, Result

_HOME = {
    "Diagnosis": "model",
    "Incident": "model",
    "Options": "local",
    "Result": "model",
    "diagnose": "api",
}


def __getattr__(name: str) -> Any:
    """Load on first use: a Spark worker needs the stages, not the command line or the report."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
