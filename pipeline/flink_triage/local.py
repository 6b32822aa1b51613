"""The in-process runner: paths in, a ``Result`` out; no JVM, nothing kept.

The same stages as on Spark, over the same byte ranges, in this process for small inputs and in a
pool of processes for large ones.
"""

from __future__ import annotations

import multiprocessing
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone, tzinfo
from pathlib import Path

from . import __version__
from .diagnosis import diagnose
from .diagnosis.cited import cited_traces, shown_traces, whole_trace
from .diagnosis.fold import fold
from .errors import UsageError
from .logs.files import deployment_of, list_inputs
from .logs.layouts.own import read_layouts
from .logs.plan import plan_ranges
from .logs.profile import probe
from .logs.storage import is_uri
from .model import (
    ByteRange,
    Coverage,
    FileProfile,
    Observation,
    Quarantined,
    RangeResult,
    Result,
    Run,
    SkippedSignature,
)
from .remediation import OptionTable
from .settings import DEFAULT_SETTINGS, MIB, Settings
from .signatures import SignaturePack, builtin_pack_directory, load_pack
from .stages import Analyzer

# Below this a pool of processes costs more than it gains.
_POOL_FROM_BYTES = 24 * MIB

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Options:
    """What a caller can ask of a run, in either runner.

    ``since`` and ``until`` bound event times (aware, half open); events without a time are kept.
    """

    group_by: str = "directory"
    flink_version: str | None = None
    timezone: tzinfo = timezone.utc
    since: datetime | None = None
    until: datetime | None = None
    signature_directories: tuple[Path, ...] = ()
    settings: Settings = DEFAULT_SETTINGS
    workers: int | None = None


@dataclass(frozen=True, slots=True)
class Scanned:
    """All that the byte ranges of the inputs told, before anything is concluded from it."""

    pack: SignaturePack
    profiles: tuple[tuple[FileProfile, str], ...]
    results: tuple[RangeResult, ...]
    quarantined: tuple[Quarantined, ...]
    skipped: tuple[SkippedSignature, ...]


def run_local(
    inputs: Sequence[str], options: Options, progress: Progress = lambda done, total: None
) -> Result:
    """Diagnose ``inputs`` (files and directories).

    Raises ``UsageError`` when there is nothing to read and ``SignaturePackError`` for a bad pack.
    """
    started_at = datetime.now(timezone.utc)
    options = with_layouts(options)
    scanned = scan_inputs(inputs, options, progress)
    observations = within(number_lines(scanned.results), options)
    incidents, unknown, config = diagnose(
        fold(observations, options.settings.max_observations_per_key),
        scanned.pack,
        OptionTable.load(),
        options.settings,
        options.flink_version,
        deployments=sorted({name for profile, name in scanned.profiles if not profile.problem}),
    )
    return Result(
        tool={"name": "flink-triage", "version": __version__},
        run=Run(uuid.uuid4().hex, started_at, datetime.now(timezone.utc), scanned.pack.digest),
        coverage=coverage_of(scanned, options),
        incidents=incidents,
        unknown=unknown,
        effective_config=config,
        stack_traces=_traces(scanned.results, cited_traces(incidents, unknown), options.settings),
    )


def with_layouts(options: Options) -> Options:
    """The options with the layouts that lie beside the signatures; raises ``UsageError``."""
    found = read_layouts(options.signature_directories)
    settings = options.settings
    new = tuple(layout for layout in found if layout not in settings.reading.layouts)
    if not new:
        return options
    reading = replace(settings.reading, layouts=(*settings.reading.layouts, *new))
    return replace(options, settings=replace(settings, reading=reading))


def _traces(
    results: Iterable[RangeResult], wanted: Sequence[str], settings: Settings
) -> dict[str, str]:
    """The first range that saw a trace lends its exemplar, as on Spark."""
    names, found = set(wanted), dict[str, str]()
    for row in (row for result in results for row in result.traces):
        if row.fingerprint.full in names:
            text = whole_trace(row.trace.thrown.text, row.exemplar)
            found.setdefault(row.fingerprint.full, text)
    return shown_traces(found, settings.max_trace_chars)


def pack_of(options: Options) -> SignaturePack:
    """The built-in signatures and those of ``options``, without what is ignored today."""
    pack = load_pack((builtin_pack_directory(), *options.signature_directories))
    return pack.heard_on(datetime.now(timezone.utc).date())


def scan_inputs(inputs: Sequence[str], options: Options, progress: Progress) -> Scanned:
    """Read every byte of ``inputs`` once; raises as ``run_local`` does."""
    options = with_layouts(options)
    pack = pack_of(options)
    listing = list_inputs(inputs, options.settings)
    if not listing.files and not listing.quarantined:
        raise UsageError(f"nothing to read: {', '.join(inputs)} hold no files")
    profiles = [
        (probe(file, options.settings), deployment_of(file, options.group_by))
        for file in listing.files
    ]
    ranges = plan_ranges(profiles, options.settings)
    results, skipped = _analyze(ranges, pack, options, progress)
    return Scanned(pack, tuple(profiles), tuple(results), listing.quarantined, skipped)


def number_lines(results: Iterable[RangeResult]) -> Iterator[Observation]:
    """Observations with line numbers of their file, from ranges whose lines count from 1."""
    base: dict[str, int] = {}
    for result in sorted(results, key=_range_order):
        path = result.scan.range.profile.path
        before = base.get(path, 0)
        base[path] = before + result.scan.newline_count
        if not before:
            yield from result.observations
            continue
        for observation in result.observations:
            event = observation.event
            yield replace(observation, event=replace(event, line=event.line + before))


