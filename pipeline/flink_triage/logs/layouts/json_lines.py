"""Parses a JSON log line into a ``Header`` that includes the stack trace.

ECS, GELF, Logstash, GCP, log4j2's ``JSONLayout`` and ``JsonTemplateLayout``, and the CloudWatch
format of Amazon Managed Service for Apache Flink have different field names. All known names are
tried, in a fixed order.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from flink_triage.logs.layouts.headers import Header, HeaderKind, canonical_level, header_kind_of
from flink_triage.logs.layouts.timestamps import parse_timestamp

TIME_KEYS = (
    "@timestamp",
    "__REALTIME_TIMESTAMP",
    "timestamp",
    "time",
    "ts",
    "timeMillis",
    "instant",
    "eventTime",
    "date",
    "asctime",
    "datetime",
    "log_time",
    "timestamp_ms",
)
LEVEL_KEYS = (
    "log.level",
    "level",
    "severity",
    "levelname",
    "loglevel",
    "log_level",
    "messageType",
    "level_name",
    "_level",
    "lvl",
)
_LOGGER = (
    "log.logger",
    "logger_name",
    "loggerName",
    "logger",
    "_logger",
    "class",
    "className",
    "category",
    "_Logger",
    "_className",
)
_THREAD = (
    "process.thread.name",
    "thread_name",
    "threadName",
    "thread",
    "_thread",
    "_Thread",
    "_threadName",
)
MESSAGE_KEYS = (
    "message",
    "@message",
    "msg",
    "short_message",
    "full_message",
    "text",
    "body",
    "log",
    "line",
    "MESSAGE",
)
STACK_KEYS = (
    "error.stack_trace",
    "stack_trace",
    "stackTrace",
    "stacktrace",
    "stack",
    "error.stack",
    "err.stack",
    "exception.stack",
    "exception.stacktrace",
    "exception.stack_trace",
    "exception.exception_message",
    "throwableInformation",
    "throwable",
    "thrown",
    "thrown.extendedStackTrace",
    "extendedStackTrace",
    "exception",
    "error",
    "err",
    "_StackTrace",
    "_stack_trace",
    "full_exception",
    "full_message",
)
_JOB = (
    "flink-job-id",
    "jobId",
    "job_id",
    "mdc.flink-job-id",
    "contextMap.flink-job-id",
    "_flink-job-id",
)
# The levels for the syslog severities 0 to 7, which GELF uses.
_SYSLOG_LEVELS = ("FATAL", "FATAL", "FATAL", "ERROR", "WARN", "INFO", "INFO", "DEBUG")
_RAW = ("@message", "message", "log", "line", "_raw", "msg", "body", "content", "event.original",
        "textPayload", "textpayload", "_source.message", "MESSAGE")  # fmt: skip
# Fields that distinguish the streams in a log store.
_SOURCE = (
    "@logStream", "logStreamName", "log_stream", "kubernetes.namespace_name",
    "kubernetes.pod_name", "kubernetes.pod.name", "kubernetes.container_name",
    "kubernetes.container.name", "labels.pod", "labels.container", "labels.filename", "pod",
    "container", "host.name", "hostname", "host", "log.file.path", "file", "filename", "stream",
    "_HOSTNAME", "_PID",
)  # fmt: skip
_MAX_DEPTH = 6
_MAX_CAUSES = 50


def kind_of_line(text: str) -> HeaderKind | None:
    """The layout and logger of a line, after removal of its carrier; ``None`` without a header."""
    if not text.startswith("{"):
        return header_kind_of(text)
    header = parse_json_line(text)
    return HeaderKind(header.layout, header.logger) if header is not None else None


def parse_json_line(line: str, default_timezone: tzinfo = UTC) -> Header | None:
    """The event on this line; ``None`` if the line is not the JSON object of an event."""
    text = line.strip().rstrip(",")
    if not (text.startswith("{") and text.endswith("}")):
        return None
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return header_of(fields, default_timezone) if isinstance(fields, dict) else None


def header_of(fields: Mapping[str, Any], default_timezone: tzinfo) -> Header | None:
    """The parts of an event from a JSON object, whose fields may be nested or have dotted names.

    ``None`` if the object has neither a message nor a stack trace, or neither a level nor a time.
    """
    flat = _flatten(fields)
    message = _first_text(flat, MESSAGE_KEYS)
    stack = _stack(fields, flat)
    level = _level(flat)
    logged_at = _time(flat, default_timezone)
    logger = _first_text(flat, _LOGGER)
    if message is None and stack is None:
        return None
    # Without a level and a time, the object may be a Kafka record or a configuration.
    if level is None and logged_at is None:
        return None
    job_id = _first_text(flat, _JOB)
    if message and stack and stack.startswith(f"{message}\n"):
        stack = stack[len(message) + 1 :]
    return Header(
        "json",
        logged_at,
        level,
        logger,
        _first_text(flat, _THREAD),
        message or "",
        job_id if job_id and re.fullmatch("[0-9a-f]{32}", job_id) else None,
        stack,
    )


def time_of(fields: Mapping[str, Any], default_timezone: tzinfo) -> datetime | None:
    """The event time in a JSON object, or ``None``."""
    return _time(_flatten(fields), default_timezone)


def begins_with_its_time(line: str) -> bool:
    """Whether the first field of a JSON record contains the event time."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return False
    key = next(iter(fields), None)
    first = parse_timestamp(str(fields[key])) if key in TIME_KEYS else None
    return first is not None and first == time_of(fields, UTC)


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A raw log line inside a JSON object, with its source and the time in the object.

    ``source`` joins the fields that identify the stream. ``time`` is in ISO 8601, or empty if the
    object contains no time.
    """

    text: str
    source: str
    time: str


def unwrap_json_line(line: str) -> Wrapped | None:
    """The raw line that a log collector wrapped in a JSON object; ``None`` for any other line.

    An object with a level in text form, a logger, or a stack trace is an event and not a wrapped
    line.
    """
    text = line.strip().rstrip(",")
    if not (text.startswith("{") and text.endswith("}")):
        return None
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    flat = _flatten(fields)
    message = _first_text(flat, _RAW)
    if message is None or _first_text(flat, _LOGGER) or _stack(fields, flat) is not None:
        return None
    if _first_text(flat, LEVEL_KEYS) is not None:
        return None
    source = "/".join(str(flat[name]) for name in _SOURCE if isinstance(flat.get(name), str))
    moment = _time(flat, UTC)
    return Wrapped(message.removesuffix("\n"), source, moment.isoformat() if moment else "")


def _flatten(fields: Mapping[str, Any], prefix: str = "", depth: int = 0) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in fields.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and depth < _MAX_DEPTH:
            flat.update(_flatten(value, f"{name}.", depth + 1))
        flat.setdefault(name, value)
    return flat


def _first_text(flat: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    for name in names:
        value = flat.get(name)
        if isinstance(value, str) and value:
            return value
    return None


def _level(flat: Mapping[str, Any]) -> str | None:
    for name in LEVEL_KEYS:
        value = flat.get(name)
        if isinstance(value, str) and 0 < len(value) <= 12:
            return canonical_level(value)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 8:
            return _SYSLOG_LEVELS[value]
        if isinstance(value, int) and value in (10, 20, 30, 40, 50, 60):
            return ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")[value // 10 - 1]
    return None


def _time(flat: Mapping[str, Any], default_timezone: tzinfo) -> datetime | None:
    for name in TIME_KEYS:
        value = flat.get(name)
        if isinstance(value, str):
            is_number = len(value) in (16, 19) and value.isdigit()
            moment = (
                _from_number(float(value))
                if is_number
                else parse_timestamp(value, default_timezone)
            )
            if moment:
                return moment
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return _from_number(value)
    seconds = flat.get("instant.epochSecond", flat.get("timestamp.seconds"))
    if isinstance(seconds, int):
        nanos = flat.get("instant.nanoOfSecond", flat.get("timestamp.nanos", 0))
        return _from_number(seconds, nanos if isinstance(nanos, int) else 0)
    return None


def _from_number(number: float, nanos: int = 0) -> datetime | None:
    """The time for a number of seconds, milliseconds, microseconds, or nanoseconds since 1970.

    The size of the number determines its unit. ``None`` if the time is out of range.
    """
    try:
        value = float(number) + nanos / 1e9
    except OverflowError:
        return None
    if math.isinf(value):
        return None
    while value > 1e11:
        value /= 1000
    if not 0 < value < 4e9:
        return None
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=round(value, 6))


def _stack(fields: Mapping[str, Any], flat: Mapping[str, Any]) -> str | None:
    for name in STACK_KEYS:
        value = flat.get(name, fields.get(name))
        if value is None:
            continue
        text = _stack_text(value)
        if text and ("\n" in text or "Exception" in text or "Error" in text or " at " in text):
            return text
    return None


def _stack_text(value: Any) -> str | None:
    if isinstance(value, str):
        return value or None
    if isinstance(value, list):
        return "\n".join(_element_text(item) for item in value) or None
    if isinstance(value, dict):
        return _thrown_text(value)
    return None


def _element_text(item: Any) -> str:
    """The stack frame in an object with the fields of log4j2 or logback; other items as text."""
    if not isinstance(item, dict):
        return str(item)
    method = item.get("method", item.get("methodName"))
    if method is None:
        return str(item)
    place = item.get("file", item.get("fileName")) or "Unknown Source"
    line = item.get("line", item.get("lineNumber"))
    where = f"{place}:{line}" if isinstance(line, int) and line > 0 else place
    return f"\tat {item.get('class', item.get('className', ''))}.{method}({where})"


_NAMES = ("name", "className", "exception_class", "class", "type")
_FRAMES = ("extendedStackTrace", "stackTrace", "stepArray", "frames", "stack_trace")
_OMITTED = ("commonElementCount", "commonFramesCount")


def _thrown_text(thrown: Mapping[str, Any], depth: int = 0) -> str | None:
    """The stack trace of a throwable that log4j2 or logback printed as nested objects."""
    name = next((thrown[key] for key in _NAMES if isinstance(thrown.get(key), str)), None)
    if name is None or depth > _MAX_CAUSES:
        return None
    message = thrown.get("message", thrown.get("localizedMessage"))
    lines = [f"{name}: {message}" if message else name]
    frames = next((thrown[key] for key in _FRAMES if thrown.get(key)), None)
    if isinstance(frames, str):
        # A stack trace in text form includes its causes.
        return frames if frames.startswith(name) else "\n".join([*lines, frames])
    if isinstance(frames, list):
        lines.append(_stack_text(frames) or "")
    omitted = next((thrown[key] for key in _OMITTED if isinstance(thrown.get(key), int)), 0)
    if omitted > 0:
        lines.append(f"\t... {omitted} more")
    others = thrown.get("suppressed")
    for other in others if isinstance(others, list) else ():
        text = _thrown_text(other, depth + 1) if isinstance(other, dict) else None
        if text:
            lines.append("\tSuppressed: " + text.replace("\n", "\n\t"))
    cause = thrown.get("cause")
    if isinstance(cause, dict) and not cause.get("cyclic"):
        text = _thrown_text(cause, depth + 1)
        if text:
            lines.append(f"Caused by: {text}")
    return "\n".join(line for line in lines if line)
