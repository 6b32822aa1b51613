"""The graph of causes and effects, and the overview of incidents per job over time."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from flink_triage.model import Incident
from flink_triage.report.drawings.cause_graph import graph_of
from flink_triage.report.drawings.job_lanes import overview_of
from tests.unit.report import examples


def incident(**explains: tuple[str, ...]) -> Incident:
    diagnoses = tuple(
        replace(examples.disk_full(), rank=rank, signature=name, title=name, explains=effects)
        for rank, (name, effects) in enumerate(explains.items(), start=1)
    )
    return replace(examples.diagnosed_incident(), diagnoses=diagnoses)


def edges(of: Incident) -> list[str]:
    graph = graph_of(of)
    assert graph is not None
    return [edge.title for edge in graph.edges]


def columns(of: Incident) -> dict[int, int]:
    graph = graph_of(of)
    assert graph is not None
    steps = sorted({node.x for node in graph.nodes})
    return {node.rank: steps.index(node.x) for node in graph.nodes}


def test_edge_implied_by_a_longer_path_is_not_drawn() -> None:
    chain = incident(a=("b", "c"), b=("c",), c=())
    assert edges(chain) == ["1 led to 2", "2 led to 3"]
    assert columns(chain) == {1: 0, 2: 1, 3: 2}


def test_effects_of_one_cause_are_drawn_below_each_other() -> None:
    graph = graph_of(incident(a=("b", "c"), b=(), c=()))
    assert graph is not None
    assert columns(incident(a=("b", "c"), b=(), c=())) == {1: 0, 2: 1, 3: 1}
    assert len({(node.x, node.y) for node in graph.nodes}) == 3


def test_cycle_is_drawn_and_does_not_hang() -> None:
    circle = incident(a=("b",), b=("c",), c=("a",))
    assert len(edges(circle)) == 3
    graph = graph_of(circle)
    assert graph is not None
    assert max(node.x for node in graph.nodes) < graph.width < 400


def test_a_diagnosis_that_is_linked_to_nothing_is_left_to_the_list() -> None:
    assert sorted(columns(incident(a=("b",), b=(), lonely=("not-seen",)))) == [1, 2]
    assert graph_of(incident(a=("not-seen",))) is None


def test_a_dense_graph_costs_little() -> None:
    names = [f"s{number:02}" for number in range(40)]
    dense = incident(**{name: tuple(names[n + 1 :]) for n, name in enumerate(names)})
    assert edges(dense) == [f"{rank} led to {rank + 1}" for rank in range(1, 24)]


def test_each_job_has_a_lane_and_each_incident_a_bar_from_fault_to_end() -> None:
    first = replace(examples.diagnosed_incident(), outcome="ongoing")
    begun = first.first_fault
    assert begun is not None
    assert begun.at is not None
    later = replace(
        first,
        first_fault=replace(begun, at=begun.at + timedelta(hours=1)),
        ended_at=begun.at + timedelta(hours=2),
        outcome="recovered",
    )
    drawn = overview_of([first, later, replace(first, deployment="other")], limit=9)
    assert drawn is not None
    assert [(lane.name, len(lane.bars)) for lane in drawn.lanes] == [
        ("orders-prod orders-totals", 2),
        ("other orders-totals", 1),
    ]
    early, late = drawn.lanes[0].bars
    assert (early.x, late.x, late.end, late.width) == ("1.00%", "50.00%", "99.00%", "49.00%")
    assert (early.outcome, late.outcome) == ("ongoing", "recovered")


def test_lanes_that_are_not_drawn_are_counted() -> None:
    many = [replace(examples.diagnosed_incident(), deployment=f"d{n}") for n in range(5)]
    drawn = overview_of(many, limit=2)
    assert drawn is not None
    assert (len(drawn.lanes), drawn.lanes_left_out) == (2, 3)
    assert overview_of(many[:1], limit=2) is None
