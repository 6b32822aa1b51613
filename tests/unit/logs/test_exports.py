"""Documents exported from log stores contain the same cause chains as the log, in any order."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flink_triage.logs.detect.profile import probe
from flink_triage.logs.inputs.files import list_inputs
from flink_triage.logs.readers.scan import Scanner
from flink_triage.model import ByteRange, Event
from flink_triage.settings import DEFAULT_SETTINGS

_LINES = [
    "2026-11-21 06:48:22,100 INFO  org.apache.flink.Foo [] - all is well",
    "2026-11-21 06:48:23,468 ERROR org.apache.flink.Foo [] - it failed",
    'java.io.IOException: No space left on "device", he said',
    "\tat org.apache.flink.Foo.bar(Foo.java:12)",
    "Caused by: java.lang.IllegalStateException: später",
    "\tat org.apache.flink.Foo.baz(Foo.java:13)",
    "2026-11-21 06:48:24,468 INFO  org.apache.flink.Foo [] - all is well again",
]
_EVENTS = [_LINES[:1], _LINES[1:6], _LINES[6:]]
_EXPECTED = [("ERROR", "it failed", "\n".join(_LINES[2:6]))]
_TIMES = [f"2026-11-21T06:48:{22 + n:02}.000Z" for n in range(len(_LINES))]
_NANOS = [str(1_795_243_702_000_000_000 + n * 1_000_000_000) for n in range(len(_LINES))]


def _csv(head: list[str], rows: list[list[str]], delimiter: str = ",") -> str:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter)
    writer.writerows([head, *rows])
    return out.getvalue()


def _per_line(make: Callable[[str, str], Any]) -> list[Any]:
    return [make(time, line) for time, line in zip(_TIMES, _LINES, strict=True)]


def _per_event(make: Callable[[str, str], Any]) -> list[Any]:
    return [make(t, "\n".join(e)) for t, e in zip(_TIMES, _EVENTS, strict=False)]


def _source(time: str, text: str) -> dict[str, Any]:
    return {"_index": "flink", "_source": {"@timestamp": time, "message": text, "host": "n1"}}


def _field(name: str, value: str) -> dict[str, str]:
    return {"field": name, "value": value}


_LOKI = {
    "status": "success",
    "data": {
        "resultType": "streams",
        "result": [
            {
                "stream": {"pod": "tm-1"},
                "values": [list(v) for v in zip(_NANOS, _LINES, strict=True)][::-1],
            }
        ],
        "stats": {"summary": {"bytesProcessedPerSecond": 1}},
    },
}
_CLOUDWATCH = {
    "events": _per_event(lambda t, m: {"timestamp": 1795243702000, "message": m}),
    "searchedLogStreams": [],
}
_INSIGHTS = {
    "results": _per_event(lambda t, m: [_field("@timestamp", t), _field("@message", m)]),
    "statistics": {"recordsMatched": 3.0},
    "status": "Complete",
}
_ELASTIC = {"took": 3, "hits": {"total": {"value": 3}, "hits": _per_event(_source)}}
_ECS = [
    {"@timestamp": _TIMES[0], "log.level": "INFO", "message": "all is well"},
    {
        "@timestamp": _TIMES[1],
        "log": {"level": "ERROR", "logger": "org.apache.flink.Foo"},
        "message": "it failed",
        "error": {"stack_trace": "\n".join(_LINES[2:6])},
    },
]

_DOCUMENTS: dict[str, str] = {
    "Loki's API, newest first": json.dumps(_LOKI),
    "Loki's API, pretty-printed": json.dumps(_LOKI, indent=2),
    "Grafana's JSON, newest first": json.dumps(
        [{"line": s, "timestamp": n, "date": t, "fields": {"pod": "tm-1"}}
         for s, n, t in zip(_LINES, _NANOS, _TIMES, strict=True)][::-1],
        indent=2,
    ),
    "Grafana's CSV, newest first": _csv(
        ["Time", "Line", "tsNs"],
        [[t, s, n] for s, n, t in zip(_LINES, _NANOS, _TIMES, strict=True)][::-1],
    ),
    "CloudWatch filter-log-events": json.dumps(_CLOUDWATCH, indent=4),
    "CloudWatch filter-log-events on one line": json.dumps(_CLOUDWATCH),
    "CloudWatch Insights JSON": json.dumps(_INSIGHTS, indent=4),
    "CloudWatch Insights CSV": _csv(["@timestamp", "@message"], _per_event(lambda t, m: [t, m])),
    "CloudWatch Insights CSV, a line a row, newest first": _csv(
        ["@timestamp", "@message", "@logStream"], _per_line(lambda t, m: [t, m, "tm"])[::-1]
    ),
    "Elastic _search": json.dumps(_ELASTIC, indent=1),
    "Kibana CSV": _csv(
        ["@timestamp", "message", "host.name"],
        _per_event(lambda t, m: ["Nov 21, 2026 @ 06:48:22.000", m, "n1"]),
    ),
    "CSV with semicolons": _csv(["date", "message"], _per_event(lambda t, m: [t, m]), ";"),
    "Kibana CSV of structured events": _csv(
        ["@timestamp", "log.level", "log.logger", "message", "error.stack_trace"],
        [[_TIMES[1], "ERROR", "org.apache.flink.Foo", "it failed", "\n".join(_LINES[2:6])]],
    ),
    "pretty-printed ECS in an array": json.dumps(_ECS, indent=2),
    "ECS in an array on one line": json.dumps(_ECS),
    "pretty-printed ECS without an array": "\n".join(json.dumps(e, indent=2) for e in _ECS),
    "a document of another store": json.dumps(
        {"took": 3, "tags": [{"a": 1}], "stream": {"pages": _per_event(
            lambda t, m: {"timestamp": t, "message": m}
        )}},
        indent=2,
    ),
    "a document of another store on one line": json.dumps(
        {"took": 3, "lines_found": _per_event(lambda t, m: {"timestamp": t, "message": m})}
    ),
    "JSON lines of a collector": "".join(
        json.dumps(d) + "\n" for d in _per_line(lambda t, m: {"timestamp": t, "message": m})
    ),
    "logcli, newest first": "".join(
        f'{t} {{app="flink", pod="tm-1"}} {m}\n' for t, m in _per_event(lambda t, m: (t, m))[::-1]
    ),
    "JSON lines of logcli": "".join(
        json.dumps({"labels": {"pod": "tm-1"}, "line": s, "timestamp": t}) + "\n"
        for s, t in zip(_LINES, _TIMES, strict=True)
    ),
    "JSON lines of journalctl": "".join(
        json.dumps({"__REALTIME_TIMESTAMP": "1795243702000000", "_HOSTNAME": "n1", "MESSAGE": s})
        + "\n"
        for s in _LINES
    ),
}  # fmt: skip


def _read(path: Path) -> list[Event]:
    file = list_inputs([str(path)]).files[0]
    profile = probe(file, DEFAULT_SETTINGS)
    scan = Scanner((), DEFAULT_SETTINGS).scan(ByteRange(profile, "d"))
    assert scan.event_bytes + scan.counted_bytes == file.size_bytes
    assert sum(v.byte_count for v in scan.volumes) == file.size_bytes
    return list(scan.events)


@pytest.mark.parametrize("name", sorted(_DOCUMENTS))
def test_export_yields_the_events_of_the_log(name: str, tmp_path: Path) -> None:
    path = tmp_path / "export.txt"
    path.write_text(_DOCUMENTS[name], encoding="utf-8", newline="")
    events = _read(path)
    assert [(e.level, e.message, e.continuation) for e in events] == _EXPECTED
    assert events[0].logged_at is not None


@pytest.mark.parametrize("name", ["Kibana CSV", "Elastic _search", "CloudWatch Insights JSON"])
def test_evidence_names_the_line_of_the_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / "export.txt"
    path.write_text(_DOCUMENTS[name], encoding="utf-8", newline="")
    line = path.read_text(encoding="utf-8").split("\n")[_read(path)[0].line - 1]
    following = path.read_text(encoding="utf-8").split("\n")[_read(path)[0].line :]
    assert "it failed" in "\n".join([line, *following[:8]])


@pytest.mark.parametrize("cut", [0.35, 0.6, 0.8, 0.95])
@pytest.mark.parametrize("name", sorted(_DOCUMENTS))
def test_a_document_that_breaks_off_loses_no_byte(name: str, cut: float, tmp_path: Path) -> None:
    path = tmp_path / "export.txt"
    data = _DOCUMENTS[name].encode()
    path.write_bytes(data[: int(len(data) * cut)])
    _read(path)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[main] INFO org.apache.flink.Foo - x\n" * 3, id="a thread in brackets"),
        pytest.param("time flies, message in a bottle\nand so on\n", id="prose with commas"),
        pytest.param('{"level":"INFO","message":"m","time":1}\n' * 3, id="JSON lines"),
        pytest.param(
            '{"level":"INFO","message":"m","all":[{"message":"x"}]}\n' * 3, id="arrays in records"
        ),
        pytest.param("[]\n", id="an empty array"),
        pytest.param('{"a": [\n', id="a broken object"),
    ],
)
def test_text_that_is_not_an_export_is_read_as_a_log(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(text)
    profile = probe(list_inputs([str(path)]).files[0], DEFAULT_SETTINGS)
    assert "export" not in profile.carrier or text.startswith('{"a"')
    _read(path)
