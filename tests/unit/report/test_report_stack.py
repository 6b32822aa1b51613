"""Stack traces on the page: collapsed frames, original text, origins, and ``... n more``."""

from __future__ import annotations

import re

import pytest

from flink_triage.diagnosis.incidents.cited_traces import cut_trace
from flink_triage.report.facts.folded_stack import blocks_of

TRACE = """\
org.apache.flink.util.FlinkException: outer
\tat org.apache.flink.A.a(A.java:1)
\tat org.apache.flink.B.b(B.java:2)
\tat java.lang.Thread.run(Thread.java:840) ~[?:?]
Caused by: java.lang.RuntimeException: middle
with a second line
\tat org.apache.flink.C.c(C.java:3) ~[flink-dist-2.1.1.jar:2.1.1]
\tat org.apache.flink.C.d(C.java:4)
\tat org.apache.flink.C.e(C.java:5)
\tat org.apache.flink.C.f(C.java:6)
\tat org.apache.flink.C.g(C.java:7)
\tat com.acme.Job.map(Job.java:8)
\t... 2 more
\tSuppressed: java.io.IOException: aside
\t\tat com.acme.Job.close(Job.java:9)
\t\t... 1 more
Caused by: java.lang.NullPointerException: null
\tat com.acme.Job.inner(Job.java:10)
\t... 3 more"""


def lines(frames) -> list[str]:
    return [frame.text.partition("(")[0].removeprefix("at ") for frame in frames]


def test_each_throwable_is_a_block_with_all_lines_of_its_message() -> None:
    assert [block.header for block in blocks_of(TRACE)] == [
        "org.apache.flink.util.FlinkException: outer",
        "Caused by: java.lang.RuntimeException: middle\nwith a second line",
        "Suppressed: java.io.IOException: aside",
        "Caused by: java.lang.NullPointerException: null",
    ]


def test_frames_of_the_user_and_the_first_stay_in_sight_a_long_run_of_others_is_folded() -> None:
    outer, middle, _, _ = blocks_of(TRACE)
    assert [run.is_folded for run in outer.runs] == [False]
    assert [(run.is_folded, lines(run.frames)) for run in middle.runs] == [
        (False, ["org.apache.flink.C.c"]),
        (True, [f"org.apache.flink.C.{name}" for name in "defg"]),
        (False, ["com.acme.Job.map"]),
    ]
    assert middle.runs[1].summary == "4 frames of flink"
    assert [frame.origin for frame in middle.runs[2].frames] == ["user"]


def test_more_line_expands_to_the_frames_of_the_enclosing_throwable() -> None:
    assert [(block.more, lines(block.omitted)) for block in blocks_of(TRACE)] == [
        (None, []),
        ("... 2 more", ["org.apache.flink.B.b", "java.lang.Thread.run"]),
        ("... 1 more", ["java.lang.Thread.run"]),
        ("... 3 more", ["com.acme.Job.map", "org.apache.flink.B.b", "java.lang.Thread.run"]),
    ]


@pytest.mark.parametrize("text", ["", "no trace at all", "java.lang.Exception: no frames", "\n\n"])
def test_text_without_frames_has_no_blocks(text: str) -> None:
    assert blocks_of(text) == ()


def test_more_line_without_enclosing_frames_is_kept_but_not_expanded() -> None:
    (block,) = blocks_of("java.lang.Exception: x\n\tat com.acme.A.a(A.java:1)\n\t... 9 more")
    assert (block.more, block.omitted) == ("... 9 more", ())


def test_long_trace_keeps_its_root_cause_and_counts_omitted_characters() -> None:
    text = "\n".join(["head", *(f"\tat com.acme.A.a(A.java:{n})" for n in range(900)), "root"])
    cut = cut_trace(text, 2000)
    assert len(cut) < 2100
    assert cut.startswith("head\n")
    assert cut.endswith("\nroot")
    missing = int(re.search(r"\n\[([\d,]+) characters omitted\]\n", cut)[1].replace(",", ""))
    assert missing == len(text) - len(cut.replace(f"\n[{missing:,} characters omitted]\n", ""))
    assert cut_trace(text, len(text)) == text
