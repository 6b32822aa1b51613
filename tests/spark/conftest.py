"""One Spark session with Delta for all tests of the folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from flink_triage.local import Options
from flink_triage.settings import Settings
from flink_triage.spark.runtime.session import get_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = get_session(master="local[2]")
    yield session
    session.stop()


@pytest.fixture
def settled() -> Options:
    """Options with which no last event is held back, even in files that were just written."""
    return Options(settings=Settings(settle_seconds=-1e9))


@pytest.fixture
def recorded_logs() -> Path:
    return Path(__file__).parents[1] / "logs"


@pytest.fixture
def data_files() -> Callable[[Path], set[str]]:
    """A function that returns the files of a warehouse that contain rows or commits."""

    def listed(warehouse: Path) -> set[str]:
        return {
            str(path.relative_to(warehouse))
            for path in warehouse.rglob("*")
            if path.suffix in (".parquet", ".json")
        }

    return listed
