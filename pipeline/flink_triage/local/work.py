"""What the in-process runner does to one file, one byte range, or one deployment.

These functions are called in this process or in one of a pool; ``Bench`` is what they share there.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from ..diagnosis import diagnose
from ..diagnosis.cited import cut_trace, whole_trace
from ..diagnosis.fold import fold
from ..logs.files import InputFile
from ..logs.profile import probe
from ..model import (
    ByteRange,
    FileProfile,
    Incident,
    Observation,
    Quarantined,
    RangeScan,
    SkippedSignature,
    UnknownFailure,
)
from ..remediation import OptionTable
from ..settings import Settings
from ..signatures import SignaturePack
from ..stages import Analyzer, RangeResult, collector_at_rest
from .options import Options, within

Numbered = tuple[int, ByteRange]


class Bench:
    """What a process needs for all that it is given; made when it is first asked for."""

    def __init__(self, pack: SignaturePack, options: Options) -> None:
        self.pack = pack
        self.options = options
        # Of each trace the lowest number of a range that its exemplar was sent from.
        self.sent: dict[str, int] = {}

    @cached_property
    def analyzer(self) -> Analyzer:
        return Analyzer(self.pack, self.options.settings, self.options.timezone)

    @cached_property
    def option_table(self) -> OptionTable:
        return OptionTable.load()


@dataclass(frozen=True, slots=True)
class Account:
    """Sums over byte ranges, for the coverage."""

    bytes: int = 0
    events: int = 0
    stack_traces: int = 0
    truncated: int = 0
    redactions: int = 0
    decode_errors: int = 0
    problems: tuple[Quarantined, ...] = ()

    @classmethod
    def of(cls, results: Iterable[RangeResult]) -> Account:
        total = cls()
        for result in results:
            total += cls._of_range(result)
        return total

    @classmethod
    def _of_range(cls, result: RangeResult) -> Account:
        scan = result.scan
        return cls(
            _bytes_of(scan),
            sum(volume.event_count for volume in scan.volumes),
            result.trace_count,
            scan.truncated,
            scan.redactions,
            scan.decode_errors,
            scan.problems,
        )

    def __add__(self, other: Account) -> Account:
        return Account(
            self.bytes + other.bytes,
            self.events + other.events,
            self.stack_traces + other.stack_traces,
            self.truncated + other.truncated,
            self.redactions + other.redactions,
            self.decode_errors + other.decode_errors,
            self.problems + other.problems,
        )


def _bytes_of(scan: RangeScan) -> int:
    return scan.event_bytes + scan.counted_bytes + scan.quarantined_bytes + scan.held_back_bytes


@dataclass(frozen=True, slots=True)
class Concluded:
    """What one deployment showed.

    ``exemplars``: by fingerprint the number of the first range that saw the trace, and its text,
    at most ``max_trace_chars`` long.
    """

    deployment: str
    account: Account = Account()
    incidents: tuple[Incident, ...] = ()
    unknown: tuple[UnknownFailure, ...] = ()
    effective_config: dict[str, str] = field(default_factory=dict)
    exemplars: dict[str, tuple[int, str]] = field(default_factory=dict)
    skipped: tuple[SkippedSignature, ...] = ()


def probe_file(bench: Bench, file: InputFile) -> FileProfile:
    return probe(file, bench.options.settings)


def analyze_range(bench: Bench, byte_range: ByteRange, told: Container[str] = ()) -> RangeResult:
    """What the range told; what a crash loop repeats is counted, not kept."""
    keep = bench.options.settings.max_observations_per_key
    with collector_at_rest():
        result = bench.analyzer.analyze(byte_range, told=told)
        return replace(result, observations=tuple(fold(result.observations, keep)))


def analyze_with_skipped(
    bench: Bench, byte_range: ByteRange
) -> tuple[RangeResult, tuple[SkippedSignature, ...]]:
    return analyze_range(bench, byte_range), bench.analyzer.skipped


def conclude_ranges(bench: Bench, work: tuple[str, Sequence[Numbered]]) -> Concluded:
    """A whole deployment, from its bytes to its incidents."""
    deployment, ranges = work
    numbered = []
    told: set[str] = set()
    for number, byte_range in ranges:
        result = analyze_range(bench, byte_range, told)
        told.update(row.fingerprint.full for row in result.traces)
        numbered.append((number, result))
    return conclude(bench, deployment, numbered, bench.analyzer.skipped)


def conclude(
    bench: Bench,
    deployment: str,
    numbered: Sequence[tuple[int, RangeResult]],
    skipped: tuple[SkippedSignature, ...] = (),
) -> Concluded:
    """Diagnose a deployment by what its ranges told."""
    options, settings = bench.options, bench.options.settings
    results = [result for _, result in numbered]
    account = Account.of(results)
    if results and all(result.scan.range.profile.problem for result in results):
        # Of what could not be read nothing is said, least of all that it is healthy.
        return Concluded(deployment, account, skipped=skipped)
    with collector_at_rest():
        observations = within(number_lines(results), options)
        incidents, unknown, config = diagnose(
            fold(observations, settings.max_observations_per_key),
            bench.pack,
            bench.option_table,
            settings,
            options.flink_version,
            deployments=[deployment],
        )
    return Concluded(
        deployment,
        account,
        incidents,
        unknown,
        config.get(deployment, {}),
        _exemplars(bench.sent, numbered, settings),
        skipped,
    )


def _exemplars(
    sent: dict[str, int], numbered: Sequence[tuple[int, RangeResult]], settings: Settings
) -> dict[str, tuple[int, str]]:
    """Of each trace the first text, unless this process sent an earlier one before."""
    found: dict[str, tuple[int, str]] = {}
    for number, result in numbered:
        for row in result.traces:
            name = row.fingerprint.full
            if number < sent.get(name, number + 1):
                text = whole_trace(row.trace.thrown.text, row.exemplar)
                found[name] = number, cut_trace(text, settings.max_trace_chars)
                sent[name] = number
    return found


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
