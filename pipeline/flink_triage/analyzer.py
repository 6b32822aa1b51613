"""Analyzes the events of byte ranges; both runners use this module.

Create one ``Analyzer`` per process. It keeps objects that are expensive to create: the compiled
scanner and matcher, and the analyses of earlier events.
"""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import BinaryIO

from flink_triage.fold_grains import grains_of
from flink_triage.log_product import product_of, product_of_thread
from flink_triage.logs.layouts.header_shape import is_json
from flink_triage.logs.lifecycle import LITERALS, attempt_of_execution, job_id_in_text, task_in_text
from flink_triage.logs.readers.block_reader import BLOCK_BYTES
from flink_triage.logs.readers.byte_account import Tally
from flink_triage.logs.readers.repeated_events import Counted, Repeats
from flink_triage.logs.readers.scan import Scanner
from flink_triage.model import (
    ByteRange,
    Event,
    Fingerprint,
    Observation,
    Process,
    RangeScan,
    SkippedSignature,
    StackTrace,
    TraceCount,
    TraceRow,
)
from flink_triage.reach import Spread, Subtask
from flink_triage.recurrence import Analysis, Recurrences, line_offset, outline_of, repeats_of
from flink_triage.settings import DEFAULT_SETTINGS, Settings
from flink_triage.signatures import Matcher, SignaturePack, load_pack
from flink_triage.traces import extract, fingerprint, first_user_frame

# Maximum number of cached analyses; each takes a few KB.
_CACHE_ENTRIES = 1024


@dataclass(frozen=True, slots=True)
class Portion:
    """The results for some events; ``recurring`` counts the traces that the caller already has."""

    observations: tuple[Observation, ...]
    traces: tuple[TraceRow, ...]
    recurring: tuple[TraceCount, ...]

    @property
    def fingerprints(self) -> set[str]:
        """The full fingerprints of all traces."""
        with_text = {row.fingerprint.full for row in self.traces}
        return with_text.union(row.fingerprint.full for row in self.recurring)

    @property
    def trace_count(self) -> int:
        """The number of events with a stack trace."""
        return sum(row.count for row in self.traces) + sum(row.count for row in self.recurring)


@dataclass(frozen=True, slots=True)
class RangeResult(Portion):
    """All results for one byte range; ``scan.events`` is empty, see ``observations``."""

    scan: RangeScan