def _range_order(result: RangeResult) -> tuple[str, int]:
    return result.scan.range.profile.path, result.scan.range.start


def within(observations: Iterable[Observation], options: Options) -> list[Observation]:
    """Observations inside ``since``/``until``; what a process says of itself at start is kept."""
    return [o for o in observations if _is_within(o, options)]


def _is_within(observation: Observation, options: Options) -> bool:
    at = observation.event.logged_at
    lifecycle = observation.event.lifecycle
    if at is None or (lifecycle is not None and lifecycle.kind in ("config", "version")):
        return True
    if options.since is not None and at < options.since:
        return False
    return options.until is None or at < options.until


def coverage_of(scanned: Scanned, options: Options) -> Coverage:
    """What was read, and what was not and why."""
    results = scanned.results
    problems = [
        *scanned.quarantined,
        *(Quarantined(p.path, p.problem) for p, _ in scanned.profiles if p.problem is not None),
        *(problem for r in results for problem in r.scan.problems),
    ]
    scans = [r.scan for r in results]
    fingerprints = {t.fingerprint.full for r in results for t in r.traces}
    return Coverage(
        files=len(scanned.profiles),
        bytes=sum(
            s.event_bytes + s.counted_bytes + s.quarantined_bytes + s.held_back_bytes for s in scans
        ),
        events=sum(v.event_count for s in scans for v in s.volumes),
        stack_traces=sum(t.count for r in results for t in r.traces),
        fingerprints=len(fingerprints),
        quarantined=tuple(sorted(set(problems), key=lambda q: (q.path, q.reason))),
        truncated=sum(s.truncated for s in scans),
        redactions=sum(s.redactions for s in scans),
        decode_errors=sum(s.decode_errors for s in scans),
        signatures_evaluated=len(scanned.pack.signatures),
        signatures_skipped=tuple(
            sorted({*scanned.skipped, *ignored_in(scanned.pack)}, key=lambda s: s.signature)
        ),
        assumed_timezone=str(options.timezone),
    )


def ignored_in(pack: SignaturePack) -> set[SkippedSignature]:
    """What a team has decided not to hear of today, and why."""
    today = datetime.now(timezone.utc).date()
    return {
        SkippedSignature(entry.signature, f"ignored: {entry.reason}")
        for entry in pack.decisions_on(today)
    }


def _analyze(
    ranges: Sequence[ByteRange], pack: SignaturePack, options: Options, progress: Progress
) -> tuple[list[RangeResult], tuple[SkippedSignature, ...]]:
    total = sum(_size(r) for r in ranges)
    workers = options.workers or os.cpu_count() or 1
    if total < _POOL_FROM_BYTES or workers == 1 or len(ranges) == 1:
        analyzer = Analyzer(pack, options.settings, options.timezone)
        done, results = 0, []
        for byte_range in ranges:
            results.append(_folded(analyzer.analyze(byte_range), options.settings))
            done += _size(byte_range)
            progress(done, total)
        return results, analyzer.skipped
    return _analyze_in_pool(ranges, pack, options, progress, min(workers, len(ranges)))


def _size(byte_range: ByteRange) -> int:
    end = byte_range.end if byte_range.end is not None else byte_range.profile.size_bytes
    return max(0, end - byte_range.start)


def _folded(result: RangeResult, settings: Settings) -> RangeResult:
    return replace(
        result,
        observations=tuple(fold(result.observations, settings.max_observations_per_key)),
    )


_ANALYZER: Analyzer | None = None


def _start_worker(pack: SignaturePack, settings: Settings, zone: tzinfo) -> None:
    global _ANALYZER
    _ANALYZER = Analyzer(pack, settings, zone)


def _work(
    numbered: tuple[int, ByteRange, Settings],
) -> tuple[int, RangeResult, tuple[SkippedSignature, ...]]:
    number, byte_range, settings = numbered
    assert _ANALYZER is not None
    return number, _folded(_ANALYZER.analyze(byte_range), settings), _ANALYZER.skipped


def _analyze_in_pool(
    ranges: Sequence[ByteRange],
    pack: SignaturePack,
    options: Options,
    progress: Progress,
    workers: int,
) -> tuple[list[RangeResult], tuple[SkippedSignature, ...]]:
    total, done = sum(_size(r) for r in ranges), 0
    results: dict[int, RangeResult] = {}
    skipped: set[SkippedSignature] = set()
    # The largest first, so that the last task to finish is a small one.
    numbered = sorted(enumerate(ranges), key=lambda pair: -_size(pair[1]))
    tasks = [(number, byte_range, options.settings) for number, byte_range in numbered]
    # The clients of object stores have threads, which a fork would lose.
    is_forked = os.name != "nt" and not any(is_uri(r.profile.path) for r in ranges)
    context = multiprocessing.get_context("fork" if is_forked else "spawn")
    with context.Pool(workers, _start_worker, (pack, options.settings, options.timezone)) as pool:
        for number, result, off in pool.imap_unordered(_work, tasks):
            results[number] = result
            skipped.update(off)
            done += _size(ranges[number])
            progress(done, total)
    return [results[number] for number in range(len(ranges))], tuple(skipped)
