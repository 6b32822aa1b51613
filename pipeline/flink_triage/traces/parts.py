"""Names the connector, library or part of Flink that a class belongs to.

The name shows people which issue tracker and which version to look at.
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
    """``the Kafka connector`` for one of its classes; a shaded copy counts as the shaded library.

    ``None`` for classes of the JDK, of users, and of libraries without a name in ``packages.tsv``.
    """
    shaded = SHADED.search(class_name)
    if shaded is not None:
        return part_of(class_name[shaded.end() :])
    best = ""
    for prefix in PARTS:
        if len(prefix) > len(best) and class_name.startswith(prefix):
            best = prefix
    return PARTS.get(best)
