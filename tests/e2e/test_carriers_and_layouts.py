"""A log produces the same diagnosis in many carriers, layouts, encodings, and compression formats.

The plain log is a real log in the default layout. Most transformations reproduce the output of a
collector, a log viewer, or another logging configuration.
"""

from __future__ import annotations

import bz2
import gzip
import html
import json
import lzma
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import count
from pathlib import Path

import pytest

from flink_triage.local import Options, run_local, scan_inputs

LOGS = Path(__file__).resolve().parents[1] / "logs"
DEPLOYMENTS = (
    "checkpoint/tolerable-threshold-exceeded/disk-full-1.16.0",
    "operator/user-code-exception/npe-2.1.1",
    "rocksdb/bad-table-magic/flip-1.16.0",
)
HEADER = re.compile(r"^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d),(\d{3}) (\w+)\s+(\S+)\s+\[\] - (.*)$")
Transform = Callable[[str], "str | bytes"]


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n")


def each_line(carry: Callable[[int, str], str]) -> Transform:
    return lambda text: "".join(carry(i, line) + "\n" for i, line in enumerate(_lines(text)))


def newest_first(text: str) -> list[tuple[str, str]]:
    """Pairs each line with a time and returns the pairs newest first, as log stores do."""
    start = datetime(2026, 11, 21, 5, tzinfo=UTC)
    times = (start + timedelta(milliseconds=i) for i in count())
    return [(f"{at:%FT%T.%f}Z", s) for at, s in zip(times, _lines(text), strict=False)][::-1]


def each_header(lay_out: Callable[..., str]) -> Transform:
    def transform(text: str) -> str:
        headers = ((line, HEADER.match(line)) for line in _lines(text))
        return "".join((lay_out(*m.groups()) if m else line) + "\n" for line, m in headers)

    return transform


def _events(text: str) -> list[list[str]]:
    events: list[list[str]] = []
    for line in _lines(text):
        if HEADER.match(line) or not events:
            events.append([line])
        else:
            events[-1].append(line)
    return events


def each_event(join: Callable[[list[str]], str]) -> Transform:
    return lambda text: "".join(join(event) + "\n" for event in _events(text))


def as_json(make: Callable[..., dict[str, object]], stack_key: str | None) -> Transform:
    def join(event: list[str]) -> str:
        header = HEADER.match(event[0])
        if header is None:
            return event[0]
        content = make(*header.groups())
        if len(event) > 1 and stack_key:
            content[stack_key] = "\n".join(event[1:])
        return json.dumps(content)

    return each_event(join)


def cri(text: str) -> str:
    carried = []
    for number, line in enumerate(_lines(text)):
        stamp = f"2026-11-21T05:00:00.{number:09d}Z stdout"
        if len(line) > 200:
            carried += [f"{stamp} P {line[:200]}", f"{stamp} F {line[200:]}"]
        else:
            carried.append(f"{stamp} F {line}")
    return "\n".join(carried) + "\n"


def docker(number: int, line: str) -> str:
    at = f"2026-11-21T05:00:00.{number:09d}Z"
    return json.dumps({"log": line + "\n", "stream": "stdout", "time": at})


