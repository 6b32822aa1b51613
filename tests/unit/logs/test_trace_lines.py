"""Classifies the lines of a stack trace."""

from __future__ import annotations

import pytest

from flink_triage.logs.text import trace_lines as grammar

FRAMES = {
    "a jar that a web page took for a link": "\tat a.b.C.m(File.java:12) ~",
    "log4j2 with a jar": "\tat a.b.C.m(File.java:12) ~[flink-dist-1.16.0.jar:1.16.0]",
    "log4j2 without a known jar": "\tat a.b.C.m(File.java:12) [?:?]",
    "not indented": "at a.b.C.m(File.java:12)",
    "module": "    at java.base/java.lang.Thread.run(Thread.java:829)",
    "module with a version": "\tat java.base@11.0.2/java.lang.Thread.run(Thread.java:829)",
    "class loader": "\tat app//com.acme.Job.main(Job.java:3)",
    "lambda class": "\tat com.acme.Job$$Lambda$12/0x0000000840a.run(Unknown Source)",
    "constructor": "\tat com.acme.Job.<init>(Job.java:3)",
    "native": "\tat org.rocksdb.RocksDB.open(Native Method)",
    "unknown in angle brackets": "\tat com.acme.Job.m(<unknown>)",
    "scala closure": " at s.X$.$anonfun$m$1(X.scala:1)",
    "kotlin mangled": "\tat com.acme.Amount.plus-IoAF18A(Amount.kt:7)",
    "quoted in a mail": "> \tat com.acme.Job.m(Job.java:3)",
}
NO_FRAMES = {
    "prose": "at the moment (now)",
    "jackson's location": " at [Source: UNKNOWN; line: -1, column: -1]",
    "no package": "at main(Job.java:3)",
    "something follows": "\tat com.acme.Job.m(Job.java:3) and more",
    "a time": "at 12:30 (UTC)",
}
HEADERS = {
    "type alone": "java.lang.NullPointerException",
    "type and message": "java.lang.OutOfMemoryError: Metaspace",
    "of a thread": 'Exception in thread "main x" java.lang.Error: x',
    "simple name": "RocksDBException: Bad table magic number",
    "nested class": "org.apache.zookeeper.KeeperException$NoNodeException: x",
    "indented": "  java.io.IOException: x",
    "of a remote server": "org.apache.hadoop.ipc.RemoteException(java.io.IOException): x",
}
NO_HEADERS = {
    "a word": "Error: foo",
    "another key": "foo: bar",
    "another class": "java.lang.String: x",
    "a call": "com.acme.CodecException(code) x",
    "in the middle of prose": "java.lang.RuntimeException at foo",
    "behind a date": "2023-01-01 java.lang.IllegalStateException: a",
    "a logger's class": "org.apache.flink.runtime.taskmanager.Task: x",
}


@pytest.mark.parametrize("line", FRAMES.values(), ids=FRAMES.keys())
def test_frame(line: str) -> None:
    assert grammar.is_frame(line)
    assert grammar.continues_trace(line)


@pytest.mark.parametrize("line", NO_FRAMES.values(), ids=NO_FRAMES.keys())
def test_not_a_frame(line: str) -> None:
    assert not grammar.is_frame(line)


@pytest.mark.parametrize("line", HEADERS.values(), ids=HEADERS.keys())
def test_header(line: str) -> None:
    assert grammar.is_throwable_header(line)
    assert not grammar.continues_trace(line)


@pytest.mark.parametrize("line", NO_HEADERS.values(), ids=NO_HEADERS.keys())
def test_not_a_header(line: str) -> None:
    assert not grammar.is_throwable_header(line)


def test_markers_of_a_cause_chain() -> None:
    assert grammar.is_cause("Caused by: java.io.IOException: x")
    assert grammar.is_cause("Wrapped by: java.io.IOException: x")
    assert grammar.is_suppressed("\tSuppressed: java.io.IOException: x")
    assert grammar.is_more("\t... 12 more")
    assert grammar.is_more("\t... 12 common frames omitted")
    assert grammar.is_circular("\t[CIRCULAR REFERENCE:java.lang.Exception: x]")
    assert not grammar.is_more("... and 12 more")
    assert not grammar.is_cause("It was caused by: x")


@pytest.mark.parametrize(
    "line", ["...", "\t…", "[...]", "......", "... omitted ...", "// ...", "<snip>", "...省略..."]
)
def test_elisions_of_omitted_lines(line: str) -> None:
    assert grammar.is_elision(line)


@pytest.mark.parametrize("line", ["", "]", "more", "... 3 more", "and so on ...", "---", "." * 90])
def test_lines_that_are_not_elisions(line: str) -> None:
    assert not grammar.is_elision(line)
