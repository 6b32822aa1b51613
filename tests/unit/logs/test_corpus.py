"""Logs of real logging libraries yield the original cause chains in each layout and carrier.

The same holds for distorted copies, except for information that a layout does not print or a
distortion removes. The program that threw the exceptions wrote the golden chains.
"""

from __future__ import annotations

import gzip
import html
import io
import json
import re
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flink_triage.logs.detect.profile import probe
from flink_triage.logs.inputs.byte_ranges import plan_ranges
from flink_triage.logs.inputs.files import list_inputs
from flink_triage.logs.readers.scan import Scanner
from flink_triage.model import Event, Throwable
from flink_triage.settings import DEFAULT_SETTINGS
from flink_triage.traces import extract

_LAYOUTS = Path(__file__).resolve().parents[2] / "logs" / "layouts"
_GOLDEN = json.loads((_LAYOUTS.parents[1] / "golden" / "layouts.json").read_text(encoding="utf-8"))
_PREFIX = "It failed with "

Chain = list[tuple[str, str, list[Any]]]

# Information that a layout does not print cannot be read.
_PRINTS_NO_CAUSES = {"json-template-jsonlayout"}
_PRINTS_NO_SUPPRESSED = {"log4j2-root-first"}
# A stack trace on a single line has no blank lines.
_ON_ONE_LINE = {"log4j2-one-line", "log4j2-crlf-encoded"}


def _golden(chain: list[dict[str, Any]]) -> Chain:
    return [(t["type"], t["message"], [_golden(other) for other in t["suppressed"]]) for t in chain]


def _parsed(chain: tuple[Throwable, ...]) -> Chain:
    return [(t.type, t.message, [_parsed(other) for other in t.suppressed]) for t in chain]


def _events(path: Path) -> list[Event]:
    """Returns the notable events of all files in a path. Each byte must be accounted for."""
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
        failure = message.partition("\n")[0].strip().removeprefix(_PREFIX)
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


# --- carriers and distortions ------------------------------------------------------------------

Transform = Callable[[str], "str | bytes"]
_STAMP = "2026-11-21T05:00:00.{:09d}Z"


def _each(carry: Callable[[int, str], str]) -> Transform:
    def transform(text: str) -> str:
        lines = text.removesuffix("\n").split("\n")
        return "".join(f"{carry(number, line)}\n" for number, line in enumerate(lines))

    return transform


def _cri(number: int, line: str) -> str:
    stamp = f"{_STAMP.format(number)} stdout"
    if len(line) < 90:
        return f"{stamp} F {line}"
    return f"{stamp} P {line[:60]}\n{stamp} P {line[60:80]}\n{stamp} F {line[80:]}"


def _docker(number: int, line: str) -> str:
    at = _STAMP.format(number)
    pieces = [line[:70], line[70:] + "\n"] if len(line) > 70 else [line + "\n"]
    return "\n".join(json.dumps({"log": p, "stream": "stdout", "time": at}) for p in pieces)


def _two_pods(text: str) -> str:
    """Writes the same log for two pods. Only the failures of the first pod keep their names."""
    return _each(
        lambda n, s: f"[pod/tm-1/main] {s}\n[pod/tm-2/main] {s.replace(_PREFIX, 'Elsewhere ')}"
    )(text)  # type: ignore[return-value]


def _yarn(text: str) -> str:
    head = "Container: container_1600000000000_0001_01_00000{} on node{}_45454\n" + "=" * 70
    body = f"\nLogType:taskmanager.log\nLogLength:{len(text)}\nLogContents:\n"
    return f"{head.format(1, 1)}{body}{text}\nEnd of LogType:taskmanager.log\n"