TRANSFORMS: dict[str, Transform] = {
    "syslog of RFC 5424": each_line(
        lambda i, s: f"<14>1 2026-11-21T05:00:00.{i:06d}Z node1 flink 123 - - {s}"
    ),
    "grep -C of a folder": each_line(
        lambda i, s: f"logs/jm.log:{i + 1}:{s}" if HEADER.match(s) else f"logs/jm.log-{i + 1}-{s}"
    ),
    "docker json-file over CRI": each_line(
        lambda i, s: docker(i, f"2026-11-21T05:00:00.{i:09d}Z stdout F {s}")
    ),
    "kubectl --prefix --timestamps": each_line(
        lambda i, s: f"[pod/orders-tm-1-1/flink-main] 2026-11-21T05:00:00.{i:09d}Z {s}"
    ),
    "Markdown fence": lambda text: f"```\n{text}```\n",
    "CRI with partial lines": cri,
    "docker json-file": each_line(docker),
    "kubectl logs --prefix": each_line(lambda i, s: f"[pod/orders-tm-1-1/flink-main] {s}"),
    "kubectl logs --timestamps": each_line(lambda i, s: f"2026-11-21T05:00:00.{i:09d}Z {s}"),
    "stern": each_line(lambda i, s: f"orders-jobmanager-7d8f flink-main {s}"),
    "docker compose": each_line(lambda i, s: f"jobmanager-1  | {s}"),
    "syslog": each_line(lambda i, s: f"Nov 21 05:00:00 node1 flink[123]: {s}"),
    "grep -n": each_line(lambda i, s: f"{i + 1}:{s}"),
    "grep -rn": each_line(lambda i, s: f"logs/jm.log:{i + 1}:{s}"),
    "Markdown quote": each_line(lambda i, s: f"> {s}"),
    "ANSI colours": each_header(
        lambda d, t, ms, lv, lg, m: (
            f"{d} {t},{ms} \x1b[32m{lv:<5}\x1b[0m \x1b[36m{lg}\x1b[0m [] - {m}"
        )
    ),
    "docker compose -t": each_line(
        lambda i, s: f"jobmanager-1  | 2026-11-21T05:00:00.{i:09d}Z {s}"
    ),
    "stern -t": each_line(
        lambda i, s: f"orders-jobmanager-7d8f flink-main 2026-11-21T05:00:00.{i:09d}Z {s}"
    ),
    "journalctl -o short-iso": each_line(
        lambda i, s: f"2026-11-21T05:00:00+0000 node1 flink[123]: {s}"
    ),
    "Fluent Bit JSON lines": each_line(
        lambda i, s: json.dumps({"date": 1795150800 + i / 1000, "log": s, "stream": "stdout"})
    ),
    "fluentd stdout": each_line(
        lambda i, s: (
            f"2026-11-21 05:00:00.{i:09d} +0000 kube.flink: "
            + json.dumps({"log": s, "stream": "stdout"})
        )
    ),
    "Loki API, newest first": lambda text: json.dumps(
        {"data": {"result": [{"stream": {"app": "flink"}, "values": newest_first(text)}]}}
    ),
    "logcli, newest first": lambda text: "".join(
        f'{at} {{app="flink", pod="orders"}} {line}\n' for at, line in newest_first(text)
    ),
    "JSON lines, newest first": lambda text: "".join(
        json.dumps({"timestamp": at, "line": line}) + "\n" for at, line in newest_first(text)
    ),
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "HTML entities": html.escape,
    "UTF-16": lambda text: text.encode("utf-16"),
    "byte order mark": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "gzip": lambda text: gzip.compress(text.encode()),
    "gzip of two members": lambda text: (
        gzip.compress(text.encode()[:9999]) + gzip.compress(text.encode()[9999:])
    ),
    "bzip2": lambda text: bz2.compress(text.encode()),
    "xz": lambda text: lzma.compress(text.encode()),
    "zstd": lambda text: pytest.importorskip("backports.zstd").compress(text.encode()),
    "lz4": lambda text: pytest.importorskip("lz4.frame").compress(text.encode()),
    "UTF-16 without a mark": lambda text: text.encode("utf-16-le"),
    "logback default": each_header(
        lambda d, t, ms, lv, lg, m: f"{t}.{ms} [main] {lv:<5} {lg} - {m}"
    ),
    "logback with date": each_header(
        lambda d, t, ms, lv, lg, m: f"{d} {t}.{ms} [main] {lv:<5} {lg} - {m}"
    ),
    "Spring": each_header(
        lambda d, t, ms, lv, lg, m: f"{d}T{t}.{ms}+00:00  {lv} 1 --- [main] {lg} : {m}"
    ),
    "ISO with Z": each_header(lambda d, t, ms, lv, lg, m: f"{d}T{t}.{ms}Z {lv} [{lg}] {m}"),
    "ISO with offset and micros": each_header(
        lambda d, t, ms, lv, lg, m: f"{d}T{t}.{ms}000+0000 [{lv}] {lg}: {m}"
    ),
    "columns with pipes": each_header(
        lambda d, t, ms, lv, lg, m: f"{d} {t},{ms} | {lv:<5} | main | {lg} | {m}"
    ),
    "level first, no date": each_header(lambda d, t, ms, lv, lg, m: f"{lv:<5} {lg} - {m}"),
    "log4j1": each_header(
        lambda d, t, ms, lv, lg, m: (
            f"{d[2:].replace('-', '/')} {t} {lv} {'.'.join(lg.split('.')[-2:])}: {m}"
        )
    ),
    "thread before level": each_header(
        lambda d, t, ms, lv, lg, m: f"{d} {t},{ms} [flink-akka-4] {lv:<5} {lg} - {m}"
    ),
    "ECS JSON": as_json(
        lambda d, t, ms, lv, lg, m: {
            "@timestamp": f"{d}T{t}.{ms}Z",
            "log.level": lv,
            "message": m,
            "log.logger": lg,
        },
        "error.stack_trace",
    ),
    "Logstash JSON": as_json(
        lambda d, t, ms, lv, lg, m: {
            "@version": "1",
            "@timestamp": f"{d}T{t}.{ms}Z",
            "level": lv,
            "message": m,
            "logger_name": lg,
        },
        "stack_trace",
    ),
    "trace on one line with tabs": each_event("\t".join),
    "trace on one line with |": each_event("|".join),
    "trace on one line with \\n": each_event("\\n".join),
    "frames not indented": lambda text: re.sub(r"(?m)^\t", "", text),
    "frames indented by spaces": lambda text: re.sub(r"(?m)^\t", "        ", text),
    "blank line before each cause": lambda text: text.replace("\nCaused by:", "\n\nCaused by:"),
    "no packaging data": lambda text: re.sub(r"(?m) ~?\[[^\]]*\]$", "", text),
}


