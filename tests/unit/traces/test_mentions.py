"""Finds throwables that are mentioned in a sentence."""

from __future__ import annotations

import pytest

from flink_triage.traces import mentioned

LARGE = "The message is 9 bytes"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            f"the web UI shows RecordTooLargeException: {LARGE}",
            [("RecordTooLargeException", LARGE)],
        ),
        (f"it ends with `a.b.LargeException: {LARGE}`", [("a.b.LargeException", LARGE)]),
        (f"**Error:** \u201cLargeException\u201d: {LARGE}.", [("LargeException", f"{LARGE}.")]),
        (f"LargeException {LARGE}", [("LargeException", LARGE)]),
        (
            "JobException: x, caused by java.io.IOException: y",
            [("JobException", "x, caused by"), ("java.io.IOException", "y")],
        ),
        ("Exception handling is an Error of design", []),
        ("com.acme.LargeExceptionHandler", []),
    ],
)
def test_throwables_mentioned_in_a_sentence(text: str, expected: list[tuple[str, str]]) -> None:
    found = mentioned(text)
    throwables = found.throwables if found is not None else ()
    assert [(t.type, t.message) for t in throwables] == expected
