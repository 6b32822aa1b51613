"""The result does not depend on ranges, file order, or whether a growing file is read twice.

The inputs are recorded logs and damaged copies of recorded logs.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flink_triage.analyzer import Analyzer, RangeResult
from flink_triage.diagnosis import diagnose
from flink_triage.diagnosis.timeline.fold import fold
from flink_triage.local import in_files
from flink_triage.logs.detect.profile import probe
from flink_triage.logs.inputs.byte_ranges import plan_ranges
from flink_triage.logs.inputs.files import list_inputs
from flink_triage.logs.lifecycle import LITERALS
from flink_triage.logs.readers.scan import Scanner
from flink_triage.model import (
    ByteRange,
    Event,
    FileProfile,
    Fingerprint,
    RangeScan,
)
from flink_triage.remediation import OptionTable
from flink_triage.settings import Settings
from flink_triage.signatures import builtin_pack_directory, load_pack
from tests.fuzz.mutate import corpus, mutated

LOGS = Path(__file__).resolve().parents[1] / "logs"
DEPLOYMENTS = (
    "checkpoint/tolerable-threshold-exceeded/disk-full-1.16.0",
    "operator/user-code-exception/npe-2.1.1",
    "kafka/offset-commit-failed/broker-frozen-1.20.1",
)
PACK = load_pack((builtin_pack_directory(),))
OPTIONS = OptionTable.load()
RAW = corpus()
SCANNER = Scanner((*LITERALS, *PACK.anchors), Settings())
_FEW = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def profile_of(path: Path) -> FileProfile:
    return probe(list_inputs([str(path)]).files[0], Settings())


def analyzed(paths: Sequence[Path], limits: Settings) -> list[RangeResult]:
    # A damaged log can be an archive with several files, or with no file that is safe to read.
    files = [file for path in paths for file in list_inputs([str(path)]).files]
    profiles = [(probe(file, Settings()), "d") for file in files]
    analyzer = Analyzer(PACK, limits)
    return [analyzer.analyze(byte_range) for byte_range in plan_ranges(profiles, limits)]


def told(results: Sequence[RangeResult]) -> tuple[object, ...]:
    """Returns the folded observations, the count of each stack trace, and the diagnoses."""
    observations = fold(in_files(results), Settings())
    traces: Counter[Fingerprint] = Counter()
    for result in results:
        for row in result.traces:
            traces[row.fingerprint] += row.count
    found = diagnose(observations, PACK, OPTIONS, Settings(), None, deployments=["d"])
    return observations, traces, found


@_FEW
@given(seed=st.integers(0, 10**6), range_bytes=st.integers(200, 30_000))
def test_cuts_between_ranges_change_nothing_of_a_damaged_log(
    tmp_path: Path, seed: int, range_bytes: int
) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(mutated(seed, RAW))
    small = replace(Settings(), range_bytes=range_bytes)
    assert told(analyzed([path], small)) == told(analyzed([path], Settings()))


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_ranges_and_order_of_files_change_nothing_of_a_deployment(deployment: str) -> None:
    paths = sorted((LOGS / deployment / "logs").glob("*.log"))
    expected = told(analyzed(paths, Settings()))
    drawn = random.Random(deployment)
    for range_bytes in (1_000, 4_321, 50_000):
        drawn.shuffle(paths)
        assert told(analyzed(paths, Settings(range_bytes=range_bytes))) == expected


# --- two readings ------------------------------------------------------------------------------


def accounted(scan: RangeScan) -> int:
    return scan.event_bytes + scan.counted_bytes + scan.quarantined_bytes


def read_twice(path: Path, data: bytes, cut: int) -> list[Event]:
    """Reads a log while it is being written, then reads the rest as recorded in the ledger."""
    path.write_bytes(data[:cut])
    first = SCANNER.scan(ByteRange(profile_of(path), "d"), is_active=True)
    consumed = accounted(first)
    assert consumed + first.held_back_bytes == cut
    path.write_bytes(data)
    second = SCANNER.scan(ByteRange(profile_of(path), "d", consumed, is_continued=True))
    assert consumed + accounted(second) == len(data)
    later = [replace(e, line=e.line + first.newline_count) for e in second.events]
    return [*first.events, *later]


def _each_line(prefix: bytes) -> Callable[[bytes], bytes]:
    return lambda data: b"".join(prefix + line + b"\n" for line in data.split(b"\n")[:-1])


FORMS: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda data: data,
    "CRI": _each_line(b"2026-11-21T06:47:23.468Z stdout F "),
    "kubectl logs --prefix": _each_line(b"[pod/orders-tm-1-1/flink-main] "),
    "Markdown quote": _each_line(b"> "),
    "CRLF": lambda data: data.replace(b"\n", b"\r\n"),
}
_LOG = (LOGS / DEPLOYMENTS[0] / "logs" / "flink-flink-taskexecutor-0-vm.log").read_bytes()


@pytest.mark.parametrize("form", FORMS)
def test_log_read_in_two_parts_gives_the_same_events(form: str, tmp_path: Path) -> None:
    path = tmp_path / "taskmanager.log"
    data = FORMS[form](_LOG)
    path.write_bytes(data)
    whole = list(SCANNER.scan(ByteRange(profile_of(path), "d")).events)
    drawn = random.Random(form)
    # The first read covers enough data to detect the file format. Beyond that, a cut can be
    # anywhere.
    for cut in sorted(drawn.randrange(len(data) // 4, len(data)) for _ in range(25)):
        assert read_twice(path, data, cut) == whole, cut
