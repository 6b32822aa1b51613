"""Checks the requirements of a Spark run on this machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from flink_triage.errors import EnvironmentProblem
from flink_triage.settings import MIB
from flink_triage.spark.runtime.jars import (
    cached_jars,
    delta_jars,
    free_bytes,
    installed_version,
    jar_directory,
)
from flink_triage.spark.runtime.java import find_java

State = Literal["ok", "warning", "problem"]
# Enough for Spark's scratch files, the JARs, and the warehouse of a small fleet.
WANTED_FREE_BYTES = 1024 * MIB


@dataclass(frozen=True, slots=True)
class Check:
    """One line of `doctor`; ``detail`` describes what was found, or what to do."""

    name: str
    state: State
    detail: str

    @property
    def is_ok(self) -> bool:
        """Whether a run can be started; a warning does not stop one."""
        return self.state != "problem"


def check_environment(warehouse: Path | None = None) -> list[Check]:
    """Check the requirements of a run; Spark is not started."""
    return [
        _checked("Java", _java),
        _checked("Spark and Delta", _spark_and_delta),
        _checked("Delta JARs", _jars),
        _checked("Arrow", _arrow),
        _checked("disk", lambda: _disk(warehouse or Path.cwd())),
    ]


def _checked(name: str, look: Callable[[], tuple[State, str]]) -> Check:
    try:
        state, detail = look()
    except EnvironmentProblem as problem:
        return Check(name, "problem", str(problem))
    return Check(name, state, detail)


def _java() -> tuple[State, str]:
    java = find_java()
    return "ok", f"Java {java.major} at {java.path}"


def _spark_and_delta() -> tuple[State, str]:
    delta_jars()
    # The module ``session`` imports pyspark; ``delta_jars`` raises an error if it is missing.
    from flink_triage.spark.runtime.session import is_too_old, too_old

    spark, delta = installed_version("pyspark") or "", installed_version("delta-spark")
    if is_too_old(spark):
        return "problem", too_old(spark)
    return "ok", f"pyspark {spark} with delta-spark {delta}"


def _jars() -> tuple[State, str]:
    names = ", ".join(jar.file_name for jar in delta_jars())
    if cached_jars() is not None:
        return "ok", f"{names} in {jar_directory()}"
    home = jar_directory()
    if not _is_writable(home):
        return "problem", f"{home} is not writable; it must contain {names}"
    return "warning", f"{names} are not in {home}; the first run fetches them (10 MB)"


def _arrow() -> tuple[State, str]:
    pyarrow, pandas = installed_version("pyarrow"), installed_version("pandas")
    if pyarrow is None or pandas is None:
        return "problem", "pyarrow and pandas are required; pip install 'flink-triage[spark]'"
    return "ok", f"pyarrow {pyarrow} with pandas {pandas}"


def _disk(path: Path) -> tuple[State, str]:
    free = free_bytes(path)
    detail = f"{free // MIB:,} MiB free at {path}"
    if not _is_writable(path):
        return "problem", f"{path} is not writable"
    if free < WANTED_FREE_BYTES:
        return "warning", f"{detail}; {WANTED_FREE_BYTES // MIB:,} MiB are recommended"
    return "ok", detail


def _is_writable(path: Path) -> bool:
    at = path
    while not at.exists() and at != at.parent:
        at = at.parent
    return os.access(at, os.W_OK)
