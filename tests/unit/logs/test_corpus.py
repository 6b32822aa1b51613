"""What the real logging libraries rendered, in every layout, carrier and mess: the same chains.

The golden chains were written by the program that threw the exceptions, not by this one.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from flink_triage.logs.files import list_inputs
from flink_triage.logs.plan import plan_ranges
from flink_triage.logs.profile import probe
from flink_triage.logs.scan import Scanner
from flink_triage.model import Event, Throwable
from flink_triage.settings import DEFAULT_SETTINGS
from flink_triage.traces import extract

_LAYOUTS = Path(__file__).resolve().parents[2] / "logs" / "layouts"
_GOLDEN = json.loads((_LAYOUTS / "golden.json").read_text(encoding="utf-8"))
_SAID = "It failed with "

Chain = list[tuple[str, str, list[Any]]]

# What a layout does not print cannot be read from it.
_PRINTS_NO_CAUSES = {"json-template-jsonlayout"}
_PRINTS_NO_SUPPRESSED = {"log4j2-root-first"}
# A trace on one line has no blank lines.
_ON_ONE_LINE = {"log4j2-one-line", "log4j2-crlf-encoded"}


def _golden(chain: list[dict[str, Any]]) -> Chain:
    return [(t["type"], t["message"], [_golden(other) for other in t["suppressed"]]) for t in chain]


def _parsed(chain: tuple[Throwable, ...]) -> Chain:
    return [(t.type, t.message, [_parsed(other) for other in t.suppressed]) for t in chain]


def _events(path: Path) -> list[Event]:
    """The notable events of all files below a path; every byte of them is accounted for."""
    scanner = Scanner((), DEFAULT_SETTINGS)
    events: list[Event] = []
    for file in list_inputs([str(path)]).files:
        profile = probe(file, DEFAULT_SETTINGS)
        for byte_range in plan_ranges([(profile, "d")], DEFAULT_SETTINGS):
            scan = scanner.scan(byte_range)
            assert scan.problems == ()
            if profile.compression == "none":
                assert scan.event_bytes + scan.counted_bytes == file.size_bytes
            events.extend(scan.events)
    return events


def _chains(path: Path) -> dict[str, Chain | None]:
    chains: dict[str, Chain | None] = {}
    for event in _events(path):
        message, trace = extract(event.message, event.continuation)
        failure = message.partition("\n")[0].strip().removeprefix(_SAID)
        chains[failure] = _parsed(trace.throwables) if trace is not None else None
    return chains


def _expected(layout: str) -> dict[str, Chain]:
    chains = {name: _golden(chain) for name, chain in _GOLDEN.items()}
    if layout in _PRINTS_NO_CAUSES:
        chains = {name: chain[:1] for name, chain in chains.items()}
    if layout in _PRINTS_NO_SUPPRESSED:
        chains = {n: [(t, m, []) for t, m, _ in chain] for n, chain in chains.items()}
    if layout in _ON_ONE_LINE:
        chains = {
            name: [(t, re.sub("\n+", "\n", m), s) for t, m, s in chain]
            for name, chain in chains.items()
        }
    return chains


@pytest.mark.parametrize("layout", sorted(path.stem for path in _LAYOUTS.glob("*.log")))
def test_each_layout_gives_the_chains_that_were_thrown(layout: str) -> None:
    assert _chains(_LAYOUTS / f"{layout}.log") == _expected(layout)


@pytest.mark.parametrize(
    ("layout", "logger", "thread", "job_id", "is_dated"),
    [
        ("log4j2-stock", "org.apache.flink.runtime.taskmanager.Task", None, None, True),
        ("log4j2-iso-thread", "org.apache.flink.runtime.taskmanager.Task", "main", None, True),
        ("log4j2-epoch-millis", "org.apache.flink.runtime.taskmanager.Task", None, None, True),
        ("log4j2-house", "org.apache.flink.runtime.taskmanager.Task", "main", None, True),
        ("log4j2-mdc", "org.apache.flink.runtime.taskmanager.Task", "main", "job", True),
        ("log4j2-mdc-key", "org.apache.flink.runtime.taskmanager.Task", None, "job", True),
        ("logback-default", "o.a.flink.runtime.taskmanager.Task", "main", None, False),
        ("logback-packaged-mdc", "org.apache.flink.runtime.taskmanager.Task", "main", "job", True),
        ("json-template-ecs", "org.apache.flink.runtime.taskmanager.Task", "main", "job", True),
        ("logback-json-encoder", "org.apache.flink.runtime.taskmanager.Task", "main", "job", True),
        ("log4j1-hadoop", "taskmanager.Task", None, None, True),
    ],
)
def test_a_header_states_its_parts(
    layout: str, logger: str, thread: str | None, job_id: str | None, is_dated: bool
) -> None:
    event = _events(_LAYOUTS / f"{layout}.log")[0]
    job = "d1dfe4260f6b4a9c8e7d6c5b4a392817" if job_id else None
    assert (event.level, event.logger, event.thread, event.job_id) == ("WARN", logger, thread, job)
    assert (event.logged_at is not None) == is_dated
