"""Removes the prefixes and envelopes that other tools add to log lines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

from flink_triage.logs.layouts.json_lines import unwrap_json_line
from flink_triage.logs.layouts.timestamps import parse_timestamp
from flink_triage.logs.text.decode import clean


@dataclass(frozen=True, slots=True)
class Peeled:
    """A line without its prefix.

    ``source`` distinguishes streams that share a file. If ``is_partial`` is set, the next line from
    the same source continues this line. If ``may_end`` is also set, the next line does not continue
    it if that line is blank or ``begins_line`` is true for it. ``times`` are the timestamps in the
    prefixes, as written, innermost last. They are parsed on demand, because most lines also contain
    their own timestamp.
    """

    text: str
    source: str = ""
    is_partial: bool = False
    times: tuple[str, ...] = ()
    may_end: bool = False

    def carried_at(self, default_timezone: tzinfo) -> datetime | None:
        """The innermost valid timestamp of the prefixes, in UTC, or ``None``."""
        moments = (parse_timestamp(time, default_timezone) for time in reversed(self.times))
        return next((moment for moment in moments if moment is not None), None)


# Removes one prefix from a line; returns ``None`` if the line does not have it.
Peel = Callable[[str], "Peeled | None"]

# The CRI log format: time, stream, tag (F for full or P for partial), and text.
_CRI = re.compile(r"(?s)^(\d{4}-\d\d-\d\dT\S{8,40}) (stdout|stderr) ([FP])(?::[A-Z]{1,9})? ?(.*)$")
# The timestamps of `kubectl logs --timestamps`, of Docker Desktop, and of `svlogd -tt`.
_KUBECTL_TIME = re.compile(
    r"(?s)^(\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)"
    r"| \d\d:\d\d:\d\d(?= |$)|_\d\d:\d\d:\d\d(?:\.\d{1,9})?(?= |$))) ?(.*)$"
)
_KUBECTL_PREFIX = re.compile(
    r"^\[((?:pod/)?[\w.-]{1,253}(?:/[\w.-]{1,253}){1,2})\] ?(.*)$", re.DOTALL
)
_STERN = re.compile(r"^([\w.-]{3,253} [\w.-]{3,63}) (?:\u203a )?(.*)$", re.DOTALL)
_COMPOSE = re.compile(r"^([\w.-]{1,128})[ ]{0,60}\| ?(.*)$", re.DOTALL)
# The syslog tags of other products. Their prefixes are kept, because nothing else in a line may
# indicate the product.
TAGS_OF_OTHERS = (
    r"(?:bookie|cassandra|druid|elasticsearch|hbase|kafka|nifi|opensearch|presto|pulsar|solr|spark"
    r"|trino|zookeeper)\[\d{1,10}\]:"
)
_TAG = rf"(?!{TAGS_OF_OTHERS})[\w./@()-]{{1,128}}(?:\[\d{{1,10}}\])?"
_SYSLOG = re.compile(
    r"^(?:<\d{1,3}>)?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d "
    rf"([\w.:-]{{1,255}} {_TAG}): ?(.*)$",
    re.DOTALL,
)
_SYSLOG_5424 = re.compile(
    r"^<\d{1,3}>1 (\S{10,40}) (\S{1,255} \S{1,128} \S{1,128}) \S{1,64} (?:-|\[.{0,2000}?\]) ?(.*)$",
    re.DOTALL,
)
# The output of `journalctl -o short-iso`, and rsyslog's default file format.
_SYSLOG_ISO = re.compile(
    rf"^(\d{{4}}-\d\d-\d\dT\S{{8,30}}) ([\w.:-]{{1,255}} {_TAG}): ?(.*)$",
    re.DOTALL,
)
# The output of fluentd's out_file (separated by tabs) and stdout (separated by spaces) plugins.
_FLUENTD = re.compile(
    r"^(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S{0,20}(?: [+-]\d{4})?)[\t ][\w.*/-]{1,255}:?[\t ]"
    r"(\{.*\})$",
    re.DOTALL,
)
_GREP_PATH_LINE = re.compile(r"^([^\s:]{0,1000}[^\s:\d-])([:-])\d{1,10}\2(.*)$", re.DOTALL)
# "2026-11-21" is a date, not line 2026.
_GREP_LINE = re.compile(r"^(?!\d{4}-\d\d-\d\d)\d{1,10}[:-](.*)$", re.DOTALL)
_GREP_PATH = re.compile(
    r"^([\w./@+-]{1,1000}?\.(?:log|out|txt|err|gz)(?:\.\d{1,4})?)[:-](.*)$", re.DOTALL
)
# The name of a pod of a Kubernetes Deployment: the Deployment's name, the pod template hash, and
# five random characters.
_POD = re.compile(r"^([a-z0-9][a-z0-9.-]{0,200}-[a-z0-9]{6,10}-[a-z0-9]{5}) (.*)$", re.DOTALL)
# The timestamp that web consoles add to each line of a container log, in the browser's locale.
_CONSOLE_TIME = re.compile(
    r"^(?:\d{4}/\d{1,2}/\d{1,2}|\d{1,2}/\d{1,2}/\d{4}),? (?:\u4e0a\u5348|\u4e0b\u5348)?"
    r"\d{1,2}:\d\d:\d\d(?: [AP]M)?[ \t]?(.*)$",
    re.DOTALL,
)
# Output of a Flink client, printed by a scheduler that adds a timestamp and a level to each line.
_STAMPED = re.compile(
    r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[,.]\d{3}) \[(?:INFO|WARN|WARNING|ERROR)\] ?(.*)$",
    re.DOTALL,
)
# Output of a Java process, printed by a Python program.
_PYTHON_LOGGING = re.compile(
    r"(?s)^(?:DEBUG|INFO|WARNING|ERROR|CRITICAL):[A-Za-z_][\w.]{0,200}:(.*)$"
)
# A string in a JSON array, or a part of a string literal in source code.
_JSON_STRING = re.compile(r'^\s{0,64}\+? ?("(?:[^"\\]|\\.)*")(?:,|;| ?\+|\);?)?\s*$', re.DOTALL)
_DOCKER_FIELDS = frozenset({"log", "stream", "time", "attrs"})
_WRAPPED = re.compile(r"^wrapped-(\d{2,3})$")
_QUOTE = re.compile(r"^(?:> ?){1,8}(.*)$", re.DOTALL)
# Text in a comment in source code, a script, or a query.
_COMMENT = re.compile(r"^[ \t]{0,40}(?://|#|--|\*)(?: {0,3}(?=[\dA-Z\[])| ?)(.*)$", re.DOTALL)


def _peel_cri(line: str) -> Peeled | None:
    match = _CRI.match(line)
    if match is None:
        return None
    return Peeled(match[4], match[2], match[3] == "P", (match[1],))


def _peel_docker_json(line: str) -> Peeled | None:
    if not line.startswith("{"):
        return None
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    text = fields.get("log") if isinstance(fields, dict) else None
    if not isinstance(text, str) or "stream" not in fields:
        return None
    # Docker splits lines at 16 KiB; only the last part ends with a newline. In records of log
    # shippers, which contain further fields, a missing newline has no meaning.
    return Peeled(
        # Decoding JSON escapes may restore characters that were removed from the raw line: color
        # codes, NULs, and lone surrogates.
        clean(text.removesuffix("\n")),
        str(fields["stream"]),
        not text.endswith("\n") and fields.keys() <= _DOCKER_FIELDS and "time" in fields,
        (str(fields.get("time", "")),),
    )


def _peel_json_line(line: str) -> Peeled | None:
    if not line.startswith("{"):
        return None
    wrapped = unwrap_json_line(line)
    return Peeled(wrapped.text, wrapped.source, times=(wrapped.time,)) if wrapped else None


def _peel_fluentd(line: str) -> Peeled | None:
    match = _FLUENTD.match(line.rstrip())
    return Peeled(match[2], times=(match[1],)) if match else None


def _peel_grep_path_line(line: str) -> Peeled | None:
    match = _GREP_PATH_LINE.match(line)
    return Peeled(match[3], match[1]) if match else None


def _peel_json_string(line: str) -> Peeled | None:
    match = _JSON_STRING.match(line)
    if match is None:
        return None
    try:
        return Peeled(clean(json.loads(match[1], strict=False)).removesuffix("\n"))
    except ValueError:
        return None


def _prefix(pattern: re.Pattern[str], *, is_timed: bool = False) -> Peel:
    """A function that removes a prefix; the last group of ``pattern`` is the text.

    If ``is_timed`` is set, the first group is the timestamp. A further group, if any, is the
    source.
    """
    first = 2 if is_timed else 1
    has_source = pattern.groups > first

    def peel(line: str) -> Peeled | None:
        match = pattern.match(line)
        if match is None:
            return None
        source = match[first] if has_source else ""
        return Peeled(match[pattern.groups], source, times=match.groups()[: first - 1])

    return peel


def _indented(width: int) -> Peel:
    blank = " " * width

    def peel(line: str) -> Peeled | None:
        return Peeled(line[width:]) if line.startswith(blank) else None

    return peel


def _wrapped(width: int) -> Peel:
    """A function that marks each line of exactly the terminal width as partial."""
    return lambda line: Peeled(line, is_partial=len(line) == width, may_end=True)


# Indented code in Markdown and on web pages. The smallest indentation is tried first.
INDENTS: dict[str, Peel] = {f"indent-{width}": _indented(width) for width in range(1, 13)}

CARRIERS: dict[str, Peel] = {
    "cri": _peel_cri,
    "docker-json": _peel_docker_json,
    "json-line": _peel_json_line,
    "fluentd": _peel_fluentd,
    "kubectl-prefix": _prefix(_KUBECTL_PREFIX),
    "syslog": _prefix(_SYSLOG),
    "syslog-5424": _prefix(_SYSLOG_5424, is_timed=True),
    "syslog-iso": _prefix(_SYSLOG_ISO, is_timed=True),
    "compose": _prefix(_COMPOSE),
    "grep-path-line": _peel_grep_path_line,
    "grep-line": _prefix(_GREP_LINE),
    "grep-path": _prefix(_GREP_PATH),
    "kubectl-time": _prefix(_KUBECTL_TIME, is_timed=True),
    "stern": _prefix(_STERN),
    "pod": _prefix(_POD),
    "console-time": _prefix(_CONSOLE_TIME),
    "python-logging": _prefix(_PYTHON_LOGGING),
    "stamped": _prefix(_STAMPED, is_timed=True),
    "json-string": _peel_json_string,
    "quote": _prefix(_QUOTE),
    "comment": _prefix(_COMMENT),
    **INDENTS,
}


def peel_line(carriers: Sequence[Peel], line: str) -> Peeled:
    """The line without its prefixes; stops at the first prefix that is missing."""
    source, is_partial, may_end = "", False, False
    times: tuple[str, ...] = ()
    for peel in carriers:
        peeled = peel(line)
        if peeled is None:
            break
        line = peeled.text
        source = f"{source}{peeled.source}\0"
        times += peeled.times
        is_partial = is_partial or peeled.is_partial
        may_end = may_end or peeled.may_end
    return Peeled(line, source, is_partial, times, may_end)


def carriers_named(names: str) -> tuple[Peel, ...]:
    peels: list[Peel] = []
    for name in names.split("+"):
        wrapped = _WRAPPED.match(name)
        if wrapped is not None:
            peels.append(_wrapped(int(wrapped[1])))
        elif name in CARRIERS:
            peels.append(CARRIERS[name])
    return tuple(peels)
