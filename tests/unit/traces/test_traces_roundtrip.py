"""A stack trace can be parsed from quoted, indented, flattened, or wrapped text."""

from __future__ import annotations

import re

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from flink_triage.model import StackTrace, Throwable
from flink_triage.traces import expand_frames, extract, fingerprint, render
from tests.unit.traces.trace_strategies import traces

FEW = settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
PLAIN = traces(suppressed_depth=0, is_multiline=False)


def parse(text: str) -> StackTrace | None:
    _, trace = extract("Task failed.", text)
    return trace


@FEW
@given(traces())
def test_canonical_text_gives_the_trace_back(trace: StackTrace) -> None:
    assert extract("Task failed.", render(trace)) == ("Task failed.", trace)


@FEW
@given(traces(), st.sampled_from(["> ", "  ", "    > ", "\t"]))
def test_quoted_or_indented(trace: StackTrace, prefix: str) -> None:
    assert parse("\n".join(prefix + line for line in render(trace).split("\n"))) == trace


@FEW
@given(PLAIN)
def test_without_indentation(trace: StackTrace) -> None:
    assert parse("\n".join(line.strip() for line in render(trace).split("\n"))) == trace


@FEW
@given(PLAIN)
def test_with_blank_lines(trace: StackTrace) -> None:
    assert parse(render(trace).replace("\n", "\n\n")) == trace


@FEW
@given(PLAIN, st.sampled_from(["|", "\\n", "\\r\\n", "#012", " | ", " "]))
def test_flattened_to_one_line(trace: StackTrace, separator: str) -> None:
    text = render(trace)
    if separator == "\\n":
        text = text.replace("\t", "\\t")
    message, parsed = extract("Task failed. " + text.replace("\n", separator), None)
    assert parsed == trace
    assert message == "Task failed."


@FEW
@given(PLAIN, st.integers(60, 100))
@example(
    StackTrace((Throwable("java.io.IOException", "x"),)),
    60,
)
def test_frames_wrapped_at_a_column(trace: StackTrace, width: int) -> None:
    wrapped: list[str] = []
    for line in render(trace).split("\n"):
        if line.startswith("\tat "):
            wrapped.extend(re.findall(f".{{1,{width}}}", line))
        else:
            wrapped.append(line)
    parsed = parse("\n".join(wrapped))
    assert parsed is not None
    assert [t.type for t in parsed.throwables] == [t.type for t in trace.throwables]
    assert [[(f.class_name, f.method, f.line) for f in t.frames] for t in parsed.throwables] == [
        [(f.class_name, f.method, f.line) for f in t.frames] for t in trace.throwables
    ]


@FEW
@given(traces(suppressed_depth=1))
def test_fingerprint_is_that_of_the_plain_form(trace: StackTrace) -> None:
    plain = re.sub(r"org\.apache\.flink\.util\.SerializedThrowable: ", "", render(trace))
    parsed = parse(plain)
    assert parsed is not None
    assert fingerprint(parsed) == fingerprint(trace)


@FEW
@given(traces(suppressed_depth=1))
def test_expanded_frames_start_with_the_printed_ones(trace: StackTrace) -> None:
    for throwable, frames in zip(trace.throwables, expand_frames(trace), strict=True):
        assert frames[: len(throwable.frames)] == throwable.frames
        assert len(frames) <= len(throwable.frames) + throwable.omitted_frame_count


@FEW
@given(st.text(st.sampled_from("at (.)\n\tCaused by:Exception|\\>x1~[]"), max_size=300))
def test_no_text_makes_extraction_raise(text: str) -> None:
    message, trace = extract(text[:20], text[20:])
    assert isinstance(message, str)
    if trace is not None:
        assert trace.throwables
        fingerprint(trace)
        render(trace)
