"""Fingerprints identify equal failures, and class names identify the origin of a frame."""

from __future__ import annotations

import re
import time

import pytest

from flink_triage.model import Origin, StackTrace
from flink_triage.traces import (
    expand_frames,
    extract,
    fingerprint,
    first_user_frame,
    mask,
    origin_of,
)

TEXT = """java.lang.RuntimeException: Task 3 of orders failed
\tat com.acme.Job$$Lambda$123/0x0000000840a1.apply(Unknown Source)
\tat com.acme.Job.lambda$main$0(Job.java:31)
\tat StreamExecCalc$12.processElement(Unknown Source)
\tat jdk.internal.reflect.GeneratedMethodAccessor12.invoke(Unknown Source)
\tat com.sun.proxy.$Proxy12.call(Unknown Source)
\tat com.acme.Outer$1.run(Outer.java:5)
\tat org.apache.flink.runtime.taskmanager.Task.run(Task.java:550) ~[flink-dist-1.16.0.jar:1.16.0]
Caused by: java.io.IOException: Cannot read /tmp/a/000210.sst from 10.0.0.1:6122 at 12
\tat com.acme.Reader.read(Reader.java:12)
\t... 7 more"""


def parsed(text: str) -> StackTrace:
    _, trace = extract("", text)
    assert trace is not None
    return trace


SAME = {
    "line numbers": (r"\.java:\d+", ".java:99"),
    "jars": (r"flink-dist-1\.16\.0\.jar:1\.16\.0", "flink-dist-1.16.1.jar:1.16.1"),
    "lambda classes": (r"\$\$Lambda\$123/0x0000000840a1", "$$Lambda/0x00007f00"),
    "lambda methods": (r"lambda\$main\$0", "lambda$main$4"),
    "generated operators": (r"StreamExecCalc\$12", "StreamExecCalc$931"),
    "reflection accessors": ("GeneratedMethodAccessor12", "GeneratedMethodAccessor77"),
    "proxies": (r"\$Proxy12", "$Proxy8"),
    "anonymous classes": (r"Outer\$1", "Outer$3"),
    "numbers in the message": ("Task 3", "Task 1114"),
    "paths and addresses": ("/tmp/a/000210.sst from 10.0.0.1:6122", "/x_1 from 10.20.0.1:40001"),
    "recursion": (r"(\tat com.acme.Reader.read\(Reader.java:12\)\n)", r"\1\1\1\1"),
}
OTHER = {
    "another type": ("java.io.IOException", "java.io.EOFException"),
    "another word in the message": ("Cannot read", "Cannot write"),
    "another place": ("Reader.read", "Reader.open"),
}


@pytest.mark.parametrize(("pattern", "replacement"), SAME.values(), ids=SAME.keys())
def test_failures_that_differ_in_this_are_one(pattern: str, replacement: str) -> None:
    text = re.sub(pattern, replacement, TEXT)
    assert text != TEXT
    assert fingerprint(parsed(text)) == fingerprint(parsed(TEXT))


@pytest.mark.parametrize(("pattern", "replacement"), OTHER.values(), ids=OTHER.keys())
def test_failures_that_differ_in_this_are_two(pattern: str, replacement: str) -> None:
    text = re.sub(pattern, replacement, TEXT)
    assert fingerprint(parsed(text)).full != fingerprint(parsed(TEXT)).full
    assert fingerprint(parsed(text)).root_cause != fingerprint(parsed(TEXT)).root_cause


def test_wrapper_does_not_change_the_root_cause() -> None:
    wrapped = (
        "java.lang.IllegalStateException: outer\n\tat com.acme.Z.z(Z.java:1)\n"
        + TEXT.replace("java.lang.RuntimeException", "Caused by: java.lang.RuntimeException", 1)
    )
    one, other = fingerprint(parsed(wrapped)), fingerprint(parsed(TEXT))
    assert one.root_cause == other.root_cause
    assert one.full != other.full
    assert one.user_frames != other.user_frames


def test_fingerprint_is_versioned() -> None:
    identity = fingerprint(parsed(TEXT))
    for value in (identity.full, identity.root_cause, identity.user_frames):
        assert value is not None
        assert re.fullmatch(r"v1:[0-9a-f]{32}", value)


def test_no_user_frames() -> None:
    trace = parsed("java.io.IOException: x\n\tat java.io.File.open(File.java:1)")
    assert fingerprint(trace).user_frames is None
    assert first_user_frame(trace) is None


