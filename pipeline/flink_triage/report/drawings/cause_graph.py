"""Draws the causal relations between the diagnoses of an incident.

Nodes are labeled only with the ranks in the adjacent list, so that the drawing fits on a phone
screen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flink_triage.model import Diagnosis, Incident

_COLUMN, _ROW, _RADIUS = 64, 40, 13
# With more nodes, a drawing would be too large; the list contains the others.
_MAX_NODES = 24


@dataclass(frozen=True, slots=True)
class Node:
    x: int
    y: int
    rank: int
    title: str


@dataclass(frozen=True, slots=True)
class Edge:
    """An SVG path from the right edge of one node to the left edge of another."""

    path: str
    title: str


@dataclass(frozen=True, slots=True)
class Graph:
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    width: int
    height: int


def graph_of(incident: Incident) -> Graph | None:
    """The graph, with causes to the left of their effects; ``None`` if it has no edges."""
    diagnoses = incident.diagnoses[:_MAX_NODES]
    shown = {diagnosis.signature: diagnosis for diagnosis in diagnoses}
    edges = [
        (diagnosis, shown[effect])
        for diagnosis in shown.values()
        for effect in dict.fromkeys(diagnosis.explains)
        if effect in shown and effect != diagnosis.signature
    ]
    if not edges:
        return None
    edges = _direct(edges)
    linked = {end.signature for edge in edges for end in edge}
    columns = _columns([d for d in shown.values() if d.signature in linked], edges)
    places = _places(columns)
    nodes = tuple(
        Node(*places[signature], shown[signature].rank, shown[signature].title)
        for signature in sorted(linked, key=lambda name: shown[name].rank)
    )
    return Graph(
        nodes=nodes,
        edges=tuple(_edge(places[a.signature], places[b.signature], a, b) for a, b in edges),
        width=max(node.x for node in nodes) + _RADIUS + 3,
        height=max(node.y for node in nodes) + _RADIUS + 3,
    )


def _direct(edges: Sequence[tuple[Diagnosis, Diagnosis]]) -> list[tuple[Diagnosis, Diagnosis]]:
    """The edges that are not shortcuts of a longer path; ``explains`` includes indirect effects."""
    following: dict[str, set[str]] = {}
    for cause, effect in edges:
        following.setdefault(cause.signature, set()).add(effect.signature)

    def is_shortcut(cause: str, effect: str) -> bool:
        """Whether ``effect`` can be reached from ``cause`` through another diagnosis."""
        seen, waiting = {cause}, sorted(following[cause] - {effect})
        while waiting:
            step = waiting.pop()
            if step == effect:
                return True
            if step not in seen:
                seen.add(step)
                waiting.extend(following.get(step, ()))
        return False

    return [(a, b) for a, b in edges if not is_shortcut(a.signature, b.signature)]


def _columns(
    diagnoses: Sequence[Diagnosis], edges: Sequence[tuple[Diagnosis, Diagnosis]]
) -> Mapping[str, int]:
    """The column of each diagnosis: the length of the longest path from a cause.

    The length is limited, because edges may form a cycle.
    """
    column = dict.fromkeys((diagnosis.signature for diagnosis in diagnoses), 0)
    for _ in diagnoses:
        moved = False
        for cause, effect in edges:
            wanted = min(column[cause.signature] + 1, len(diagnoses) - 1)
            if column[effect.signature] < wanted:
                column[effect.signature], moved = wanted, True
        if not moved:
            break
    # A cycle pushes its members to the last column; empty columns are removed.
    order = {number: index for index, number in enumerate(sorted(set(column.values())))}
    return {signature: order[number] for signature, number in column.items()}


def _places(columns: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    filled: dict[int, int] = {}
    places = {}
    for signature, column in columns.items():
        row = filled.get(column, 0)
        filled[column] = row + 1
        places[signature] = (_RADIUS + 3 + column * _COLUMN, _RADIUS + 3 + row * _ROW)
    return places


def _edge(start: tuple[int, int], end: tuple[int, int], a: Diagnosis, b: Diagnosis) -> Edge:
    """A curve; if it crosses other columns within one row, it runs below their nodes."""
    x, y, to_x, to_y = start[0] + _RADIUS, start[1], end[0] - _RADIUS - 4, end[1]
    bend = max(18, (to_x - x) // 2)
    dip = _ROW // 2 if y == to_y and end[0] - start[0] > _COLUMN else 0
    path = f"M{x} {y}C{x + bend} {y + dip} {to_x - bend} {to_y + dip} {to_x} {to_y}"
    path += f"M{to_x - 5} {to_y - 4}L{to_x} {to_y}L{to_x - 5} {to_y + 4}"
    return Edge(path, f"{a.rank} led to {b.rank}")
