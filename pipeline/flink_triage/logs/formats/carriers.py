"""Detects and removes the prefixes and envelopes that other tools add to log lines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from itertools import pairwise

from flink_triage.logs.layouts.json_lines import kind_of_line, unwrap_json_line
from flink_triage.logs.layouts.timestamps import match_timestamp, mostly_plain, parse_timestamp
from flink_triage.logs.text.decode import clean
from flink_triage.logs.text.trace_lines import continues_trace, is_throwable_header


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
        moments = (parse_timestamp(time, default_timezone) for time in reversed(self.times))
        return next((moment for moment in moments if moment is not None), None)


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
_DIGITS = re.compile(r"\d{1,10}")
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
_INDENTS: dict[str, Peel] = {f"indent-{width}": _indented(width) for width in range(1, 13)}

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
    **_INDENTS,
}
# Some layouts and some prose also start with these prefixes, so the text after the prefix must look
# like a log, or have a further prefix before a log.
_AMBIGUOUS = frozenset(
    {
        "json-line",
        "syslog-iso",
        "grep-path-line",
        "kubectl-time",
        "stern",
        "pod",
        "console-time",
        "python-logging",
        "stamped",
        "json-string",
        "comment",
        "compose",
        "grep-path",
        "grep-line",
    }
)
_ENOUGH = 0.8
_DOCKER_FIELDS = frozenset({"log", "stream", "time", "attrs"})
_MAX_NESTED = 3


# Terminal widths. Narrower text is usually wrapped between words.
_WIDTHS = range(60, 501)
_WRAPPED = re.compile(r"^wrapped-(\d{2,3})$")


def detect_carriers(lines: Sequence[str]) -> str:
    """The names of the carriers, outermost first and joined by ``+``; ``none`` if there is none."""
    names: list[str] = []
    rest = [line for line in lines if line.strip() and line != "--"]
    while len(names) < _MAX_NESTED and rest and not mostly_plain(rest):
        found = _detect_one(rest, names)
        if found is None:
            break
        names.append(found)
        peel = CARRIERS[found]
        rest = [peeled.text for line in rest if (peeled := peel(line)) and peeled.text.strip()]
    if all(name in _INDENTS or name == "quote" for name in names):
        width = _wrap_width(rest)
        names += [f"wrapped-{width}"] if width else []
    return "+".join(names) or "none"


def _wrap_width(lines: Sequence[str]) -> int | None:
    """The width at which a terminal wrapped these lines, or ``None``.

    No line exceeds this width. At least one line of this width starts an event (see
    ``begins_line``), and at most a fifth of these lines are followed by a line that starts an
    event. At least two lines of this width must differ in more than digits, because repetitions of
    one message all have the same length.
    """
    width = max(map(len, lines), default=0)
    full = [index for index, line in enumerate(lines[:-1]) if len(line) == width]
    if width not in _WIDTHS or len(full) < 2:
        return None
    if len({_DIGITS.sub("", lines[index])[:80] for index in full}) < 2:
        return None
    if not any(begins_line(lines[index]) for index in full):
        return None
    after = [lines[index + 1] for index in full]
    return None if 5 * sum(map(begins_line, after)) > len(after) else width


def begins_line(line: str) -> bool:
    """Whether a line starts an event or is a separate line of a stack trace or a table."""
    return (
        line.startswith(("|", "+"))
        or _is_header(line)
        or continues_trace(line)
        or is_throwable_header(line)
    )


def _detect_one(lines: Sequence[str], taken: Sequence[str]) -> str | None:
    for name, peel in CARRIERS.items():
        if name in taken:
            continue
        texts = _peeled_by_most(peel, lines, 0.5 if name in _INDENTS else _ENOUGH)
        if not texts:
            continue
        if name in _INDENTS:
            if _is_indented(lines, texts):
                return name
            continue
        if name in _AMBIGUOUS and not (
            _looks_logged(texts, name) or _is_carried(texts, [*taken, name])
        ):
            continue
        if name == "grep-line" and not _is_counting(lines):
            continue
        return name
    return None


def _peeled_by_most(peel: Peel, lines: Sequence[str], share: float) -> list[str]:
    """The text of each line after its prefix; empty if fewer than ``share`` have the prefix."""
    spare = len(lines) - max(1, share * len(lines))
    texts: list[str] = []
    for line in lines:
        peeled = peel(line)
        if peeled:
            texts.append(peeled.text)
        else:
            spare -= 1
            if spare < 0:
                return []
    return texts


def _is_indented(lines: Sequence[str], texts: Sequence[str]) -> bool:
    """Whether headers occur only after the indentation; the first line is an exception.

    If copied text starts in the middle of a line, its first line lacks the indentation.
    """
    return any(map(_is_header, texts[:400])) and not any(map(_is_header, lines[1:400]))


def _is_carried(texts: Sequence[str], taken: Sequence[str]) -> bool:
    """Whether these lines have a further prefix that is followed by a log."""
    lines = [text for text in texts if text.strip()]
    return len(taken) < _MAX_NESTED and len(lines) > 1 and _detect_one(lines, taken) is not None


def _is_counting(lines: Sequence[str]) -> bool:
    """Whether most line numbers increase; the years of lines such as "2026-11-21 …" do not."""
    numbers = [int(match[0]) for line in lines if (match := _DIGITS.match(line))]
    growing = sum(1 for one, other in pairwise(numbers) if one < other)
    return growing * 10 >= 8 * (len(numbers) - 1)


def _is_header(text: str) -> bool:
    return kind_of_line(text) is not None


def _looks_logged(texts: Sequence[str], name: str) -> bool:
    sample = [text for text in texts[:400] if text.strip()]
    if len(sample) < 2:
        return False
    headers = sum(1 for text in sample if _is_header(text))
    traces = sum(1 for text in sample if continues_trace(text) or is_throwable_header(text))
    if name in ("kubectl-time", "stamped"):
        # "2024-01-01T10:00:00.123Z INFO x - m" and "... [INFO] m" are layouts. The prefix is a
        # carrier if a second timestamp follows, or if each stack frame has a timestamp.
        times = sum(1 for text in sample if match_timestamp(text.lstrip("[")) is not None)
        frames = sum(1 for text in sample if text.lstrip().startswith(("at ", "Caused by:")))
        return times * 5 >= len(sample) or frames * 5 >= len(sample)
    return (headers + traces) * 2 >= len(sample) and headers + traces >= 2


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
