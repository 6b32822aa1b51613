"""Matching stored events with complete text gives the same result as reading the logs again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from flink_triage.analyzer import Analyzer, RangeResult
from flink_triage.logs.detect.profile import probe
from flink_triage.logs.inputs.byte_ranges import plan_ranges
from flink_triage.logs.inputs.files import InputFile
from flink_triage.logs.layouts.header_shape import is_json
from flink_triage.match_stored import KnownTrace, rematch
from flink_triage.model import Match, Observation
from flink_triage.settings import DEFAULT_SETTINGS
from flink_triage.signatures import Matcher, SignaturePack
from flink_triage.signatures.pack import build_pack

LOGS = Path(__file__).parents[1] / "logs"
# Every third recorded log.
FILES = sorted(p for p in LOGS.rglob("*") if p.is_file() and p.suffix in (".log", ".txt", ".json"))[
    ::3
]


@dataclass(frozen=True)
class Read:
    """The observations from reading a file, and the stored data of each fingerprint."""

    observations: tuple[Observation, ...]
    known: dict[str, KnownTrace]
    is_json: bool


def read(path: Path, analyzer: Analyzer) -> Read:
    file = InputFile(str(path), path.stat().st_size, datetime.now(UTC), str(path.parent))
    profile = probe(file, DEFAULT_SETTINGS)
    if profile.problem:
        return Read((), {}, False)
    results: list[RangeResult] = [
        analyzer.analyze(one) for one in plan_ranges([(profile, "d")], DEFAULT_SETTINGS)
    ]
    known = {
        row.fingerprint.full: KnownTrace(row.trace, row.count, row.exemplar)
        for result in results
        for row in result.traces
    }
    observations = tuple(o for result in results for o in result.observations)
    return Read(observations, known, is_json(profile.layout))


def matched_again(
    found: Read, pack: SignaturePack
) -> Iterator[tuple[Observation, tuple[Match, ...], int]]:
    matcher = Matcher(pack)
    for observation in found.observations:
        name = observation.fingerprint.full if observation.fingerprint else ""
        again = rematch(
            observation, found.known.get(name), matcher, pack, is_on_one_line=found.is_json
        )
        yield observation, again.matches, again.unknown_count


def without(pack: SignaturePack, ids: set[str]) -> SignaturePack:
    return build_pack([s for s in pack.signatures.values() if s.id not in ids])


@pytest.fixture(scope="module")
def readings(pack: SignaturePack) -> list[Read]:
    """Reads the selected logs with the whole pack."""
    analyzer = Analyzer(pack)
    return [read(path, analyzer) for path in FILES]


def test_the_same_pack_changes_nothing(pack: SignaturePack, readings: list[Read]) -> None:
    looked = 0
    for found in readings:
        for observation, matches, _ in matched_again(found, pack):
            assert matches == observation.matches, observation.event
            looked += 1
    assert looked > 500


def test_completely_stored_event_is_matched_as_if_it_were_read_again(
    pack: SignaturePack, readings: list[Read]
) -> None:
    """Reads with half of the signatures, then matches again with all of them."""
    half = without(pack, set(sorted(pack.signatures)[::2]))
    analyzer = Analyzer(half)
    counts: Counter[str] = Counter()
    for path, full in zip(FILES, readings, strict=True):
        wanted = {o.event.offset: o.matches for o in full.observations}
        for observation, matches, unknown in matched_again(read(path, analyzer), pack):
            expected = wanted[observation.event.offset]
            if unknown == 0:
                assert matches == expected, observation.event
            else:
                # No additional match is found, but matches that depend on a number may be missing.
                found = {(m.signature, m.alternative) for m in expected}
                assert {(m.signature, m.alternative) for m in matches} <= found
            counts["unknown" if unknown else "whole"] += 1
            counts["changed"] += matches != observation.matches
    assert counts["changed"] > 100
    assert counts["whole"] > counts["unknown"] > 0
    print(dict(counts))


def test_removed_signatures_no_longer_match(pack: SignaturePack, readings: list[Read]) -> None:
    half = without(pack, set(sorted(pack.signatures)[::2]))
    gone = 0
    for found in readings:
        for observation, matches, _ in matched_again(found, half):
            kept = [m for m in observation.matches if m.signature in half.signatures]
            # A fallback may match because the signature that explained the event was removed.
            added = [m.signature for m in matches if m not in kept]
            assert [m for m in matches if m in kept] == kept, observation.event
            assert all(half.signatures[name].precedence == "fallback" for name in added)
            gone += len(observation.matches) - len(kept)
    assert gone > 100


def test_only_the_kept_one_of_folded_events_is_known(
    pack: SignaturePack, readings: list[Read]
) -> None:
    observation = next(o for o in readings[0].observations if o.fingerprint is None)
    folded = replace(observation, occurrences=7)
    assert rematch(folded, None, Matcher(pack), pack).unknown_count == 6


def test_an_event_whose_trace_is_forgotten_keeps_what_was_found(
    pack: SignaturePack, readings: list[Read]
) -> None:
    observation = next(
        o for found in readings for o in found.observations if o.fingerprint and o.matches
    )
    again = rematch(observation, None, Matcher(pack), pack)
    assert (again.matches, again.unknown_count) == (observation.matches, observation.occurrences)
