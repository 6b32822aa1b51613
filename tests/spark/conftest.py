"""One Spark session with Delta for all tests of the folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from flink_triage.local import Options
from flink_triage.settings import Settings
from flink_triage.spark.session import get_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = get_session(master="local[2]")
    yield session
    session.stop()


@pytest.fixture
def settled() -> Options:
    """No last event is held back, however fresh the test's files are."""
    return Options(settings=Settings(settle_seconds=-1e9))


@pytest.fixture
def shared_logs() -> Path:
    default = Path(__file__).parents[2] / ".." / "shared"
    logs = Path(os.environ.get("FLINK_TRIAGE_SHARED", default)).resolve() / "logs"
    if not logs.is_dir():
        pytest.skip(f"{logs}: the recorded logs are not there; FLINK_TRIAGE_SHARED names them")
    return logs


@pytest.fixture
def data_files() -> Callable[[Path], set[str]]:
    """The files of a warehouse that hold rows or commits."""

    def listed(warehouse: Path) -> set[str]:
        return {
            str(path.relative_to(warehouse))
            for path in warehouse.rglob("*")
            if path.suffix in (".parquet", ".json")
        }

    return listed