def test_first_user_frame_is_that_of_the_innermost_throwable() -> None:
    frame = first_user_frame(parsed(TEXT))
    assert frame is not None
    assert (frame.class_name, frame.method) == ("com.acme.Reader", "read")


def test_omitted_frames_are_those_of_the_enclosing_throwable() -> None:
    trace = parsed(TEXT)
    first, second = expand_frames(trace)
    assert second == trace.root_cause.frames + first[-7:]


ORIGINS: dict[str, Origin] = {
    "com.acme.Job": "user",
    "Job": "user",
    "org.apache.flink.runtime.taskmanager.Task": "flink",
    "StreamExecCalc$12": "flink",
    "SourceConversion$3": "flink",
    "org.apache.flink.examples.java.wordcount.WordCount": "user",
    "org.apache.flink.connector.kafka.source.KafkaSource": "connector",
    "org.apache.flink.streaming.connectors.kafka.FlinkKafkaProducer": "connector",
    "org.apache.flink.kafka.shaded.org.apache.kafka.clients.Sender": "connector",
    "org.apache.flink.cdc.connectors.mysql.MySqlSource": "connector",
    "com.ververica.cdc.debezium.Handler": "connector",
    "com.ververica.flink.table.gateway.rest.session.Session": "connector",
    "io.debezium.connector.mysql.MySqlConnectorTask": "connector",
    "org.apache.hudi.sink.StreamWriteFunction": "connector",
    "org.apache.flink.shaded.netty4.io.netty.channel.Channel": "library",
    "com.acme.shaded.dev.unknown.Library": "library",
    "org.apache.hadoop.hdfs.DataStreamer": "library",
    "com.alibaba.fastjson.JSON": "library",
    "com.alibaba.orders.Job": "user",
    "cn.hutool.core.util.StrUtil": "library",
    "org.mariadb.jdbc.Driver": "connector",
    "io.pravega.client.stream.impl.ClientFactoryImpl": "connector",
    "scala.Function0": "library",
    "akka.actor.Actor": "library",
    "org.rocksdb.RocksDB": "library",
    "java.lang.Thread": "jdk",
    "jdk.internal.reflect.DirectMethodHandleAccessor": "jdk",
    "sun.misc.Unsafe": "jdk",
}


@pytest.mark.parametrize(("class_name", "origin"), ORIGINS.items())
def test_origin(class_name: str, origin: Origin) -> None:
    assert origin_of(class_name) == origin


def test_native_methods_of_libraries_are_native() -> None:
    assert origin_of("org.rocksdb.RocksDB", "Native Method") == "native"
    assert origin_of("java.io.FileOutputStream", "Native Method") == "jdk"
    assert origin_of("StreamExecCalc$12", "Job.java") == "user"


MASKS = {
    "found 3262827221555964498": "found <number>",
    "checkpoint 17 of 3": "checkpoint <number> of <number>",
    "took -1.5ms": "took <number>ms",
    "job 3c445f31a6d0c5b1f0c8e4a7b2d9e6f1": "job <hex>",
    "attempt 78923e7c-9777-40d9-a5c5-fd7f0d2ee983": "attempt <uuid>",
    "10.0.0.1:6122-d7afae is gone": "<address> is gone",
    "localhost:46173-d7afae is gone": "<hostport> is gone",
    "in /tmp/tm_host:6122-c46d5f/db/000210.sst: Not supported": "in <path>: Not supported",
    "file hdfs://ns/flink/chk-7/x": "file <url>",
    'Cannot invoke "String.trim()"': "Cannot invoke <quoted>",
    "since 2023-06-14 23:42:46,123": "since <time>",
    "object com.acme.A@1b2c3d4e": "object com.acme.A<object>",
    "can't and won't": "can't and won't",
    "log4j2 and utf8 and s3": "log4j2 and utf8 and s3",
    "No space left on device": "No space left on device",
}


@pytest.mark.parametrize(("text", "masked"), MASKS.items())
def test_mask(text: str, masked: str) -> None:
    assert mask(text) == masked


@pytest.mark.parametrize("unit", ["a", "1", "a.", "1.", "/", "'", '"', "a-", "1:", "://", "a1"])
@pytest.mark.timing
def test_cost_of_masking_grows_with_the_length(unit: str) -> None:
    def cost(size: int) -> float:
        text = unit * (size // len(unit))
        best = float("inf")
        for _ in range(3):
            began = time.perf_counter()
            mask(text)
            best = min(best, time.perf_counter() - began)
        return best

    # With eight times the text, quadratic cost would be 64 times as high.
    assert cost(40_000) < 25 * cost(5_000) + 0.01