class Analyzer:
    """Scans, parses, fingerprints, and matches one byte range at a time.

    If ``is_recalling`` is false, every notable event is parsed and matched individually. This is
    much slower, but defines the correct result.
    """

    def __init__(
        self,
        pack: SignaturePack | Sequence[Path],
        settings: Settings = DEFAULT_SETTINGS,
        default_timezone: tzinfo = UTC,
        *,
        is_recalling: bool = True,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        self.pack = pack if isinstance(pack, SignaturePack) else load_pack(pack)
        self._settings = settings
        self._timezone = default_timezone
        self._scanner = Scanner((*LITERALS, *self.pack.anchors), settings, block_bytes=block_bytes)
        self._matcher = Matcher(self.pack, settings)
        self._recurrences = Recurrences(self.pack, settings) if is_recalling else None
        self.repeats = repeats_of(self.pack, settings) if is_recalling else None
        self._cache: OrderedDict[tuple[object, ...], Analysis] = OrderedDict()
        self.recalled_count = 0

    @property
    def skipped(self) -> tuple[SkippedSignature, ...]:
        """Signatures with regex timeouts in this process, and disabled signatures."""
        return self._matcher.skipped

    def analyze(
        self, byte_range: ByteRange, *, is_active: bool = False, known_traces: Container[str] = ()
    ) -> RangeResult:
        """All results for the range, with one observation per notable event; see ``read``."""
        tally = Tally(is_whole=True)
        (whole,) = self.read(
            byte_range, tally, is_active=is_active, known_traces=known_traces, coarseness=None
        )
        return RangeResult(
            whole.observations, whole.traces, whole.recurring, tally.finish(byte_range)
        )

    def read(
        self,
        byte_range: ByteRange,
        tally: Tally,
        *,
        is_active: bool = False,
        known_traces: Container[str] = (),
        raw: BinaryIO | None = None,
        coarseness: int | None = 0,
    ) -> Iterator[Portion]:
        """Yield the results for the range in portions; ``tally`` accounts for every byte.

        ``coarseness`` is the index of the grain (see ``grains_of``) by which the caller folds the
        observations. Repeated events that this grain only counts may be counted without being
        analyzed; ``None`` disables this. Traces whose full fingerprints are in ``known_traces`` are
        only counted. To receive each trace once, add the fingerprints of each portion to
        ``known_traces`` before you request the next portion. If the file is already open, pass it
        as ``raw``, positioned at its start; it is left open. Use ``collector_at_rest`` around
        calls.
        """
        repeats, grain = None, None
        if self.repeats is not None and coarseness is not None:
            repeats = self.repeats
            repeats.forget_range()
            grain = grains_of(self._settings.max_observations_per_key)[coarseness]
        portions = self._scanner.read(
            byte_range,
            tally,
            is_active=is_active,
            default_timezone=self._timezone,
            raw=raw,
            repeats=repeats,
            grain=grain,
        )
        for events in portions:
            yield self._portion_of(events, byte_range, known_traces, repeats)

    def _portion_of(
        self,
        events: Iterable[Event],
        byte_range: ByteRange,
        known_traces: Container[str],
        repeats: Repeats | None,
    ) -> Portion:
        traces: dict[str, _Seen] = {}
        observations = []
        process = byte_range.profile.process
        counts = repeats.take_counts() if repeats is not None else {}
        for event in events:
            analysis = self.analyze_event(event, process)
            if analysis.fingerprint is not None:
                _count_trace(traces, event, analysis.trace, analysis.fingerprint, known_traces)
            observation = _observation(event, analysis, byte_range)
            if repeats is not None:
                repeats.learn(observation)
            counted = counts.get(event.offset)
            if counted is not None:
                observation = _with_counted(observation, counted)
                if analysis.fingerprint is not None:
                    traces[analysis.fingerprint.full].add_counted(counted)
            observations.append(observation)
        if is_json(byte_range.profile.layout):
            observations = [_on_one_line(o) for o in observations]
        return Portion(
            tuple(observations),
            tuple(seen.row(seen.trace) for seen in traces.values() if seen.trace is not None),
            tuple(seen.counted() for seen in traces.values() if seen.trace is None),
        )

    def events(self, byte_range: ByteRange) -> tuple[Event, ...]:
        """The notable events of a range, without analyzing them."""
        return self._scanner.scan(byte_range, default_timezone=self._timezone).events

    def observe(self, event: Event, byte_range: ByteRange) -> Observation:
        """The observation of one event."""
        analysis = self.analyze_event(event, byte_range.profile.process)
        return _observation(event, analysis, byte_range)

    def analyze_event(self, event: Event, process: Process | None) -> Analysis:
        """The analysis of an event; without ``trace`` if recalled from a similar event."""
        if self._recurrences is None:
            return self._analyze_anew(event, process)
        outline = outline_of(event, process)
        recalled = self._recurrences.recall(event, outline)
        if recalled is not None:
            self.recalled_count += 1
            return recalled
        key = (event.level, event.logger, event.message, event.continuation, process)
        analysis = self._cache.get(key)
        if analysis is None:
            analysis = self._cache[key] = self._analyze_anew(event, process)
            if len(self._cache) > _CACHE_ENTRIES:
                self._cache.popitem(last=False)
        else:
            self._cache.move_to_end(key)
        self._recurrences.learn(event, outline, process, analysis)
        return analysis

    def _analyze_anew(self, event: Event, process: Process | None) -> Analysis:
        message, trace = extract(event.message, event.continuation)
        matches = self._matcher.match(event, message, trace, process)
        user_frame = first_user_frame(trace) if trace is not None else None
        root = trace.root_cause if trace is not None else None
        return Analysis(
            message=message,
            trace=trace,
            fingerprint=fingerprint(trace) if trace is not None else None,
            first_user_frame=f"{user_frame.class_name}.{user_frame.method}" if user_frame else None,
            product=product_of(event.logger, message, trace),
            exception_type=trace.thrown.type if trace is not None else None,
            root_cause_type=root.type if root is not None else None,
            root_cause_message=root.message[:2000] if root is not None else None,
            has_frames=trace is None or any(t.frames for t in trace.throwables),
            task=task_in_text(message) or _task_of_trace(trace),
            job_id=job_id_in_text(message),
            matches=tuple(replace(m, line_offset=line_offset(event, m.excerpt)) for m in matches),
        )


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Disable garbage collection while many long-lived values are created; saves 20 % of time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _Seen:
    """A distinct trace of a portion and its count; ``trace`` is ``None`` if the caller has it."""

    __slots__ = ("_exemplar", "_fingerprint", "count", "first_seen_at", "last_seen_at", "trace")

    def __init__(self, event: Event, trace: StackTrace | None, identity: Fingerprint) -> None:
        self._fingerprint = identity
        self.trace = trace
        self._exemplar = event.continuation if event.continuation else event.message
        self.count = 1
        self.first_seen_at = self.last_seen_at = event.logged_at

    def add(self, at: datetime | None) -> None:
        self.count += 1
        self.first_seen_at = earliest(self.first_seen_at, at)
        self.last_seen_at = latest(self.last_seen_at, at)

    def add_counted(self, counted: Counted) -> None:
        self.count += counted.events
        self.first_seen_at = earliest(self.first_seen_at, counted.first_logged_at)
        self.last_seen_at = latest(self.last_seen_at, counted.last_logged_at)

    def row(self, trace: StackTrace) -> TraceRow:
        return TraceRow(
            self._fingerprint,
            trace,
            self._exemplar,
            self.count,
            self.first_seen_at,
            self.last_seen_at,
        )

    def counted(self) -> TraceCount:
        return TraceCount(self._fingerprint, self.count, self.first_seen_at, self.last_seen_at)


def _count_trace(
    traces: dict[str, _Seen],
    event: Event,
    trace: StackTrace | None,
    identity: Fingerprint,
    known_traces: Container[str],
) -> None:
    known = traces.get(identity.full)
    if known is not None:
        known.add(event.logged_at)
        return
    if identity.full in known_traces:
        trace = None
    elif trace is None:
        _, trace = extract(event.message, event.continuation)
        assert trace is not None  # it has a fingerprint
    traces[identity.full] = _Seen(event, trace, identity)


def earliest(a: datetime | None, b: datetime | None) -> datetime | None:
    return min(a, b) if a is not None and b is not None else a or b


def latest(a: datetime | None, b: datetime | None) -> datetime | None:
    return max(a, b) if a is not None and b is not None else a or b


def _observation(event: Event, analysis: Analysis, byte_range: ByteRange) -> Observation:
    lifecycle = event.lifecycle
    job_id = event.job_id
    named = None
    key = None
    if lifecycle is not None:
        job_id = lifecycle.job_id or job_id
        key = lifecycle.key
        if lifecycle.task is not None:
            named = lifecycle.task, lifecycle.subtask, lifecycle.parallelism, lifecycle.attempt
    task, subtask, parallelism, attempt = named or analysis.task or _no_task(event)
    if attempt is None and lifecycle is not None:
        attempt = attempt_of_execution(key)
    if job_id is None:
        job_id = analysis.job_id
    profile = byte_range.profile
    return Observation(
        byte_range.deployment,
        Event(
            event.path,
            event.offset,
            event.size_bytes,
            event.line,
            event.logged_at,
            event.level,
            event.logger,
            event.thread,
            analysis.message,
            None,
            job_id,
            lifecycle,
            event.is_truncated,
        ),
        profile.process,
        profile.host,
        analysis.fingerprint,
        analysis.exception_type,
        analysis.root_cause_type,
        analysis.root_cause_message,
        task,
        subtask,
        parallelism,
        attempt,
        analysis.matches,
        analysis.first_user_frame,
        analysis.has_frames,
        "flink" if profile.flink_version else analysis.product or product_of_thread(event.thread),
        flink_version=profile.flink_version,
    )


def _with_counted(observation: Observation, counted: Counted) -> Observation:
    event = observation.event
    spread = None
    task = observation.task
    if task is not None and counted.subtasks - {observation.subtask}:
        named = frozenset(Subtask(task, n, observation.parallelism) for n in counted.subtasks)
        spread = observation.reach.union([Spread(named, frozenset(), frozenset())])
    return replace(
        observation,
        occurrences=observation.occurrences + counted.events,
        last_logged_at=latest(event.logged_at, counted.last_logged_at),
        spread=spread,
    )


def _on_one_line(observation: Observation) -> Observation:
    """The observation with line offsets of 0, because a JSON event is a single line."""
    if not any(match.line_offset for match in observation.matches):
        return observation
    return replace(
        observation, matches=tuple(replace(m, line_offset=0) for m in observation.matches)
    )


def _no_task(event: Event) -> tuple[None, int | None, int | None, int | None]:
    lifecycle = event.lifecycle
    if lifecycle is None:
        return None, None, None, None
    return None, lifecycle.subtask, lifecycle.parallelism, lifecycle.attempt


def _task_of_trace(trace: StackTrace | None) -> tuple[str, int, int, int | None] | None:
    for throwable in trace.throwables if trace is not None else ():
        named = task_in_text(throwable.message)
        if named is not None:
            return named
    return None
