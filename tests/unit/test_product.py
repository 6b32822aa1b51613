"""Whose log a line is of: libraries that Flink has too fail elsewhere with the same words."""

from __future__ import annotations

import pytest

from flink_triage.product import product_of
from flink_triage.traces import extract

AVRO = (
    "java.lang.ArrayIndexOutOfBoundsException: 12\n"
    "\tat org.apache.avro.io.parsing.Symbol$Alternative.getSymbol(Symbol.java:460)\n"
    "\tat org.apache.avro.io.ResolvingDecoder.readIndex(ResolvingDecoder.java:283)\n"
)


@pytest.mark.parametrize(
    ("logger", "message", "expected"),
    [
        ("org.apache.flink.runtime.taskmanager.Task", "Source (1/1) failed", "flink"),
        ("o.a.f.r.taskmanager.Task", "Source (1/1) failed", "flink"),
        ("org.apache.avro.Decoder", "of the TaskManager", "flink"),
        (None, "Source -> Sink (1/2) (ad54) switched from RUNNING to FAILED.", "flink"),
        ("org.apache.seatunnel.engine.server.dag.PhysicalVertex", "end with FAILED", "other"),
        ("o.a.s.e.s.d.p.PhysicalVertex", "end with state FAILED and Exception:", "other"),
        ("org.apache.spark.executor.Executor", "Exception in task 0.0", "other"),
        ("o.a.s.e.s.d.p.PhysicalVertex", "of Flink's engine", "flink"),
        ("org.apache.hadoop.hdfs.DFSClient", "Exception in createBlockOutputStream", None),
        (None, "end with state FAILED", None),
    ],
)
def test_a_sign_of_flink_outweighs_all_others(logger, message, expected):
    _, trace = extract(message, AVRO)
    assert product_of(logger, message, trace) == expected
