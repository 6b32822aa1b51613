"""A class name in, the connector, library or part of Flink that it belongs to out, by name.

For people: whose tracker to search, whose version to look up.
"""

from __future__ import annotations

from functools import lru_cache

from flink_triage.traces.frames import SHADED
from flink_triage.traces.packages import PARTS


def simple_name(class_name: str) -> str:
    """``BadBlock`` for ``org.acme.Store$BadBlock``."""
    return class_name.rpartition(".")[2].rpartition("$")[2]


@lru_cache(maxsize=8192)
def part_of(class_name: str) -> str | None:
    """``the Kafka connector`` for a class of it; a shaded copy is the library that was shaded.

    ``None`` for classes of the JDK, of users and of libraries that have no name here.
    """
    shaded = SHADED.search(class_name)
    if shaded is not None:
        return part_of(class_name[shaded.end() :])
    best = ""
    for prefix in PARTS:
        if len(prefix) > len(best) and class_name.startswith(prefix):
            best = prefix
    return PARTS.get(best)
