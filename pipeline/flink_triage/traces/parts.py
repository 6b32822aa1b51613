"""Determines the connector, library, or part of Flink to which a class belongs.

The name indicates which issue tracker and which version to check.
"""

from __future__ import annotations

from functools import lru_cache

from flink_triage.traces.frames import SHADED
from flink_triage.traces.packages import PARTS


def simple_name(class_name: str) -> str:
    """The simple class name, such as ``BadBlock`` for ``org.acme.Store$BadBlock``."""
    return class_name.rpartition(".")[2].rpartition("$")[2]


@lru_cache(maxsize=8192)
def part_of(class_name: str) -> str | None:
    """The part to which a class belongs, such as ``the Kafka connector``.

    A shaded class belongs to the part of the original class. ``None`` if ``packages.tsv`` contains
    no part for the class, as for user code.
    """
    shaded = SHADED.search(class_name)
    if shaded is not None:
        return part_of(class_name[shaded.end() :])
    best = ""
    for prefix in PARTS:
        if len(prefix) > len(best) and class_name.startswith(prefix):
            best = prefix
    return PARTS.get(best)
