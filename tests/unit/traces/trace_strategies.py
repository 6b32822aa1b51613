"""Hypothesis strategies for stack traces with everything that the canonical text can contain."""

from __future__ import annotations

from hypothesis import strategies as st

from flink_triage.model import Frame, Relation, StackTrace, Throwable
from flink_triage.traces import origin_of

_PACKAGES = st.sampled_from(
    ["com.acme.orders", "org.apache.flink.runtime.taskmanager", "java.util.concurrent",
     "org.rocksdb"]
)  # fmt: skip
_CLASSES = st.sampled_from(["Job", "Task$1", "Totals$$Lambda$12/0x00ff", "X$.$anonfun", "Öffner"])
_METHODS = st.sampled_from(["run", "<init>", "lambda$map$0", "apply$mcV$sp", "processElement"])
_JARS = st.sampled_from([None, "flink-dist-1.16.0.jar", "job.jar"])
_TYPES = st.sampled_from(
    ["java.lang.RuntimeException", "java.io.IOException", "org.rocksdb.RocksDBException",
     "java.lang.OutOfMemoryError", "com.acme.orders.Refused$RefusalException"]
)  # fmt: skip
_MESSAGES = st.sampled_from(
    ["", "No space left on device", "java.net.ConnectException: refused",
     "Bad table magic number: expected 1, found 2 in /tmp/x_host:6122-ab/db/000210.sst",
     "((((", "at the end", "more (see below)", "größer: 日本", "user=<a@b>, x=[1, 2]"]
)  # fmt: skip
_MULTILINE = st.sampled_from(
    ["Cannot read\n{\"a\": 1,\n\"b\": [2]}", "one\n\ntwo",
     "java.net.BindException: x\nAvailable: y"]
)  # fmt: skip


@st.composite
def frames(draw: st.DrawFn) -> Frame:
    class_name = f"{draw(_PACKAGES)}.{draw(_CLASSES)}"
    file, line = draw(
        st.sampled_from(
            [
                (None, None),
                ("Native Method", None),
                ("Job.java", 12),
                ("Job.scala", None),
                ("Y.kt", 3),
            ]
        )
    )
    return Frame(class_name, draw(_METHODS), file, line, draw(_JARS), origin_of(class_name, file))


@st.composite
def _throwables(draw: st.DrawFn, relation: Relation, depth: int, is_multiline: bool) -> Throwable:
    messages = st.one_of(_MESSAGES, _MULTILINE) if is_multiline else _MESSAGES
    message = draw(messages)
    has_frames = draw(st.integers(0, 4)) > 0 or "\n" in message or relation == "thrown"
    suppressed: list[tuple[Throwable, ...]] = []
    if depth:
        suppressed = draw(
            st.lists(chains("suppressed", depth - 1, is_multiline), max_size=2 if depth > 1 else 1)
        )
    is_enclosed = has_frames and relation != "thrown"
    return Throwable(
        type=draw(_TYPES),
        message=message,
        frames=tuple(draw(st.lists(frames(), min_size=1, max_size=3))) if has_frames else (),
        omitted_frame_count=draw(st.integers(0, 9)) if is_enclosed else 0,
        relation=relation,
        is_serialized=draw(st.booleans()),
        suppressed=tuple(suppressed),
    )


@st.composite
def chains(
    draw: st.DrawFn, relation: Relation, depth: int, is_multiline: bool
) -> tuple[Throwable, ...]:
    first = draw(_throwables(relation, depth, is_multiline))
    causes = draw(st.lists(_throwables("cause", depth, is_multiline), max_size=2))
    return (first, *causes)


def traces(suppressed_depth: int = 2, is_multiline: bool = True) -> st.SearchStrategy[StackTrace]:
    return chains("thrown", suppressed_depth, is_multiline).map(StackTrace)