def _tar(text: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        info = tarfile.TarInfo("support/tm.log")
        info.size = len(text.encode())
        archive.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


_indent = _each(lambda _, s: f"    {s}")
_CARRIERS: dict[str, Transform] = {
    "CRI with partial lines": _each(_cri),
    "docker json-file with pieces": _each(_docker),
    "kubectl logs --prefix": _each(lambda n, s: f"[pod/orders-tm-1-1/flink-main] {s}"),
    "kubectl logs --timestamps": _each(lambda n, s: f"{_STAMP.format(n)} {s}"),
    "kubectl logs --prefix --timestamps": _each(
        lambda n, s: f"[pod/orders-tm-1-1/flink-main] {_STAMP.format(n)} {s}"
    ),
    "CRI from kubectl's prefix": _each(lambda n, s: f"[pod/a-b/c] {_STAMP.format(n)} stdout F {s}"),
    "two pods in turn": _two_pods,
    "stern": _each(lambda n, s: f"orders-taskmanager-1-1 flink-main-container {s}"),
    "a pod's name": _each(lambda n, s: f"orders-jobmanager-7f95587856-cz8j7 {s}"),
    "Docker Desktop's time": _each(lambda n, s: f"2026-11-21 05:00:{n % 60:02d} {s}"),
    "svlogd -tt": _each(lambda n, s: f"2026-11-21_05:00:{n % 60:02d}.54473 {s}"),
    "a web console's time": _each(lambda n, s: f"2026/11/21 \u4e0a\u53485:00:{n % 60:02d}\t{s}"),
    "a web console's time in English": _each(lambda n, s: f"11/21/2026, 5:00:{n % 60:02d} AM {s}"),
    "a scheduler's time and level": _each(
        lambda n, s: f"2026-11-21 05:00:00,{n % 1000:03d} [INFO] {s}"
    ),
    "logging of Python": _each(lambda n, s: f"INFO:apache_beam.utils.subprocess_server:{s}"),
    "strings of a JSON array": _each(lambda n, s: f"  {json.dumps(s)},"),
    "docker compose": _each(lambda n, s: f"taskmanager-1  | {s}"),
    "syslog": _each(lambda n, s: f"Nov 21 05:00:00 node1 flink[123]: {s}"),
    "journalctl with micros": _each(
        lambda n, s: f"2026-11-21T05:00:00.{n:06d}+0000 node1 flink[123]: {s}"
    ),
    "RFC 5424": _each(lambda n, s: f"<14>1 {_STAMP.format(n)} node1 flink 123 - - {s}"),
    "grep -n": _each(lambda n, s: f"{n + 1}:{s}"),
    "grep -rn": _each(lambda n, s: f"logs/tm.log:{n + 1}:{s}"),
    "grep -r": _each(lambda n, s: f"logs/flink-taskmanager.log:{s}"),
    "grep -nC": _each(lambda n, s: f"{n + 1}{':' if 'ERROR' in s or 'WARN' in s else '-'}{s}"),
    "a Markdown quote": _each(lambda n, s: f"> {s}"),
    "Markdown's code by indentation": lambda text: (
        f"This happened:\n\n{_indent(text)}\nWhat now?\n"
    ),
    "indented but for its first line": lambda text: str(_indent(text)).lstrip(),
    "broken by a terminal": _each(
        lambda _, s: "\n".join(s[at : at + 100] for at in range(0, len(s) or 1, 100))
    ),
    "a comment of a program": _each(lambda n, s: f"// {s}"),
    "a comment of a script": _each(lambda n, s: f"#   {s}" if s[:1].isdigit() else f"# {s}"),
    "a comment above a class": _each(lambda n, s: f"\t * {s}"),
    "a text of a program": _each(lambda n, s: f"    + {json.dumps(s + chr(10))}"),
    "a text of another program": _each(lambda n, s: f"{json.dumps(s + chr(10))} +"),
    "a Markdown fence": lambda text: f"This happened:\n\n```java\n{text}```\n\nWhat now?\n",
    "HTML": html.escape,
    "ANSI colours": _each(lambda n, s: s.replace("WARN ", "\x1b[33mWARN \x1b[m")),
    "YARN": _yarn,
    "a support bundle": _tar,
    "gzip": lambda text: gzip.compress(text.encode()),
    "UTF-16": lambda text: text.encode("utf-16"),
    "Windows": lambda text: text.replace("\n", "\r\n"),
}
_MESS: dict[str, Transform] = {
    "frames not indented": lambda text: re.sub(r"(?m)^\s+(?=at |\.\.\. )", "", text),
    "frames indented by spaces": lambda text: text.replace("\t", "        "),
    "frames indented by one blank": lambda text: text.replace("\t", " "),
    "frames indented by no-break spaces": lambda text: text.replace("\t", "\u00a0\u00a0"),
    "blank lines between causes": lambda text: text.replace("\nCaused by:", "\n\nCaused by:"),
    "a blank line before each frame": lambda text: re.sub(r"\n(?=\tat )", "\n\n", text),
    "no packaging data": lambda text: re.sub(r"(?m)(?<=\)) ~?\[[^\]\n]*\]$", "", text),
    "module and loader names": lambda text: text.replace("\tat ", "\tat app//java.base@17.0.1/"),
}
# Without indentation, a cause of a suppressed throwable looks like a cause of the main throwable.
_LOST_IN_MESS = {"frames not indented": {"suppressed"}}
_PLAIN = ("log4j2-stock", "log4j2-iso-thread", "log4j2-mdc", "logback-flink", "log4j1-flink")


def _carried(layout: str, transform: Transform, folder: Path) -> dict[str, Chain | None]:
    carried = transform((_LAYOUTS / f"{layout}.log").read_text(encoding="utf-8"))
    data = carried if isinstance(carried, bytes) else carried.encode()
    (folder / "carried.log").write_bytes(data)
    return {k: v for k, v in _chains(folder / "carried.log").items() if k in _GOLDEN}


@pytest.mark.parametrize("carrier", sorted(_CARRIERS))
@pytest.mark.parametrize("layout", _PLAIN)
def test_each_carrier_gives_the_chains_that_were_thrown(
    layout: str, carrier: str, tmp_path: Path
) -> None:
    assert _carried(layout, _CARRIERS[carrier], tmp_path) == _expected(layout)


@pytest.mark.parametrize("mess", sorted(_MESS))
@pytest.mark.parametrize("layout", _PLAIN)
def test_each_mess_gives_the_chains_that_were_thrown(
    layout: str, mess: str, tmp_path: Path
) -> None:
    got = _carried(layout, _MESS[mess], tmp_path)
    lost = _LOST_IN_MESS.get(mess, set())
    expected = {k: v for k, v in _expected(layout).items() if k not in lost}
    assert {k: v for k, v in got.items() if k not in lost} == expected


@pytest.mark.parametrize("inner", ["json-template-ecs", "json-template-logstash", "gelf-layout"])
@pytest.mark.parametrize(
    "carrier",
    [
        "CRI with partial lines",
        "docker json-file with pieces",
        "kubectl logs --prefix",
        "stern",
        "syslog",
        "gzip",
    ],
)
def test_json_is_carried_too(inner: str, carrier: str, tmp_path: Path) -> None:
    assert _carried(inner, _CARRIERS[carrier], tmp_path) == _expected(inner)
