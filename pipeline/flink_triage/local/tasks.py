"""Tasks of the local runner for one file, for byte ranges, or for one deployment.

The functions run in the main process or in the processes of a pool. All functions that run in the
same process use one instance of ``SharedObjects``.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter

from flink_triage.analyzer import Analyzer, RangeResult, collector_at_rest
from flink_triage.diagnosis import diagnose
from flink_triage.diagnosis.incidents.cited_traces import cut_trace, whole_trace
from flink_triage.diagnosis.resource_limits import Undiagnosed, guarded
from flink_triage.diagnosis.timeline.fold import Folder, fold
from flink_triage.logs.detect.profile import probe
from flink_triage.logs.inputs.files import InputFile
from flink_triage.logs.readers.byte_account import Tally
from flink_triage.model import (
    ByteRange,
    FileProfile,
    Incident,
    Observation,
    Quarantined,
    RangeScan,
    SkippedSignature,
    UnknownFailure,
)
from flink_triage.remediation import OptionTable
from flink_triage.run_options import Options, within, witness_of_log
from flink_triage.settings import Settings
from flink_triage.signatures import SignaturePack

Numbered = tuple[int, ByteRange]

# When a range has collected more exemplars than this, those that no observation requires are
# discarded. The limit then grows with the number of remaining exemplars.
_MANY_EXEMPLARS = 2_048


class SharedObjects:
    """Objects that all tasks of a process share; they are created on first use."""

    def __init__(self, pack: SignaturePack, options: Options) -> None:
        self.pack = pack
        self.options = options
        # For each trace whose exemplar was returned, the lowest number of its range.
        self.sent: dict[str, int] = {}

    @cached_property
    def analyzer(self) -> Analyzer:
        return Analyzer(self.pack, self.options.settings, self.options.timezone)

    @cached_property
    def option_table(self) -> OptionTable:
        return OptionTable.load()


@dataclass(frozen=True, slots=True)
class Analyzed:
    """The folded result of one range.

    ``coarseness`` is the index of the grain by which the observations were folded (see
    `grains_of`). ``stack_traces`` is the number of events with a trace; ``fingerprints`` are those
    of their distinct traces. ``exemplars`` contains the texts of traces that ``observations`` refer
    to and that were not known before, each cut to about ``max_trace_chars``.
    """

    scan: RangeScan
    observations: tuple[Observation, ...]
    coarseness: int
    stack_traces: int
    fingerprints: frozenset[str]
    exemplars: dict[str, str]


@dataclass(frozen=True, slots=True)
class Account:
    """Totals over byte ranges, for the coverage."""

    bytes: int = 0
    events: int = 0
    stack_traces: int = 0
    truncated: int = 0
    redactions: Mapping[str, int] = field(default_factory=dict)
    decode_errors: int = 0
    problems: tuple[Quarantined, ...] = ()

    @classmethod
    def of(cls, results: Iterable[Analyzed]) -> Account:
        total = cls()
        for result in results:
            total += cls._of_range(result)
        return total

    @classmethod
    def _of_range(cls, result: Analyzed) -> Account:
        scan = result.scan
        return cls(
            _bytes_of(scan),
            sum(volume.event_count for volume in scan.volumes),
            result.stack_traces,
            scan.truncated,
            scan.redactions_by_kind,
            scan.decode_errors,
            scan.problems,
        )

    def __add__(self, other: Account) -> Account:
        return Account(
            self.bytes + other.bytes,
            self.events + other.events,
            self.stack_traces + other.stack_traces,
            self.truncated + other.truncated,
            Counter(self.redactions) + Counter(other.redactions),
            self.decode_errors + other.decode_errors,
            self.problems + other.problems,
        )


def _bytes_of(scan: RangeScan) -> int:
    return scan.event_bytes + scan.counted_bytes + scan.quarantined_bytes + scan.held_back_bytes


@dataclass(frozen=True, slots=True)
class Concluded:
    """Result of one deployment.

    ``fingerprints`` are those of all its traces. ``exemplars`` maps a fingerprint to the number of
    a range, and the text of the trace in this range. If the deployment could not be diagnosed, only
    ``account`` and ``skipped`` are set.
    """

    deployment: str
    account: Account = Account()
    incidents: tuple[Incident, ...] = ()
    unknown: tuple[UnknownFailure, ...] = ()
    effective_config: dict[str, str] = field(default_factory=dict)
    fingerprints: frozenset[str] = frozenset()
    exemplars: dict[str, tuple[int, str]] = field(default_factory=dict)
    skipped: tuple[SkippedSignature, ...] = ()


def probe_file(shared: SharedObjects, file: InputFile) -> FileProfile:
    return probe(file, shared.options.settings)


def analyze_range(
    shared: SharedObjects, byte_range: ByteRange, known_traces: set[str], coarseness: int = 0
) -> Analyzed:
    """Read and fold one range.

    ``known_traces`` contains the fingerprints of traces whose text is not required. Those of the
    range are added to it, except if their text was discarded. ``coarseness`` is the coarseness at
    which earlier ranges of the deployment were folded.
    """
    options, settings = shared.options, shared.options.settings
    tally = Tally()
    folder = Folder(settings, coarseness)
    # Repeated events that the reader only counts have no individual times to compare with ``since``
    # and ``until``.
    is_counting = options.since is None and options.until is None
    stack_traces = 0
    fingerprints: set[str] = set()
    exemplars: dict[str, str] = {}
    most = _MANY_EXEMPLARS

    def leave_out() -> None:
        named = {o.fingerprint.full for o in folder.fold() if o.fingerprint is not None}
        for name in exemplars.keys() - named:
            del exemplars[name]
            known_traces.discard(name)

    with collector_at_rest():
        portions = shared.analyzer.read(
            byte_range,
            tally,
            known_traces=known_traces,
            coarseness=coarseness if is_counting else None,
        )
        for portion in portions:
            folder.add(within(portion.observations, options))
            stack_traces += portion.trace_count
            for row in portion.traces:
                text = whole_trace(row.trace.thrown.text, row.exemplar)
                exemplars[row.fingerprint.full] = cut_trace(text, settings.max_trace_chars)
            of_portion = portion.fingerprints
            known_traces |= of_portion
            fingerprints |= of_portion
            if len(exemplars) > most:
                leave_out()
                most = 2 * len(exemplars) + _MANY_EXEMPLARS
        leave_out()
        scan, kept = tally.finish(byte_range), tuple(folder.take())
    found = frozenset(fingerprints)
    return Analyzed(scan, kept, folder.coarseness, stack_traces, found, exemplars)


def analyze_ranges(
    shared: SharedObjects, ranges: Sequence[Numbered]
) -> tuple[list[tuple[int, Analyzed]], tuple[SkippedSignature, ...]]:
    """Read and fold some ranges of one deployment; the first result contains all observations."""
    gathering = Gathering(shared.options.settings)
    gathering.read(shared, ranges)
    return gathering.folded(), shared.analyzer.skipped


def analyze_whole(
    shared: SharedObjects, byte_range: ByteRange
) -> tuple[RangeResult, tuple[SkippedSignature, ...]]:
    """Read and fold one range, but keep an observation of every distinct trace."""
    limits = shared.options.settings
    every_trace = replace(limits, max_traces_per_key=sys.maxsize, max_observations=sys.maxsize)
    with collector_at_rest():
        result = shared.analyzer.analyze(byte_range)
        folded = tuple(fold(result.observations, every_trace))
    return replace(result, observations=folded), shared.analyzer.skipped


class Gathering:
    """Results of the ranges of one deployment, added in any order and folded together."""

    def __init__(self, settings: Settings) -> None:
        self._folder = Folder(settings)
        self._ranges: list[tuple[int, Analyzed]] = []

    def add(self, number: int, result: Analyzed) -> None:
        self._folder.add(result.observations, result.coarseness)
        self._ranges.append((number, replace(result, observations=())))

    def read(self, shared: SharedObjects, ranges: Sequence[Numbered]) -> None:
        """Read the ranges in order, and add their results."""
        known_traces: set[str] = set()
        for number, byte_range in ranges:
            self.add(
                number, analyze_range(shared, byte_range, known_traces, self._folder.coarseness)
            )

    def folded(self) -> list[tuple[int, Analyzed]]:
        """The results in order of their ranges; the first one contains all observations.

        The observations are removed from this object.
        """
        (number, first), *others = self.numbered
        kept = tuple(self._folder.take())
        first = replace(first, observations=kept, coarseness=self._folder.coarseness)
        return [(number, first), *others]

    @property
    def numbered(self) -> list[tuple[int, Analyzed]]:
        """The results in order of their ranges, without their observations."""
        return sorted(self._ranges, key=itemgetter(0))

    def take(self) -> Iterator[Observation]:
        """Remove the observations, and return them with line numbers in their files."""
        return _number_lines(self._folder.take(), (result.scan for _, result in self._ranges))


def conclude_ranges(shared: SharedObjects, work: tuple[str, Sequence[Numbered]]) -> Concluded:
    """Diagnose a whole deployment, from its bytes to its incidents."""
    deployment, ranges = work
    gathering = Gathering(shared.options.settings)
    gathering.read(shared, ranges)
    return conclude(shared, deployment, gathering, shared.analyzer.skipped)


def conclude(
    shared: SharedObjects,
    deployment: str,
    gathering: Gathering,
    skipped: tuple[SkippedSignature, ...] = (),
) -> Concluded:
    """Diagnose a deployment from the results of its ranges."""
    options = shared.options
    numbered = gathering.numbered
    results = [result for _, result in numbered]
    account = Account.of(results)
    if results and all(result.scan.range.profile.problem for result in results):
        # No file of the deployment could be read, so it has no verdict, and is not healthy either.
        return Concluded(deployment, account, skipped=skipped)

    def diagnosed() -> tuple[
        tuple[Incident, ...], tuple[UnknownFailure, ...], dict[str, dict[str, str]]
    ]:
        observations = list(gathering.take())
        if not observations:
            profiles = (result.scan.range.profile for result in results)
            witnesses = (witness_of_log(deployment, profile) for profile in profiles)
            observations = [one for one in witnesses if one is not None][:1]
        return diagnose(
            observations,
            shared.pack,
            shared.option_table,
            options.settings,
            options.flink_version,
            deployments=[deployment],
        )

    with collector_at_rest():
        found = guarded(diagnosed, options.settings)
    if isinstance(found, Undiagnosed):
        problems = (*account.problems, Quarantined(deployment, found.reason))
        return Concluded(deployment, replace(account, problems=problems), skipped=skipped)
    incidents, unknown, config = found
    return Concluded(
        deployment,
        account,
        incidents,
        unknown,
        config.get(deployment, {}),
        frozenset().union(*(result.fingerprints for result in results)),
        _exemplars(shared.sent, numbered),
        skipped,
    )


def _exemplars(
    sent: dict[str, int], numbered: Sequence[tuple[int, Analyzed]]
) -> dict[str, tuple[int, str]]:
    """The first text of each trace, unless this process already returned an earlier one."""
    found: dict[str, tuple[int, str]] = {}
    for number, result in numbered:
        for name, text in result.exemplars.items():
            if number < sent.get(name, number + 1):
                found[name] = number, text
                sent[name] = number
    return found


def in_files(results: Sequence[RangeResult]) -> Iterator[Observation]:
    """The observations of all ranges, with line numbers in their files."""
    observations = (observation for result in results for observation in result.observations)
    return _number_lines(observations, (result.scan for result in results))


def _number_lines(
    observations: Iterable[Observation], scans: Iterable[RangeScan]
) -> Iterator[Observation]:
    """Observations with line numbers in their files instead of their ranges.

    ``scans`` are the scans of all ranges of the files.
    """
    starts: dict[str, list[int]] = {}
    before: dict[str, list[int]] = {}
    for scan in sorted(scans, key=lambda scan: (scan.range.profile.path, scan.range.start)):
        path = scan.range.profile.path
        lines = before.setdefault(path, [0])
        starts.setdefault(path, []).append(scan.range.start)
        lines.append(lines[-1] + scan.newline_count)
    for observation in observations:
        event = observation.event
        position = bisect_right(starts[event.path], event.offset) - 1
        lines_before = before[event.path][position]
        if lines_before:
            observation = replace(observation, event=replace(event, line=event.line + lines_before))
        yield observation
