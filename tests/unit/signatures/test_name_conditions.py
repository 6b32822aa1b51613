"""The same class, logger or frame, in the ways that logs print it."""

from __future__ import annotations

import pytest

from flink_triage.model import Frame
from flink_triage.signatures.conditions import (
    fails_in_user_code,
    frame_names,
    has_frame,
    is_logger,
    is_type,
    simple_name,
)
from flink_triage.traces import extract

COORDINATOR = "org.apache.flink.runtime.checkpoint.CheckpointCoordinator"
PACKAGE = "org.apache.flink.runtime.checkpoint"

LOGGERS = [
    pytest.param(COORDINATOR, COORDINATOR, True, id="in full"),
    pytest.param(COORDINATOR, PACKAGE, True, id="a package of it"),
    pytest.param(COORDINATOR, "org.apache.flink.run", False, id="half a part is no package"),
    pytest.param("o.a.f.r.c.CheckpointCoordinator", COORDINATOR, True, id="one letter each"),
    pytest.param("o.a.f.r.checkpoint.CheckpointCoordinator", COORDINATOR, True, id="some cut"),
    pytest.param("o.a.f.r.c.CheckpointCoordinator", PACKAGE, True, id="cut, a package of it"),
    pytest.param("checkpoint.CheckpointCoordinator", COORDINATOR, True, id="last two parts"),
    pytest.param("CheckpointCoordinator", COORDINATOR, True, id="the class alone"),
    pytest.param("checkpoint.CheckpointCoordinator", PACKAGE, True, id="two parts, a package"),
    pytest.param("CheckpointCoordinator", PACKAGE, True, id="a class may be in any package"),
    pytest.param("checkpoint.CheckpointCoordinator", "com.shop", False, id="another package"),
    pytest.param("CheckpointFailureManager", COORDINATOR, False, id="another class"),
    pytest.param("o.a.f.r.c.CheckpointFailureManager", COORDINATOR, False, id="another, cut"),
    pytest.param("o.a.k.c.NetworkClient", COORDINATOR, False, id="another project, cut"),
    pytest.param(f"{COORDINATOR}$Inner", COORDINATOR, True, id="a class inside it"),
    pytest.param(f"{COORDINATOR}Deactivator", COORDINATOR, False, id="a class that begins alike"),
    pytest.param("akka.remote.Gate", "org.apache.pekko.remote.Gate", True, id="akka is pekko"),
]


@pytest.mark.parametrize(("name", "wanted", "expected"), LOGGERS)
def test_loggers(name: str, wanted: str, expected: bool) -> None:
    assert is_logger(name, wanted) is expected


ROCKSDB = "org.rocksdb.RocksDBException"
TYPES = [
    pytest.param(ROCKSDB, ROCKSDB, True, id="in full"),
    pytest.param(f"x.y.shaded.{ROCKSDB}", ROCKSDB, True, id="relocated"),
    pytest.param(
        "pyflink.util.exceptions.TableException",
        "org.apache.flink.table.api.TableException",
        True,
        id="raised by PyFlink",
    ),
    pytest.param("RocksDBException", ROCKSDB, True, id="printed without package"),
    pytest.param(ROCKSDB, "RocksDBException", True, id="asked for without package"),
    pytest.param("com.acme.RocksDBException", ROCKSDB, False, id="same name, other package"),
    pytest.param("MyRocksDBException", ROCKSDB, False, id="a name that ends alike"),
    pytest.param("a.MyRocksDBException", "RocksDBException", False, id="a longer simple name"),
    pytest.param("CancelledException", "a.Outer$CancelledException", True, id="a nested class"),
    pytest.param(
        "org.apache.pekko.pattern.AskTimeoutException",
        "akka.pattern.AskTimeoutException",
        True,
        id="pekko is akka",
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
    pytest.param("rocksdb.RocksDB.open", True, id="behind a prefix"),
    pytest.param("ocksdb.RocksDB.open", False, id="half a part"),
    pytest.param("org.rocksdb.RocksDB.close", False, id="another method"),
]


@pytest.mark.parametrize(("wanted", "expected"), FRAMES)
def test_frames(wanted: str, expected: bool) -> None:
    names = frame_names([Frame("a.B", "c"), Frame("org.rocksdb.RocksDB", "open")])
    assert has_frame(names, wanted) is expected


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        (("com.acme.Orders.map", "org.apache.flink.StreamMap.processElement"), True),
        # A class in the default package.
        (("Orders.map", "org.apache.flink.StreamMap.processElement"), True),
        # Names without their packages: they may be Flink's.
        (("Orders.map", "StreamMap.processElement"), False),
    ],
)
def test_the_innermost_frame_may_be_the_users(frames: tuple[str, ...], expected: bool) -> None:
    lines = "".join(f"\tat {frame}(A.java:1)\n" for frame in frames)
    _, trace = extract("java.lang.NullPointerException: x", lines)
    assert trace is not None
    assert fails_in_user_code(trace) == expected
