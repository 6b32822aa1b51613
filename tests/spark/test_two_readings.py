"""Tests that two runs over growing logs, in three forms, have the result of one local run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from flink_triage.local import Options, run_local
from flink_triage.report import to_json
from flink_triage.settings import Settings
from flink_triage.spark.pipeline import run
from flink_triage.spark.query.read_result import read_result

DEPLOYMENT = "checkpoint/tolerable-threshold-exceeded/disk-full-1.16.0"
WRITTEN_TO = Options(settings=Settings(settle_seconds=1e9))
SETTLED = Options(settings=Settings(settle_seconds=-1e9))


def each_line(prefix: bytes) -> Callable[[bytes], bytes]:
    return lambda data: b"".join(prefix + line + b"\n" for line in data.split(b"\n")[:-1])


FORMS: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda data: data,
    "cri": each_line(b"2026-11-21T06:47:23.468Z stdout F "),
    "prefixed": each_line(b"[pod/orders-tm-1-1/flink-main] "),
}


def test_logs_cut_anywhere_and_read_in_two_runs_match_one_run(
    spark: SparkSession, recorded_logs: Path, tmp_path: Path
) -> None:
    inputs, warehouse = tmp_path / "in", str(tmp_path / "warehouse")
    written: dict[Path, bytes] = {}
    for form, carry in FORMS.items():
        (inputs / form).mkdir(parents=True)
        for log in sorted((recorded_logs / DEPLOYMENT / "logs").glob("*.log")):
            written[inputs / form / log.name] = carry(log.read_bytes())
    for number, (path, data) in enumerate(written.items()):
        # Cut inside a line, which is usually inside a stack trace at the end of these logs.
        path.write_bytes(data[: len(data) * 2 // 3 + 7 * number])
    run(spark, [str(inputs)], warehouse, WRITTEN_TO)
    for path, data in written.items():
        path.write_bytes(data)
    run(spark, [str(inputs)], warehouse, SETTLED)
    found, expected = (
        to_json(read_result(spark, warehouse)),
        to_json(run_local([str(inputs)], SETTLED)),
    )
    for incident in found["incidents"]:
        assert incident.pop("status") in ("ongoing", "worse", "resolved", "new", None)
    for incident in expected["incidents"]:
        assert incident.pop("status") is None
    for part in ("coverage", "effective_config", "unknown", "incidents"):
        assert found[part] == expected[part], part