def _write(folder: Path, transform: Transform) -> Path:
    for deployment in DEPLOYMENTS:
        target = folder / deployment
        target.mkdir(parents=True)
        for source in sorted((LOGS / deployment / "logs").glob("*.log")):
            content = transform(source.read_text(encoding="utf-8"))
            target.joinpath(source.name).write_bytes(
                content if isinstance(content, bytes) else content.encode()
            )
    return folder


def _findings(folder: Path) -> tuple[dict[str, tuple[str, str]], set[str]]:
    """Returns the first verdict and diagnosis of each deployment, and root cause fingerprints.

    The fingerprints are limited to matched stack traces with frames, because an exception without
    frames in a header line can be a part of the message.
    """
    result = run_local([str(folder)], Options())
    leading: dict[str, tuple[str, str]] = {}
    for incident in result.incidents:
        first = incident.diagnoses[0].signature if incident.diagnoses else ""
        leading.setdefault(incident.deployment, (incident.verdict, first))
    scanned = scan_inputs([str(folder)], Options(), lambda done, total: None)
    return leading, {
        o.fingerprint.root_cause
        for r in scanned.results
        for o in r.observations
        if o.fingerprint is not None and o.has_frames and o.matches
    }


@cache
def _plain(folder: Path) -> tuple[dict[str, tuple[str, str]], set[str]]:
    return _findings(_write(folder, lambda text: text))


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return _plain(tmp_path_factory.mktemp("plain"))


@pytest.mark.parametrize("name", sorted(TRANSFORMS))
def test_every_carrier_and_layout_gives_the_same_diagnosis(name, plain, tmp_path):
    leading, root_causes = _findings(_write(tmp_path, TRANSFORMS[name]))
    assert leading == plain[0]
    assert root_causes == plain[1]
