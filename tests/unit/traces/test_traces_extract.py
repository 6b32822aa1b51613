"""Extracts stack traces from real events (``data/``), and from text in many formats."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from flink_triage.model import Frame, StackTrace, Throwable
from flink_triage.traces import expand_frames, extract, fingerprint, first_user_frame

DATA = Path(__file__).parent / "data"

FRAME_A = Frame("com.acme.A", "run", "A.java", 1)
FRAME_B = Frame("com.acme.B", "call", "B.java", 2)
AT_A = "\tat com.acme.A.run(A.java:1)"
AT_B = "\tat com.acme.B.call(B.java:2)"


def read(name: str) -> tuple[str, StackTrace]:
    text = (DATA / f"{name}.log").read_text(encoding="utf-8").rstrip("\n")
    if text.startswith("{"):
        fields = json.loads(text)
        message, trace = extract(fields["message"], fields["error.stack_trace"])
    else:
        head, _, tail = text.partition("\n")
        message, trace = extract(head, tail or None)
    assert trace is not None
    return message, trace


# For each throwable: simple type, start of the message, printed frames, omitted frames,
# serialized.
GOLDEN: dict[str, tuple[str, list[tuple[str, str, int, int, bool]]]] = {
    "bad-magic-taskmanager": (
        "switched from INITIALIZING to FAILED with failure cause:",
        [
            ("Exception", "Exception while creating StreamOperatorStateContext.", 12, 0, False),
            ("FlinkException", "Could not restore keyed state backend", 3, 11, False),
            ("BackendBuildingException", "Caught unexpected exception.", 6, 13, False),
            ("IOException", "Error while opening RocksDB instance.", 8, 18, False),
            ("RocksDBException", "Bad table magic number: expected 98635", 3, 25, False),
        ],
    ),
    # The same failure in the JobManager log. Log4j 2 prints each type twice and omits fewer frames.
    "bad-magic-jobmanager": (
        "FAILED on localhost:39805-62de5d @ localhost (dataPort=39783).",
        [
            ("Exception", "Exception while creating StreamOperatorStateContext.", 12, 0, True),
            ("FlinkException", "Could not restore keyed state backend", 3, 11, True),
            ("BackendBuildingException", "Caught unexpected exception.", 8, 11, True),
            ("IOException", "Error while opening RocksDB instance.", 15, 11, True),
            ("RocksDBException", "Bad table magic number: expected 98635", 17, 11, True),
        ],
    ),
    "no-space-oneline": (
        "- asynchronous part of checkpoint 5 could not be completed.",
        [
            ("ExecutionException", "java.io.IOException: No space left on device", 10, 0, False),
            ("IOException", "No space left on device", 10, 3, False),
        ],
    ),
    "no-space-jobmanager": (
        "at localhost:45313-43e03f @ localhost (dataPort=44973).",
        [
            ("CheckpointException", "Asynchronous task checkpoint failed.", 5, 0, True),
            ("Exception", "Could not materialize checkpoint 5 for operat", 1, 4, True),
            ("ExecutionException", "java.io.IOException: No space left on device", 6, 3, True),
            ("IOException", "No space left on device", 10, 3, True),
        ],
    ),
    "block-checksum-mdc": (
        "FAILED on localhost:38227-fdbf4f @ localhost (dataPort=40935).",
        [
            ("IOException", "Error while adding data to RocksDB", 18, 0, True),
            ("RocksDBException", "block checksum mismatch: stored = 366", 3, 17, True),
        ],
    ),
    "hdfs-remote": (
        "- asynchronous part of checkpoint 7 could not be completed.",
        [
            ("ExecutionException", "java.io.IOException: Could not flush to file", 9, 0, False),
            ("IOException", "Could not flush to file and close the file sy", 5, 3, False),
            ("IOException", "All datanodes [DatanodeInfoWithStorage[127.0.", 5, 0, False),
        ],
    ),
    "json-ecs": (
        "FAILED on localhost:42929-d3219e @ localhost (dataPort=37369).",
        [
            ("Exception", "Exception while creating StreamOperatorStateContext.", 13, 0, False),
            ("FlinkException", "Could not restore keyed state backend", 3, 12, False),
            ("BackendBuildingException", "Caught unexpected exception.", 6, 14, False),
            ("IOException", "Error while opening RocksDB instance.", 10, 19, False),
            ("RocksDBException", "Bad table magic number: expected 98635", 3, 28, False),
        ],
    ),
    "manifest-missing-log4j1": (
        "Audit Sink (2/2)#0. Failure reason: Checkpoint was declined.",
        [
            ("CheckpointException", "Could not complete snapshot 5 for operator", 34, 0, False),
            ("RocksDBException", "While opening a file for sequentially reading", 8, 33, False),
        ],
    ),
    "expired-iso-thread": (
        "Trying to recover from a global failure.",
        [("FlinkRuntimeException", "Exceeded checkpoint tolerable failure", 13, 0, False)],
    ),
    "metaspace": (
        "switched from RUNNING to FAILED with failure cause:",
        [("OutOfMemoryError", "Metaspace. The metaspace out-of-memory error", 31, 0, False)],
    ),
    "user-npe": (
        "switched from RUNNING to FAILED with failure cause:",
        [("NullPointerException", 'Cannot invoke "String.toUpperCase()"', 26, 0, False)],
    ),
    "user-npe-jobmanager": (
        "FAILED on localhost:37655-1ed76a @ localhost (dataPort=45253).",
        [("NullPointerException", "", 28, 0, False)],
    ),
    "kafka-wrapped-commit": (
        "Failed to commit consumer offsets for checkpoint 9",
        [
            ("RetriableCommitFailedException", "Offset commit failed with a", 0, 0, False),
            ("DisconnectException", "", 0, 0, False),
        ],
    ),
    # From a document: wrapped between words, without indentation.
    "kafka-commit-no-frames": (
        "Failed to commit consumer offsets for checkpoint 4",
        [
            (
                "RetriableCommitFailedException",
                "Offset commit failed with a retriable exception. You should retry committing",
                0,
                0,
                False,
            ),
            ("CoordinatorNotAvailableException", "The coordinator is not available.", 0, 0, False),
        ],
    ),
    # From a document: each frame is split in the middle of a token.
    "wrapped-at-a-column": (
        "",
        [("FlinkRuntimeException", "Exceeded checkpoint tolerable failure", 13, 0, False)],
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_real_event(name: str) -> None:
    message_end, expected = GOLDEN[name]
    message, trace = read(name)
    assert message.endswith(message_end)
    got = [
        (
            throwable.type.rpartition(".")[2],
            throwable.message[: len(row[1])],
            len(throwable.frames),
            throwable.omitted_frame_count,
            throwable.is_serialized,
        )
        for throwable, row in zip(trace.throwables, expected, strict=True)
    ]
    assert got == expected
    assert not trace.is_truncated


def test_both_processes_print_one_failure() -> None:
    _, taskmanager = read("bad-magic-taskmanager")
    _, jobmanager = read("bad-magic-jobmanager")
    assert fingerprint(taskmanager) == fingerprint(jobmanager)
    assert [len(f) for f in expand_frames(taskmanager)] == [12, 14, 19, 26, 28]
    assert [len(f) for f in expand_frames(jobmanager)] == [12, 14, 19, 26, 28]


def test_wrapped_frames_are_whole() -> None:
    _, trace = read("wrapped-at-a-column")
    assert trace.thrown.frames[3] == Frame(
        "org.apache.flink.runtime.checkpoint.CheckpointCoordinator",
        "abortPendingCheckpoint",
        "CheckpointCoordinator.java",
        2104,
        origin="flink",
    )


def chain(text: str, message: str = "Task failed.") -> list[tuple[str, str, int]]:
    _, trace = extract(message, text)
    assert trace is not None
    return [(t.type, t.message, len(t.frames)) for t in trace.throwables]


def test_a_sentence_broken_elsewhere_than_the_frames_is_whole() -> None:
    text = (
        "java.lang.Exception: The user defined 'open()' method caused an exception: "
        'java.io.IOException: Cannot\nrun program "docker": error=2, No such file or directory\n'
        "\tat org.apache.flink.runtime.operators.BatchTask.run(BatchTask.java:513)\n"
        "\tat\norg.apache.flink.runtime.operators.BatchTask.invoke(BatchTask.java:360)\n"
        "\tat\norg.apache.flink.runtime.taskmanager.Task.doRun(Task.java:779)"
    )
    ((_, message, frame_count),) = chain(text)
    assert message.endswith('Cannot run program "docker": error=2, No such file or directory')
    assert frame_count == 3


IO = "java.io.IOException"
RT = "java.lang.RuntimeException"
SERIALIZED = "org.apache.flink.util.SerializedThrowable"
SHAPES: dict[str, tuple[str, list[tuple[str, str, int]]]] = {
    "serialized": (f"{SERIALIZED}: {IO}: full\n{AT_A}", [(IO, "full", 1)]),
    "serialized, wrapping another type's text": (
        f"{SERIALIZED}: {RT}: {IO}: full\n{AT_A}",
        [(RT, f"{IO}: full", 1)],
    ),
    "thrown by a remote server": (
        f"{IO}: x\n{AT_A}\nCaused by: org.apache.hadoop.ipc.RemoteException"
        f"(org.apache.hadoop.security.AccessControlException): no\n{AT_A}",
        [(IO, "x", 1), ("org.apache.hadoop.security.AccessControlException", "no", 1)],
    ),
    "thrown by a remote server, in one line": (
        f"{IO}: x {AT_A} Caused by: org.apache.hadoop.ipc.RemoteException({IO}): no {AT_A}",
        [(IO, "x", 1), (IO, "no", 1)],
    ),
    "thrown by a remote server, no class of a throwable": (
        f"org.apache.hadoop.ipc.RemoteException(com.acme.Denied): no\n{AT_A}",
        [("org.apache.hadoop.ipc.RemoteException", "no", 1)],
    ),
    "serialized twice": (f"{SERIALIZED}: {SERIALIZED}: {IO}: full\n{AT_A}", [(IO, "full", 1)]),
    "serialized without a message": (f"{SERIALIZED}: {IO}\n{AT_A}", [(IO, "", 1)]),
    "serialized by old Flink": (f"{SERIALIZED}: disk full\n{AT_A}", [(SERIALIZED, "disk full", 1)]),
    "serialized null": (f"{SERIALIZED}: null\n{AT_A}", [(SERIALIZED, "", 1)]),
    "serialized, its type printed twice": (
        f"{RT}: x\n{AT_A}\nCaused by: {IO}: {IO}: full\n{AT_B}",
        [(RT, "x", 1), (IO, "full", 1)],
    ),
    "a wrapper of its own type": (
        f"{IO}: {IO}: full\n{AT_A}\nCaused by: {IO}: full\n{AT_B}",
        [(IO, f"{IO}: full", 1), (IO, "full", 1)],
    ),
    "message of several lines": (
        f'{IO}: cannot read\n\n{{"a": 1}}\nCaused by nothing\n{AT_A}',
        [(IO, 'cannot read\n\n{"a": 1}\nCaused by nothing', 1)],
    ),
    "causes without frames": (
        f"{RT}: x\nCaused by: {IO}: y\nCaused by: {IO}: z",
        [(RT, "x", 0), (IO, "y", 0), (IO, "z", 0)],
    ),
    "causes behind blank lines": (
        f"{RT}: x\n\nCaused by: {IO}: y\n\n\nCaused by: {IO}: z\n{AT_A}",
        [(RT, "x", 0), (IO, "y", 0), (IO, "z", 1)],
    ),
    "root first": (
        f"{IO}: root\n{AT_A}\nWrapped by: {RT}: outer\n{AT_B}",
        [(RT, "outer", 1), (IO, "root", 1)],
    ),
    "misspelt cause": (f"{RT}: x\n{AT_A}\nCause by: {IO}: y", [(RT, "x", 1), (IO, "y", 0)]),
    "thrift's own form": (
        f"{RT}: x\n{AT_A}\nCaused by: MetaException(message:no store)\n{AT_B}",
        [(RT, "x", 1), ("MetaException", "no store", 1)],
    ),
    "circular reference": (
        f"{RT}: x\n{AT_A}\nCaused by: {IO}: y\n{AT_B}\nCaused by: [CIRCULAR REFERENCE: {RT}: x]",
        [(RT, "x", 1), (IO, "y", 1)],
    ),
    "noise of another thread between frames": (
        f"{RT}: x\n{AT_A}\nhello\n{AT_B}",
        [(RT, "x", 2)],
    ),
    "exception of a thread": (f'Exception in thread "main" {RT}: x\n{AT_A}', [(RT, "x", 1)]),
    "custom type without the usual suffix": (
        f"com.acme.Refusal: no\n{AT_A}",
        [("com.acme.Refusal", "no", 1)],
    ),
    "server's trace inside the client's message": (
        f"{RT}: submit\n{AT_A}\nCaused by: org.apache.flink.runtime.rest.util.RestClientException: "
        f"[Internal server error., <Exception on server side:\n{RT}: server\n{AT_A}\n"
        f"Caused by: {IO}: full\n{AT_B}\n{AT_B}\n\nEnd of exception on server side>]\n{AT_B}",
        [
            (RT, "submit", 1),
            (
                "org.apache.flink.runtime.rest.util.RestClientException",
                "[Internal server error., <Exception on server side:",
                1,
            ),
            (RT, "server", 1),
            (IO, "full", 2),
        ],
    ),
    "cut frame at the end": (f"{RT}: x\n{AT_A}\n\tat org.apache.fl", [(RT, "x", 1)]),
    "type cut by a wrap": (
        f"{RT}: x\n{AT_A}\nCaused by: org.apache.flink.util.Flink\nException: y\n{AT_B}",
        [(RT, "x", 1), ("org.apache.flink.util.FlinkException", "y", 1)],
    ),
}


@pytest.mark.parametrize(("text", "expected"), SHAPES.values(), ids=SHAPES.keys())
def test_shape(text: str, expected: list[tuple[str, str, int]]) -> None:
    assert chain(text) == expected


HEADER_LINES = {
    "behind a colon": ("Task switched to FAILED with failure cause:", f" {RT}: x"),
    "behind a full stop": ("failed at localhost (dataPort=1).", f" {RT}: x"),
}


@pytest.mark.parametrize(("prose", "thrown"), HEADER_LINES.values(), ids=HEADER_LINES.keys())
def test_trace_that_starts_on_the_header_line(prose: str, thrown: str) -> None:
    expected = StackTrace((Throwable(RT, "x", (FRAME_A,)),))
    assert extract(prose + thrown, AT_A) == (prose, expected)
    assert extract(f"{prose}{thrown}|{AT_A}", None) == (prose, expected)


def test_blamed_throwable_needs_no_frames() -> None:
    assert extract(f"switched to FAILED with failure cause: {IO}: full", None) == (
        "switched to FAILED with failure cause:",
        StackTrace((Throwable(IO, "full"),)),
    )


NO_TRACE = (
    ("Completed checkpoint 3.", None),
    (f"Ignoring {IO}: full, will retry", None),
    ("Options:", "-Xmx1g\n-Dx=y"),
    ("Look at that", "at the end (of the day)"),
    ('"main" #1 prio=5', f"   java.lang.Thread.State: WAITING (on object monitor)\n{AT_A}"),
)


@pytest.mark.parametrize(("message", "continuation"), NO_TRACE)
def test_text_without_a_trace_stays(message: str, continuation: str | None) -> None:
    text = message if continuation is None else f"{message}\n{continuation}"
    assert extract(message, continuation) == (text, None)


def test_prose_around_stays_in_the_message() -> None:
    assert extract("Look:", f"see here\n{RT}: x\n{AT_A}\n\nWhat is it?") == (
        "Look:\nsee here\nWhat is it?",
        StackTrace((Throwable(RT, "x", (FRAME_A,)),)),
    )


def test_second_trace_stays_as_text() -> None:
    message, trace = extract("", f"{RT}: x\n{AT_A}\n{IO}: y\n{AT_B}")
    assert trace == StackTrace((Throwable(RT, "x", (FRAME_A,)),))
    assert extract("", message)[1] == StackTrace((Throwable(IO, "y", (FRAME_B,)),))


def test_head_is_cut() -> None:
    assert extract("", f"{AT_A}\nCaused by: {IO}: y\n{AT_B}")[1] == StackTrace(
        (
            Throwable("", "", (FRAME_A,)),
            Throwable(IO, "y", (FRAME_B,), relation="cause"),
        ),
        is_truncated=True,
    )


def test_suppressed_has_its_own_chain() -> None:
    text = (
        f"{RT}: x\n{AT_A}\n\tSuppressed: {IO}: close\n\t{AT_B}\n\tCaused by: {IO}: why\n\t{AT_B}\n"
        f"Caused by: {IO}: root\n{AT_B}"
    )
    suppressed = (
        Throwable(IO, "close", (FRAME_B,), relation="suppressed"),
        Throwable(IO, "why", (FRAME_B,), relation="cause"),
    )
    assert extract("", text)[1] == StackTrace(
        (
            Throwable(RT, "x", (FRAME_A,), suppressed=(suppressed,)),
            Throwable(IO, "root", (FRAME_B,), relation="cause"),
        )
    )


PYTHON = (
    "Traceback (most recent call last):\n"
    '  File "/opt/lib/python3.9/site-packages/pyflink/fn_execution/beam/sdk.py", line 289, in run\n'
    "    result = task()\n"
    '  File "/tmp/job.py", line 7, in parse\n'
    "    return int(value)\n"
    "ValueError: invalid literal for int() with base 10: 'x'\n"
)
PYTHON_ERROR = Throwable(
    "python.ValueError",
    "invalid literal for int() with base 10: 'x'",
    (
        Frame("job", "parse", "job.py", 7),
        Frame("pyflink.fn_execution.beam.sdk", "run", "sdk.py", 289, origin="flink"),
    ),
    relation="cause",
)


def test_python_error_in_a_java_message_is_its_cause() -> None:
    text = f"{RT}: Error received from SDK harness for instruction 1: {PYTHON}\n{AT_A}\n{AT_B}"
    _, trace = extract("Task failed.", text)
    assert trace is not None
    assert trace.throwables[1:] == (PYTHON_ERROR,)
    assert trace.thrown == Throwable(
        RT, "Error received from SDK harness for instruction 1:", (FRAME_A, FRAME_B)
    )
    assert first_user_frame(trace) == PYTHON_ERROR.frames[0]


def test_python_around_java() -> None:
    text = PYTHON.replace("ValueError: ", "py4j.protocol.Py4JJavaError: ") + f": {IO}: full\n{AT_A}"
    assert [(t, n) for t, _, n in chain(text)] == [("py4j.protocol.Py4JJavaError", 2), (IO, 1)]


def test_java_exception_below_a_py4j_error_without_its_traceback_is_the_cause() -> None:
    error = "py4j.protocol.Py4JJavaError: An error occurred while calling o10.executeSql."
    found = [(t, n) for t, _, n in chain(f"{error}\n: {IO}: full\n{AT_A}")]
    assert found == [("py4j.protocol.Py4JJavaError", 0), (IO, 1)]


TABLE = "org.apache.flink.table.api.TableException"
DATABASE = "org.apache.flink.table.catalog.exceptions.DatabaseNotExistException"


@pytest.mark.parametrize(
    ("error", "java"),
    [
        ("TableException: Sink does not exists", (TABLE, "Sink does not exists", 1)),
        (f"TableException: {TABLE}: Sink does not exists", (TABLE, "Sink does not exists", 1)),
        ("DatabaseNotExistException: no shop", (DATABASE, "no shop", 1)),
        ("JavaException: x", ("", "", 1)),
    ],
)
def test_pyflink_raises_a_java_exception_as_its_own(error: str, java: tuple[str, str, int]) -> None:
    python = PYTHON.replace("ValueError: ", f"pyflink.util.exceptions.{error}\n")
    lines = [line for line in python.split("\n") if not line.startswith("invalid literal")]
    outer, inner = chain("\n".join([*lines[:-1], f"     {AT_A.strip()}"]))
    assert outer[0].startswith("pyflink.util.exceptions.")
    assert inner == java


@pytest.mark.parametrize(
    ("path", "module", "origin"),
    [
        ("/opt/flink/opt/python/pyflink.zip/pyflink/table/udf.py", "pyflink.table.udf", "flink"),
        ("/opt/cloudpickle-2.2.0-src.zip/cloudpickle/fast.py", "cloudpickle.fast", "library"),
        ("/opt/app/jobs/orders.py", "orders", "user"),
        ("/tmp/python-dist-1/python-files/blob_p-1/job.zip/orders.py", "orders", "user"),
        (
            "apache_beam/runners/worker/operations.py",
            "apache_beam.runners.worker.operations",
            "library",
        ),
        ("pyflink/fn_execution/beam/fast.pyx", "pyflink.fn_execution.beam.fast", "flink"),
        ("<string>", "<string>", "jdk"),
    ],
)
def test_whose_code_a_python_file_is(path: str, module: str, origin: str) -> None:
    _, trace = extract("", PYTHON.replace("/tmp/job.py", path))
    assert trace is not None
    frame = trace.root_cause.frames[0]
    assert (frame.class_name, frame.origin) == (module, origin)


HOSTILE = {
    "parentheses": "(",
    "dots": "a.",
    "at": "at ",
    "frames on one line": " at a.b.C.m(C.java:1)",
    "causes on one line": " Caused by: a.b.CException: x",
    "open frames": "\tat a.b.C.m\n",
    "frames": "\tat a.b.C.m(C.java:1)\n",
    "causes": "Caused by: a.b.CException: x\n",
    "suppressed": "\tSuppressed: a.b.CException: x\n",
    "headers": "a.b.CException: x ",
    "blanks": " ",
    "bars": "|",
    "quotes": "> ",
    "tracebacks": "Traceback (most recent call last):\n",
    "python frames": '  File "/a.py", line 1, in f\n',
    "server side": "a.b.CException: <Exception on server side:\n",
}


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("before", ["", f"{RT}: x\n"], ids=["alone", "in a trace"])
@pytest.mark.timing
def test_cost_grows_with_the_length(before: str, unit: str) -> None:
    def cost(size: int) -> float:
        text = before + unit * (size // len(unit))
        best = float("inf")
        for _ in range(3):
            began = time.perf_counter()
            _, trace = extract("failed", text)
            if trace is not None:
                fingerprint(trace)
            best = min(best, time.perf_counter() - began)
        return best

    # With eight times the text, quadratic cost would be 64 times as high.
    assert cost(16_000) < 25 * cost(2_000) + 0.01


def test_of_a_chain_without_end_the_first_and_the_root_cause_are_kept() -> None:
    lines = ["java.lang.Exception: first", "\tat a.B.c(D.java:1)"]
    for number in range(2000):
        lines += [
            f"Caused by: java.lang.RuntimeException: {number}",
            f"\tat a.B.c{number}(D.java:1)",
        ]
    _, trace = extract("\n".join(lines), None)
    assert trace is not None
    assert len(trace.throwables) == 256
    assert [t.message for t in trace.throwables[:2]] == ["first", "0"]
    assert trace.root_cause.message == "1999"
    assert [frame.method for frame in trace.root_cause.frames] == ["c1999"]
    assert trace.is_truncated
