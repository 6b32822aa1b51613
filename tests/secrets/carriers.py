"""Builds logs that contain given texts, with one function per carrier or format."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping

Carrier = Callable[[int, str], str]

_TRACE = (
    "\tat com.acme.orders.Client.connect(Client.java:41) ~[orders.jar:?]\n"
    "\tat org.apache.flink.streaming.api.operators.StreamMap.processElement(StreamMap.java:38)"
)


def _header(number: int, level: str = "ERROR", logger: str = "com.acme.orders.Client") -> str:
    # One event per minute, because similar events of the same minute are folded.
    at = f"2026-11-21 {number // 60:02}:{number % 60:02}:23,468"
    return f"{at} {level:<5} {logger} [] - "


def _event(number: int, text: str) -> str:
    return f"{_header(number)}call failed: {text}"


def _each_line(number: int, text: str, carry: Callable[[str], Iterable[str]]) -> str:
    lines = _event(number, text).split("\n")
    return "\n".join(piece for line in lines for piece in carry(line))


def _cri(number: int, text: str) -> str:
    """Split at a column, as kubelet does at 16 KiB, so that some secrets are split, too."""

    def carry(line: str) -> Iterable[str]:
        pieces = [line[at : at + 90] for at in range(0, len(line), 90)] or [""]
        for index, piece in enumerate(pieces):
            mark = "F" if index == len(pieces) - 1 else "P"
            yield f"2026-11-21T06:47:23.{number:09}Z stderr {mark} {piece}"

    return _each_line(number, text, carry)


def _docker(number: int, text: str) -> str:
    at = f"2026-11-21T06:47:23.{number:09}Z"
    return _each_line(
        number,
        text,
        lambda line: [json.dumps({"log": line + "\n", "stream": "stdout", "time": at})],
    )


def _ecs(number: int, text: str) -> str:
    return json.dumps(
        {
            "@timestamp": f"2026-11-21T{number // 60:02}:{number % 60:02}:23.468Z",
            "log.level": "ERROR",
            "log.logger": "com.acme.orders.Client",
            "process.thread.name": "main",
            "message": f"call failed: {text}",
            "error.stack_trace": f"java.io.IOException: {text}\n{_TRACE}",
        }
    )


def _kubectl(number: int, text: str) -> str:
    return _each_line(number, text, lambda line: [f"[pod/orders-tm-1-1/flink-main] {line}"])


def _yarn(number: int, text: str) -> str:
    event = _event(number, text)
    return (
        f"Container: container_1700000000000_0001_01_{number:06} on node1.example_45454\n"
        f"LogType:taskmanager.log\nLogLength:{len(event)}\nLogContents:\n{event}\n"
        "End of LogType:taskmanager.log\n"
    )


def _trace(number: int, text: str) -> str:
    return (
        f"{_header(number)}Job failed\n"
        f"org.apache.flink.util.FlinkException: cannot open: {text}\n{_TRACE}\n"
        f"Caused by: java.io.IOException: {text}\n{_TRACE}"
    )


def _configuration(number: int, text: str) -> str:
    logger = "org.apache.flink.configuration.GlobalConfiguration"
    return (
        f"{_header(number, 'INFO', logger)}"
        f"Loading configuration property: env.java.opts.all, {text}"
    )


def _flattened(number: int, text: str) -> str:
    trace = (
        f"java.io.IOException: {text}\n{_TRACE}\nCaused by: java.io.IOException: {text}\n{_TRACE}"
    )
    flat = trace.replace("\n", "\\n").replace("\t", "\\t")
    return f"{_header(number)}Job failed {flat}"


CARRIERS: Mapping[str, Carrier] = {
    "plain": _event,
    "CRI": _cri,
    "docker json-file": _docker,
    "JSON lines, ECS": _ecs,
    "kubectl logs --prefix": _kubectl,
    "YARN": _yarn,
    "message of a stack trace": _trace,
    "effective configuration": _configuration,
    "flattened to one line": _flattened,
}


def log_of(carrier: Carrier, texts: Iterable[str]) -> str:
    """A log with one event per text."""
    return "".join(carrier(number, text) + "\n" for number, text in enumerate(texts, start=1))
