"""The local runner: diagnoses log files without a JVM, and does not store results.

The stages are the same as in a Spark run. Inputs that are small in total, or consist of a single
byte range, are read in this process. All others are read in a pool of processes, unless the number
of workers (by default, that of CPUs) is one. Each process in the pool reads and diagnoses whole
deployments, so that observations are not sent between processes. The only exception is a deployment
that makes up a large part of the input: the pool reads its byte ranges, and this process diagnoses
it.
"""

from __future__ import annotations

import os
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from flink_triage import __version__
from flink_triage.analyzer import RangeResult
from flink_triage.diagnosis.episodes.unknown_failures import merge_unknown
from flink_triage.diagnosis.incidents.cited_traces import cited_traces
from flink_triage.local.pool import Mapper, mapper
from flink_triage.local.tasks import (
    Account,
    Concluded,
    Gathering,
    Numbered,
    SharedObjects,
    analyze_ranges,
    analyze_whole,
    conclude,
    conclude_ranges,
    in_files,
    probe_file,
)
from flink_triage.logs.inputs.byte_ranges import binned, plan_ranges
from flink_triage.logs.inputs.files import (
    InputFile,
    Listing,
    deployment_of,
    list_inputs,
    nothing_to_read,
)
from flink_triage.logs.inputs.storage import is_uri
from flink_triage.logs.text.redact import redact_path
from flink_triage.model import (
    ByteRange,
    Coverage,
    FileProfile,
    Observation,
    Quarantined,
    Result,
    Run,
    SkippedSignature,
    by_importance,
)
from flink_triage.run_options import (
    Options,
    Progress,
    ignored_in,
    pack_of,
    with_layouts,
    within,
    witness_of_log,
)
from flink_triage.settings import MIB
from flink_triage.signatures import SignaturePack

__all__ = [
    "Options",
    "Progress",
    "Scanned",
    "ignored_in",
    "in_files",
    "pack_of",
    "run_local",
    "scan_inputs",
    "with_layouts",
    "within",
    "witness_of_log",
]

# For smaller inputs, starting a pool of processes takes more time than it saves.
_POOL_FROM_BYTES = 24 * MIB
# A split deployment is divided into parts of about the size limit for whole deployments, divided by
# this number. With smaller parts, processes wait less for each other at the end.
_PARTS = 2

Profiles = tuple[tuple[FileProfile, str], ...]


@dataclass(frozen=True, slots=True)
class Scanned:
    """Results of the byte ranges of the inputs, before diagnosis."""

    pack: SignaturePack
    profiles: Profiles
    results: tuple[RangeResult, ...]
    quarantined: tuple[Quarantined, ...]
    skipped: tuple[SkippedSignature, ...]

    def observations(self) -> Iterator[Observation]:
        """Observations of all ranges, with line numbers in their files."""
        return in_files(self.results)


def run_local(
    inputs: Sequence[str], options: Options, progress: Progress = lambda done, total: None
) -> Result:
    """Diagnose ``inputs`` (files, directories, and URIs).

    Raises ``UsageError`` if an input does not exist or cannot be listed, if there are no files, or
    if ``group_by`` or a ``layouts.yaml`` is invalid, ``SignaturePackError`` if a signature
    directory is missing, and ``EnvironmentProblem`` for a URI if PyArrow is missing.
    """
    started_at = datetime.now(UTC)
    with _opened(inputs, options) as opened:
        concluded = _concluded(opened, progress)
    shared = opened.shared
    incidents = tuple(incident for one in concluded for incident in one.incidents)
    failures = (failure for one in concluded for failure in one.unknown)
    unknown = merge_unknown(failures, shared.options.settings.max_evidence)
    exemplars = _first_exemplars(concluded)
    return Result(
        tool={"name": "flink-triage", "version": __version__},
        run=Run(uuid.uuid4().hex, started_at, datetime.now(UTC), shared.pack.digest),
        coverage=_coverage(opened, concluded),
        incidents=incidents,
        unknown=unknown,
        effective_config={
            one.deployment: one.effective_config for one in concluded if one.effective_config
        },
        stack_traces={
            name: exemplars[name] for name in cited_traces(incidents, unknown) if name in exemplars
        },
    )


def scan_inputs(inputs: Sequence[str], options: Options, progress: Progress) -> Scanned:
    """Read ``inputs`` without diagnosing them; raises the same errors as ``run_local``."""
    with _opened(inputs, options) as opened:
        ranges = plan_ranges(opened.profiles, opened.shared.options.settings)
        total, done = sum(map(_size, ranges)), 0
        results: dict[int, RangeResult] = {}
        skipped: dict[SkippedSignature, None] = {}
        for number, (result, off) in opened.call(analyze_whole, ranges):
            results[number] = result
            skipped.update(dict.fromkeys(off))
            done += _size(ranges[number])
            progress(done, total)
    in_order = tuple(results[number] for number in range(len(ranges)))
    quarantined = opened.listing.quarantined
    return Scanned(opened.shared.pack, opened.profiles, in_order, quarantined, tuple(skipped))


@dataclass(frozen=True, slots=True)
class _Opened:
    """Listed and probed inputs, and the mapper that calls functions in ``workers`` processes."""

    shared: SharedObjects
    listing: Listing
    profiles: Profiles
    workers: int
    call: Mapper


