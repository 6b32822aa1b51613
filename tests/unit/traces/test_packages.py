"""Each prefix in ``packages.tsv`` occurs once, in order, and without contradictions."""

from __future__ import annotations

from typing import get_args

import pytest

from flink_triage.log_product import product_of
from flink_triage.model import Origin, Process
from flink_triage.traces import origin_of, part_of
from flink_triage.traces.packages import ORIGINS, PARTS, PROCESSES, PRODUCTS, ROWS

PREFIXES = [row["prefix"] for row in ROWS]


def test_prefixes_are_sorted_and_each_stands_once() -> None:
    assert sorted(set(PREFIXES)) == PREFIXES


def test_every_row_classifies_its_prefix_with_known_values() -> None:
    assert [row["prefix"] for row in ROWS if not any([*row.values()][1:5])] == []
    assert ORIGINS.keys() == {*get_args(Origin)} - {"native"}
    assert PRODUCTS.keys() == {"other", "server"}
    assert PROCESSES.keys() <= {*get_args(Process)}
    assert {tuple(row) for row in ROWS} == {
        ("prefix", "origin", "part", "product", "process", "note")
    }


@pytest.mark.parametrize("origin", ORIGINS)
def test_longest_prefix_determines_the_origin(origin: Origin) -> None:
    wrong = {p: origin_of(f"{p}X") for p in ORIGINS[origin] if origin_of(f"{p}X") != origin}
    assert wrong == {}


def test_longest_prefix_determines_the_part() -> None:
    wrong = {p: part_of(f"{p}X") for p, name in PARTS.items() if part_of(f"{p}X") != name}
    assert wrong == {}


def test_a_logger_of_another_product_is_not_flinks() -> None:
    loggers = [*PRODUCTS["other"], *PRODUCTS["server"]]
    wrong = [p for p in loggers if product_of(f"{p}X", "failed", None) != "other"]
    assert wrong == []


def test_a_name_that_only_begins_like_a_prefix_is_not_of_it() -> None:
    assert origin_of("org.apachetrip.Guide") == "user"
    assert origin_of("com.acme.org.apache.flink.Fake") == "user"
