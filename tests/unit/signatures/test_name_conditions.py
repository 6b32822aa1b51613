"""Class, logger, and frame conditions match relocated, abbreviated, and other forms of a name."""

from __future__ import annotations

import pytest

from flink_triage.model import Frame
from flink_triage.signatures.conditions import (
    failing_origin,
    frame_names,
    frames_found,
    is_logger,
    is_type,
    simple_name,
)
from flink_triage.traces import extract

COORDINATOR = "org.apache.flink.runtime.checkpoint.CheckpointCoordinator"
PACKAGE = "org.apache.flink.runtime.checkpoint"

LOGGERS = [
    pytest.param(COORDINATOR, COORDINATOR, True, id="full name"),
    pytest.param(COORDINATOR, PACKAGE, True, id="package of the class"),
    pytest.param(
        COORDINATOR, "org.apache.flink.run", False, id="a partial package segment does not match"
    ),
    pytest.param(
        "o.a.f.r.c.CheckpointCoordinator",
        COORDINATOR,
        True,
        id="all packages abbreviated to one letter",
    ),
    pytest.param(
        "o.a.f.r.checkpoint.CheckpointCoordinator",
        COORDINATOR,
        True,
        id="some packages abbreviated",
    ),
    pytest.param(
        "o.a.f.r.c.CheckpointCoordinator", PACKAGE, True, id="abbreviated name, package condition"
    ),
    pytest.param("checkpoint.CheckpointCoordinator", COORDINATOR, True, id="last two segments"),
    pytest.param("CheckpointCoordinator", COORDINATOR, True, id="class name only"),
    pytest.param(
        "checkpoint.CheckpointCoordinator", PACKAGE, True, id="last two segments, package condition"
    ),
    pytest.param(
        "CheckpointCoordinator", PACKAGE, True, id="a bare class name may be in any package"
    ),
    pytest.param("checkpoint.CheckpointCoordinator", "com.shop", False, id="another package"),
    pytest.param("CheckpointFailureManager", COORDINATOR, False, id="another class"),
    pytest.param(
        "o.a.f.r.c.CheckpointFailureManager", COORDINATOR, False, id="another class, abbreviated"
    ),
    pytest.param("o.a.k.c.NetworkClient", COORDINATOR, False, id="another project, abbreviated"),
    pytest.param(f"{COORDINATOR}$Inner", COORDINATOR, True, id="an inner class"),
    pytest.param(
        f"{COORDINATOR}Deactivator", COORDINATOR, False, id="a class with the same prefix"
    ),
    pytest.param("akka.remote.Gate", "org.apache.pekko.remote.Gate", True, id="akka matches pekko"),
]


@pytest.mark.parametrize(("name", "wanted", "expected"), LOGGERS)
def test_loggers(name: str, wanted: str, expected: bool) -> None:
    assert is_logger(name, wanted) is expected


ROCKSDB = "org.rocksdb.RocksDBException"
TYPES = [
    pytest.param(ROCKSDB, ROCKSDB, True, id="full name"),
    pytest.param(f"x.y.shaded.{ROCKSDB}", ROCKSDB, True, id="relocated"),
    pytest.param(
        "pyflink.util.exceptions.TableException",
        "org.apache.flink.table.api.TableException",
        True,
        id="raised by PyFlink",
    ),
    pytest.param("RocksDBException", ROCKSDB, True, id="printed without a package"),
    pytest.param(ROCKSDB, "RocksDBException", True, id="condition without a package"),
    pytest.param(
        "com.acme.RocksDBException", ROCKSDB, False, id="same class name in another package"
    ),
    pytest.param("MyRocksDBException", ROCKSDB, False, id="a name with the same suffix"),
    pytest.param("a.MyRocksDBException", "RocksDBException", False, id="a longer simple name"),
    pytest.param("CancelledException", "a.Outer$CancelledException", True, id="a nested class"),
    pytest.param(
        "org.apache.pekko.pattern.AskTimeoutException",
        "akka.pattern.AskTimeoutException",
        True,
        id="pekko matches akka",
    ),
]


@pytest.mark.parametrize(("name", "wanted", "expected"), TYPES)
def test_types(name: str, wanted: str, expected: bool) -> None:
    assert is_type(name, wanted) is expected


@pytest.mark.parametrize(("name", "wanted", "expected"), TYPES)
def test_names_of_one_class_end_alike(name: str, wanted: str, expected: bool) -> None:
    assert simple_name(name) == simple_name(wanted) or not expected


FRAMES = [
    pytest.param("org.rocksdb.RocksDB.open", True, id="the method"),
    pytest.param("org.rocksdb.RocksDB", True, id="any method of the class"),
    pytest.param("org.rocksdb", True, id="any class of the package"),
    pytest.param("rocksdb.RocksDB.open", True, id="without the first segment"),
    pytest.param("ocksdb.RocksDB.open", False, id="partial segment"),
    pytest.param("org.rocksdb.RocksDB.close", False, id="another method"),
]


@pytest.mark.parametrize(("wanted", "expected"), FRAMES)
def test_frames(wanted: str, expected: bool) -> None:
    names = frame_names(((Frame("a.B", "c"),), (Frame("org.rocksdb.RocksDB", "open"),)))
    assert frames_found(names, ("other", wanted)) == ((wanted,) if expected else ())


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        (("com.acme.Orders.map", "org.apache.flink.StreamMap.processElement"), "user"),
        # A class in the default package.
        (("Orders.map", "org.apache.flink.StreamMap.processElement"), "user"),
        # Names without packages may be names of Flink classes.
        (("Orders.map", "StreamMap.processElement"), None),
        (("java.util.Objects.requireNonNull", "io.debezium.Reader.read"), "connector"),
        (("io.debezium.Reader.read", "org.apache.flink.Task.run"), "connector"),
        # User code that calls the client of a connector.
        (("io.debezium.Reader.read", "com.acme.Orders.map", "org.apache.flink.Task.run"), "user"),
        (("org.apache.flink.Task.run", "com.acme.Orders.main"), "flink"),
        (("java.lang.Thread.run",), None),
    ],
)
def test_the_innermost_frame_outside_libraries_determines_the_origin(
    frames: tuple[str, ...], expected: str | None
) -> None:
    lines = "".join(f"\tat {frame}(A.java:1)\n" for frame in frames)
    _, trace = extract("java.lang.NullPointerException: x", lines)
    assert trace is not None
    assert failing_origin(trace) == expected
