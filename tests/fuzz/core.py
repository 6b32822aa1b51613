"""Reads and diagnoses damaged logs without a JVM, and checks the results.

``python -m tests.fuzz.core RUNS SEED`` tests RUNS logs, and prints each log that fails a check,
with the seed that reproduces it.
"""

from __future__ import annotations

import json
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from flink_triage.analyzer import Analyzer, RangeResult
from flink_triage.diagnosis import diagnose
from flink_triage.diagnosis.timeline.fold import fold
from flink_triage.local import in_files
from flink_triage.logs.detect.profile import probe
from flink_triage.logs.inputs.byte_ranges import plan_ranges
from flink_triage.logs.inputs.files import list_inputs
from flink_triage.model import FileProfile
from flink_triage.remediation import OptionTable
from flink_triage.settings import KIB, Settings
from flink_triage.signatures import builtin_pack_directory, load_pack
from flink_triage.traces import mask, render
from tests.fuzz.mutate import corpus, mutated

# A small log takes milliseconds. A log that takes this long indicates a hang.
SECONDS_PER_LOG = 30
# Low limits, so that small logs exceed them.
SETTINGS = Settings(range_bytes=4 * KIB, max_line_bytes=2 * KIB, max_event_bytes=6 * KIB)


class HangError(Exception):
    """Raised if a log takes too long."""


class Core:
    """Reads and diagnoses one file at a time; the signatures and options are loaded once."""

    def __init__(self, settings: Settings = SETTINGS) -> None:
        self._settings = settings
        self._pack = load_pack((builtin_pack_directory(),))
        self._options = OptionTable.load()
        self.forget()

    def forget(self) -> None:
        """Create a new analyzer, which has learned nothing from earlier logs."""
        self._analyzer = Analyzer(self._pack, self._settings)

    def check(self, path: Path) -> None:
        """Read and diagnose ``path``; raises an exception if a check fails."""
        listing = list_inputs([str(path)], self._settings)
        results: list[RangeResult] = []
        for file in listing.files:
            profile = probe(file, self._settings)
            ranges = plan_ranges([(profile, "fuzzed")], self._settings)
            of_file = [self._analyzer.analyze(byte_range) for byte_range in ranges]
            check_account(profile, of_file)
            results += of_file
        assert listing.files or listing.quarantined
        observations = fold(in_files(results), self._settings)
        incidents, unknown, config = diagnose(
            observations, self._pack, self._options, self._settings, None, deployments=["fuzzed"]
        )
        json.dumps([repr(incidents), repr(unknown), repr(config)]).encode()


def check_account(profile: FileProfile, results: Sequence[RangeResult]) -> None:
    """Check the accounting of bytes, and the positions and texts of events.

    The accounted bytes must equal the size of the file, unless it is a readable compressed file.
    """
    scans = [result.scan for result in results]
    accounted = sum(s.event_bytes + s.counted_bytes + s.quarantined_bytes for s in scans)
    if profile.compression == "none" or profile.problem is not None:
        assert accounted == profile.size_bytes, f"{accounted} of {profile.size_bytes} bytes"
    assert sum(s.held_back_bytes for s in scans) == 0
    volume = sum(v.byte_count for s in scans for v in s.volumes)
    assert volume == sum(s.event_bytes + s.counted_bytes for s in scans), f"{volume} in volumes"
    end = 0
    for result in results:
        for observation in result.observations:
            event = observation.event
            # If the lines of several streams alternate in a file, their events overlap.
            assert event.offset >= end or profile.carrier != "none", f"overlap at {event.offset}"
            end = event.offset + event.size_bytes
            assert event.line >= 1
            # Arrow does not accept lone surrogates.
            repr(observation).encode()
            event.message.encode()
        for trace in result.traces:
            (mask(render(trace.trace)) + trace.exemplar).encode()


@contextmanager
def watched(seconds: float) -> Iterator[None]:
    """Raise ``HangError`` if the block takes longer; works only in the main thread."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise HangError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def broken(seeds: Sequence[int], folder: Path) -> dict[int, str]:
    """The seeds whose log fails a check, each with the traceback."""
    core, logs = Core(), corpus()
    found: dict[int, str] = {}
    for seed in seeds:
        path = folder / f"{seed}.log"
        path.write_bytes(mutated(seed, logs))
        try:
            with watched(SECONDS_PER_LOG):
                core.check(path)
        except Exception:
            found[seed] = traceback.format_exc()
        path.unlink()
    return found


def told(found: Mapping[int, str] | Mapping[str, str], what: str) -> int:
    """Print the traceback of each failed check, by seed or name; return the exit code."""
    for key, trace in found.items():
        print(f"{key if isinstance(key, str) else f'seed {key}'}:\n{trace}")
    print(f"{what}: {len(found)} failed a check")
    return 1 if found else 0


def main(runs: int, seed: int) -> int:
    seeds = range(seed, seed + runs)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        found = broken(seeds, Path(folder))
    took = time.monotonic() - began
    return told(found, f"{runs} logs from seed {seed}, {took:.0f} s")


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
