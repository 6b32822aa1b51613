"""Results from the history of a warehouse: comparisons of two periods, and recurring causes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal


@dataclass(frozen=True, slots=True)
class Period:
    """One side of a comparison: the results of one run, or the events of [start, end).

    Without ``start`` or ``end``, the period is open on that side.
    """

    name: str
    run_id: str | None = None
    start: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True, slots=True)
class CauseChange:
    """One cause in one deployment, compared between two periods or runs.

    ``cause`` is a signature ID or a root cause fingerprint; for a fingerprint, ``title`` is the
    exception type, if known. Counts are numbers of events. Rates are per hour with logs; they are
    ``None`` for a run, and for a period without logs. ``no logs`` means that the sides cannot be
    compared: a window has no log line of the deployment with a timestamp, or a run did not diagnose
    the deployment.
    """

    deployment: str
    cause: str
    title: str
    change: Literal["new", "worse", "same", "better", "gone", "no logs"]
    before: int
    after: int
    before_per_hour: float | None = None
    after_per_hour: float | None = None


@dataclass(frozen=True, slots=True)
class OptionChange:
    """A config option whose effective value differs; ``None`` for a side that does not log it."""

    deployment: str
    key: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Comparison:
    before: Period
    after: Period
    causes: tuple[CauseChange, ...]
    options: tuple[OptionChange, ...]


@dataclass(frozen=True, slots=True)
class Recurrence:
    """One cause over the whole history of a warehouse.

    ``is_new`` means that only the latest run found the cause. ``days`` is the number of days on
    which it occurred.
    """

    cause: str
    title: str
    is_new: bool
    first_seen_at: datetime | None
    last_seen_at: datetime | None
    days: int
    count: int
    deployments: tuple[str, ...]