@contextmanager
def _opened(inputs: Sequence[str], options: Options) -> Iterator[_Opened]:
    options = with_layouts(options)
    shared = SharedObjects(pack_of(options), options)
    listing = list_inputs(inputs, options.settings)
    if not listing.files and not listing.quarantined:
        raise nothing_to_read(inputs)
    workers = _workers_for(listing.files, options)
    is_remote = any(is_uri(file.path) for file in listing.files)
    with mapper(shared, workers, is_remote=is_remote) as call:
        profiles = _probed(call, listing.files, options)
        yield _Opened(shared, listing, profiles, workers, call)


def _workers_for(files: Sequence[InputFile], options: Options) -> int:
    if sum(file.size_bytes for file in files) < _POOL_FROM_BYTES:
        return 1
    # Processes in excess of the number of ranges would be idle.
    step = max(options.settings.range_bytes, 1)
    ranges = sum(1 + file.size_bytes // step for file in files)
    return min(options.workers or os.cpu_count() or 1, ranges)


def _probed(call: Mapper, files: Sequence[InputFile], options: Options) -> Profiles:
    profiles = dict(call(probe_file, files))
    return tuple(
        (profiles[index], deployment_of(file, options.group_by)) for index, file in enumerate(files)
    )


def _concluded(opened: _Opened, progress: Progress) -> list[Concluded]:
    """The results of the deployments, sorted by name."""
    shared, call, workers = opened.shared, opened.call, opened.workers
    ranges = list(enumerate(plan_ranges(opened.profiles, shared.options.settings)))
    of_deployment: dict[str, list[Numbered]] = defaultdict(list)
    for number, byte_range in ranges:
        of_deployment[byte_range.deployment].append((number, byte_range))
    sizes = {name: sum(_size(r) for _, r in of) for name, of in of_deployment.items()}
    total, done = sum(sizes.values()), 0
    # Split a deployment if one process would require much more time for it than the others for the
    # rest.
    share = total if workers == 1 else total / (2 * workers)
    large = {name for name, size in sizes.items() if size > share}
    # Start with the largest parts, so that the last task to finish is a small one. The ranges of
    # one part are folded together.
    parts = [
        part
        for name in sorted(large)
        for part in binned(of_deployment[name], lambda one: _size(one[1]), share / _PARTS)
    ]
    parts.sort(key=lambda part: -sum(_size(byte_range) for _, byte_range in part))
    whole = sorted(of_deployment.keys() - large, key=lambda name: -sizes[name])
    analyzed = call(analyze_ranges, parts)
    finished = call(conclude_ranges, [(name, of_deployment[name]) for name in whole])
    gatherings = {name: Gathering(shared.options.settings) for name in large}
    skipped: dict[str, tuple[SkippedSignature, ...]] = defaultdict(tuple)
    for index, (results, off) in analyzed:
        name = parts[index][0][1].deployment
        for number, result in results:
            gatherings[name].add(number, result)
        skipped[name] += off
        done += sum(_size(byte_range) for _, byte_range in parts[index])
        progress(done, total)
    concluded = []
    for name in sorted(large):
        concluded.append(conclude(shared, name, gatherings.pop(name), skipped[name]))
    for index, one in finished:
        concluded.append(one)
        done += sizes[whole[index]]
        progress(done, total)
    return sorted(concluded, key=lambda one: one.deployment)


def _size(byte_range: ByteRange) -> int:
    end = byte_range.end if byte_range.end is not None else byte_range.profile.size_bytes
    return max(0, end - byte_range.start)


def _first_exemplars(concluded: Iterable[Concluded]) -> dict[str, str]:
    """The exemplars of all deployments, sorted by fingerprint, each from the first range."""
    first: dict[str, tuple[int, str]] = {}
    for one in concluded:
        for name, found in one.exemplars.items():
            if name not in first or found[0] < first[name][0]:
                first[name] = found
    return {name: first[name][1] for name in sorted(first)}


def _coverage(opened: _Opened, concluded: Sequence[Concluded]) -> Coverage:
    """The totals of all inputs, and the inputs that were not read, with reasons."""
    pack, profiles = opened.shared.pack, opened.profiles
    account = sum((one.account for one in concluded), Account())
    problems = {
        *opened.listing.quarantined,
        *(Quarantined(p.path, p.problem) for p, _ in profiles if p.problem is not None),
        *account.problems,
    }
    skipped = {entry for one in concluded for entry in one.skipped}
    return Coverage(
        files=len(profiles),
        bytes=account.bytes,
        events=account.events,
        stack_traces=account.stack_traces,
        fingerprints=len(frozenset().union(*(one.fingerprints for one in concluded))),
        quarantined=by_importance(Quarantined(redact_path(q.path), q.reason) for q in problems),
        truncated=account.truncated,
        redactions=sum(account.redactions.values()),
        redactions_by_kind=dict(sorted(account.redactions.items())),
        decode_errors=account.decode_errors,
        signatures_evaluated=len(pack.signatures),
        signatures_skipped=tuple(
            sorted({*skipped, *ignored_in(pack)}, key=lambda entry: entry.signature)
        ),
        assumed_timezone=str(opened.shared.options.timezone),
    )
