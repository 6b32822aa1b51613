"""The status of an incident since the last run is one word in the heading of the incident."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest

from flink_triage.report import Format, render
from tests.unit.report import examples

FORMATS: tuple[Format, ...] = ("text", "markdown", "html")


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("status", ["new", "ongoing", "worse", "resolved"])
@pytest.mark.parametrize("name", ["diagnosed", "undetermined"])
def test_the_status_is_shown_where_runs_are_kept(
    name: str, status: Literal["new", "ongoing", "worse", "resolved"], format_: Format
) -> None:
    result = examples.ALL[name]()
    with_status = replace(
        result, incidents=tuple(replace(i, status=status) for i in result.incidents)
    )
    shown = f'<span class="status">{status}</span>' if format_ == "html" else f"{status} · "
    assert shown in " ".join(render(with_status, format_).split())
    assert shown not in " ".join(render(result, format_).split())
