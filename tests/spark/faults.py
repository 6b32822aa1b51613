"""Injects faults into the diagnosis of deployments in Spark workers.

The environment variable ``DIAGNOSIS_FAULTS`` contains the path of a file with lines ``deployment
fault``, which can be rewritten between runs.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from flink_triage.spark import failpoints

VARIABLE = "DIAGNOSIS_FAULTS"
PROJECT = Path(__file__).parents[2]


class Faults:
    def __init__(self, order: Path) -> None:
        self._order = order
        self.set({})

    def set(self, faults: Mapping[str, str]) -> None:
        self._order.write_text("".join(f"{name} {fault}\n" for name, fault in faults.items()))


@contextlib.contextmanager
def faults_in_workers(spark: SparkSession, order: Path) -> Iterator[Faults]:
    """Workers that start within the block inject the faults."""
    environment = spark.sparkContext.environment
    before = dict(environment)
    paths = (PROJECT / "tests" / "spark" / "site", PROJECT / "pipeline", PROJECT)
    environment["PYTHONPATH"] = os.pathsep.join(map(str, paths))
    environment[VARIABLE] = str(order)
    try:
        yield Faults(order)
    finally:
        environment.clear()
        environment.update(before)


def install() -> None:
    if VARIABLE in os.environ:
        failpoints.hook = _obey


def _obey(point: str, subject: str) -> None:
    if point != "diagnose.deployment":
        return
    orders = Path(os.environ[VARIABLE]).read_text().splitlines()
    fault = dict(line.split(" ") for line in orders).get(subject)
    if fault == "raise":
        raise RecursionError("ordered")
    while fault == "burn":
        pass
    held = []
    while fault == "grow":
        held.append(bytes(range(256)) * 65_536)
