"""An outdated Spark version is rejected with a one-line error, on either side of Spark Connect."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from flink_triage.errors import EnvironmentProblem

pyspark = pytest.importorskip("pyspark")
session = pytest.importorskip("flink_triage.spark.runtime.session")


@pytest.mark.parametrize("version", ["4.1.0", "4.2.0-SNAPSHOT", "5.0.0", "client.5.1"])
def test_a_spark_that_is_new_enough_is_used(version: str) -> None:
    server = SimpleNamespace(version=version)
    assert session.get_session(spark=server) is server


@pytest.mark.parametrize("version", ["3.5.6", "4.0.1", "4.0.0+databricks.connect.17.2"])
def test_an_old_server_is_refused(version: str) -> None:
    with pytest.raises(EnvironmentProblem) as refused:
        session.get_session(spark=SimpleNamespace(version=version))
    assert str(refused.value) == f"Spark {version} is too old: 4.1 or newer is required"


def test_an_old_client_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark, "__version__", "4.0.1")
    with pytest.raises(EnvironmentProblem, match=r"Spark 4\.0\.1 is too old"):
        session.get_session(spark=SimpleNamespace(version="4.2.0"))
