"""What is said of the history of a warehouse: two periods compared, and causes that come back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal


@dataclass(frozen=True, slots=True)
class Period:
    """What is compared: all that one run found, or events of [start, end), either end open."""

    name: str
    run_id: str | None = None
    start: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True, slots=True)
class CauseChange:
    """One cause in one deployment, before and after.

    ``cause`` is a signature id, or a root-cause fingerprint where ``title`` names the exception.
    Counts are of events; the rates, per hour with logs, are ``None`` when runs are compared.
    ``no logs`` says that one side holds no log of the deployment, so that nothing can be said.
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
    """An effective option that differs; ``None`` where it is not printed."""

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
    """One cause over all that a warehouse has seen.

    ``is_new`` says that no run before the newest one knew it.
    """

    cause: str
    title: str
    is_new: bool
    first_seen_at: datetime | None
    last_seen_at: datetime | None
    days: int
    count: int
    deployments: tuple[str, ...]
