"""An observation with its time and job, as context rules, episodes, and ranking use it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from flink_triage.model import Match, Observation

# The time of moments in a file without timestamps; sorts before all real times.
NO_TIME = datetime(2, 1, 1, tzinfo=UTC)
_MAX_EXCERPT_CHARS = 400


@dataclass(frozen=True, slots=True)
class Moment:
    """An observation with its job and the time by which it is ordered.

    ``at`` is the time of the event. An event without a time takes that of the nearest timed event
    before it in its file, or else that of the first timed event. If the file's clock is known to be
    wrong, ``at`` is converted to the JobManager's clock. It is ``NO_TIME`` if the file has no
    timestamps, unless a context rule infers the time.

    A witness (``occurrences`` is 0) is not counted as an event. For example, it contains the name
    of a job, shows that a log without notable events was read, or is next to an event of interest.

    Context rules (``diagnosis/context``) set the fields after ``job_id``. ``withheld`` contains the
    original matches if `reinterpreted` replaced them; the next diagnosis starts with them again.
    ``is_stop`` means that the line is an effect of an orderly shutdown, and not a fault.
    ``is_handled`` means that user code logged an exception or a failure message that did not fail a
    job. ``is_text`` means that the line is prose, and not a log line.
    """

    observation: Observation
    at: datetime
    job_id: str | None = None
    withheld: tuple[Match, ...] | None = None
    is_stop: bool = False
    is_handled: bool = False
    is_text: bool = False

    @property
    def is_witness(self) -> bool:
        return self.observation.occurrences == 0

    @property
    def time(self) -> datetime | None:
        """``at``, or ``None`` if the file has no timestamps."""
        return None if self.at == NO_TIME else self.at

    @property
    def until(self) -> datetime:
        """The time of the last event that the observation counts."""
        first, last = self.observation.event.logged_at, self.observation.last_logged_at
        return self.at if first is None or last is None else self.at + (last - first)

    @property
    def kind(self) -> str | None:
        """The kind of the lifecycle line; ``None`` for other lines and for witnesses."""
        lifecycle = self.observation.event.lifecycle
        return lifecycle.kind if lifecycle is not None and not self.is_witness else None

    @property
    def to_state(self) -> str | None:
        lifecycle = self.observation.event.lifecycle
        return lifecycle.to_state if lifecycle is not None and not self.is_witness else None

    def reinterpreted(self, matches: tuple[Match, ...], at: datetime | None = None) -> Moment:
        """The moment with other matches, and with the time ``at`` if it is given.

        ``withheld`` keeps the original matches. ``is_stop`` becomes false.
        """
        return replace(
            self,
            observation=replace(self.observation, matches=matches),
            at=self.at if at is None else at,
            withheld=self.observation.matches if self.withheld is None else self.withheld,
            is_stop=False,
        )


def inferred_matches(observation: Observation, signatures: Iterable[str]) -> tuple[Match, ...]:
    """Matches of inferred signatures; the excerpt is the first line of the message."""
    excerpt = observation.event.message.split("\n", 1)[0][:_MAX_EXCERPT_CHARS]
    return tuple(Match(signature, 0, {}, excerpt) for signature in signatures)
