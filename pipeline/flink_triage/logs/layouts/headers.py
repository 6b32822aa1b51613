"""Parses a header line into its time, level, logger, thread, job, and message.

A fast check rejects lines that cannot be a header, and then the built-in layouts are tried. A line
that does not match any of them, and is not only a timestamp, is parsed as a sequence of tokens.
This layout, named ``house``, covers patterns such as ``[%d] [%t] %-5level %logger{36} - %m``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import NamedTuple

from flink_triage.logs.layouts.builtin_layouts import GROUPED, JUL, LAYOUTS, LEVELS, Layout
from flink_triage.logs.layouts.timestamps import match_timestamp, time_of_columns, timestamp_of
from flink_triage.logs.text.trace_line_kinds import LineKind, kind_of
from flink_triage.logs.text.trace_lines import TRACEBACK

# The number of characters in which custom layouts and the token grammar look for a header. Thread
# names contain operator names, which may have several hundred characters.
MAX_HEADER_CHARS = 4096


@dataclass(frozen=True, slots=True)
class Header:
    """The parts of a header line; ``layout`` is the name of the matching layout.

    ``stack`` is the stack trace in a JSON record; it is ``None`` in all other layouts.
    """

    layout: str
    logged_at: datetime | None
    level: str | None
    logger: str | None
    thread: str | None
    message: str
    job_id: str | None = None
    stack: str | None = None


class HeaderKind(NamedTuple):
    """The layout and the logger of a header."""

    layout: str
    logger: str | None


_ANY_CASE_LEVEL = re.compile(
    rf"(?:{LEVELS}|Trace|Debug|Info|Warning|Warn|Error|Fatal"
    r"|trace|debug|info|warning|warn|error|fatal|severe|critical|notice|INF|WRN|ERR|DBG|TRC)"
    r"(?![\w.$-])"
)
_CANONICAL_LEVEL = {
    "WARNING": "WARN",
    "WRN": "WARN",
    "SEVERE": "ERROR",
    "ERR": "ERROR",
    "CRITICAL": "FATAL",
    "EMERGENCY": "FATAL",
    "ALERT": "FATAL",
    "INFORMATION": "INFO",
    "INF": "INFO",
    "NOTICE": "INFO",
    "CONFIG": "INFO",
    "FINE": "DEBUG",
    "FINER": "TRACE",
    "FINEST": "TRACE",
    "DBG": "DEBUG",
    "TRC": "TRACE",
}
ERROR_AND_ABOVE = frozenset({"ERROR", "FATAL"})
WARN_AND_ABOVE = ERROR_AND_ABOVE | {"WARN"}

_BY_NAME = {layout.name: layout for layout in LAYOUTS}
_JOB_ID = re.compile(r"(?:job[-_]?id\s?[=:]\s?|^)\"?(?P<id>[0-9a-f]{32})\b", re.IGNORECASE)
_GROUP = re.compile(GROUPED, re.DOTALL)
# "[tenant=acme]" and "[{flink-job-id=…}]" are context, "[Source: a (1/2)#0]" is a thread.
_CONTEXT = re.compile(r"\{|[\w.-]{1,64}=")
_MAY_BE_HEADER = re.compile(
    rf"^[\[(<\"|]?(?:\d|(?:{LEVELS}|[Tt]race|[Dd]ebug|[Ii]nfo|[Ww]arn|[Ee]rror|[Ff]atal)"
    r"|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)|\[)"
)
_TIME_ONLY = re.compile(
    r"^\s{0,4}\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[ ]?[+-]\d\d:?\d\d)?:?\s*$"
)


def canonical_level(word: str | None) -> str | None:
    """Convert a level to the name that log4j2 uses, such as ``WARN`` for ``warning``.

    An unknown level is only converted to upper case. ``None`` if there is no level.
    """
    if not word:
        return None
    upper = word.upper()
    return _CANONICAL_LEVEL.get(upper, upper)


def parse_header(
    line: str, default_timezone: tzinfo = UTC, layout: str | None = None
) -> Header | None:
    """The header on this line, or ``None``; the layout named ``layout`` is tried first.

    A timestamp without a time zone is interpreted in ``default_timezone``.
    """
    first = _BY_NAME.get(layout) if layout else None
    if first is not None:
        header = _try(first, line, default_timezone)
        if header is not None:
            return header
    if not _MAY_BE_HEADER.match(line):
        return None
    for candidate in LAYOUTS:
        if candidate is not first:
            header = _try(candidate, line, default_timezone)
            if header is not None:
                return header
    return _without_layout(line, default_timezone)


def header_kind_of(line: str) -> HeaderKind | None:
    """The layout and logger that ``parse_header`` returns for this line, but faster."""
    if not _MAY_BE_HEADER.match(line):
        return None
    for layout in LAYOUTS:
        found = _match(layout, line)
        if found is not None:
            return HeaderKind(layout.name, found[0]["logger"])
    header = _without_layout(line, UTC)
    return HeaderKind(header.layout, header.logger) if header is not None else None


def _without_layout(line: str, default_timezone: tzinfo) -> Header | None:
    if _TIME_ONLY.match(line):
        return _time_only(line, default_timezone)
    return _parse_tokens(line, default_timezone)


# A timestamp in Flink's default format, or in ISO 8601 without an offset. Spaces and a capital
# letter or a bracket must follow it.
_PLAIN_TIME = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.,](\d{1,9})(?=[ ]+[A-Z\[])", re.ASCII)


def _try(layout: Layout, line: str, default_timezone: tzinfo) -> Header | None:
    found = _match(layout, line)
    if found is None:
        return None
    match, time = found
    if time is not None:
        logged_at = time_of_columns(line[:19], time[1], default_timezone)
    else:
        logged_at = timestamp_of(match, default_timezone) if layout.after_time else None
    return header_of_match(layout.name, match, logged_at)


def _match(layout: Layout, line: str) -> tuple[re.Match[str], re.Match[str] | None] | None:
    """The match of a layout, and the match of the timestamp if it was matched separately."""
    if layout.after_time is not None and (time := _PLAIN_TIME.match(line)) is not None:
        behind = layout.after_time.match(line, time.end())
        if behind is not None:
            return behind, time
    match = layout.pattern.match(line)
    return (match, None) if match is not None else None


_JUL_LEVEL = re.compile(r"(SEVERE|WARNING|INFO|CONFIG|FINE|FINER|FINEST): ")


def is_below(header: Header, line: str) -> bool:
    """Whether the line after a header is the second line of a java.util.logging header."""
    return header.layout == JUL and _JUL_LEVEL.match(line) is not None


def with_message_below(header: Header, below: str) -> Header | None:
    """The header with the message from the line ``below``.

    Some layouts print a line break before the message. ``None`` if the header already has a message
    or has no logger, or if that line is blank or part of a stack trace.
    """
    is_blank = not below or below.isspace()
    if header.logger is None or header.message.strip() or is_blank:
        return None
    level = header.level
    if header.layout == JUL and (match := _JUL_LEVEL.match(below)) is not None:
        level, below = canonical_level(match[1]), below[match.end() :]
    elif kind_of(below) < LineKind.LIKE or below.startswith(TRACEBACK):
        return None
    return replace(header, level=level, message=below.lstrip(" \t"))


def layout_named(name: str) -> Layout | None:
    return _BY_NAME.get(name)


def header_of_match(layout: str, match: re.Match[str], logged_at: datetime | None) -> Header:
    level, logger, thread, message, job_id = parts_of_match(match)
    return Header(layout, logged_at, level, logger, thread, message, job_id)


def parts_of_match(
    match: re.Match[str],
) -> tuple[str, str | None, str | None, str, str | None]:
    """Level, logger, thread, message, and job ID from a match of a layout's regex."""
    parts = match.groupdict()
    thread = parts.get("thread")
    context = parts.get("ndc") or ""
    bracketed = parts.get("groups")
    if bracketed:
        thread, mdc = _thread_and_context(bracketed)
        context = f"{context} {mdc}"
    level = parts["level"]
    job_id = job_id_of(context) if len(context) > 2 else None
    return (
        _CANONICAL_LEVEL.get(level, level),
        parts["logger"],
        thread or None,
        parts["message"],
        job_id,
    )


@lru_cache(maxsize=1024)
def _thread_and_context(bracketed: str) -> tuple[str | None, str]:
    """The thread name and the context in bracketed text.

    The last bracket that is neither empty nor a map (such as ``key=value``) nor a job ID contains
    the thread name; all others are context.
    """
    thread: str | None = None
    context: list[str] = []
    for group in reversed(_GROUP.findall(bracketed)):
        text = group[1:-1].strip()
        is_map = group[0] == "{" or bool(_CONTEXT.match(text) or _JOB_ID.match(text))
        if thread is None and text and not is_map:
            thread = text
        else:
            context.append(text)
    return thread, " ".join(context)


@lru_cache(maxsize=1024)
def job_id_of(context: str) -> str | None:
    """The job ID in MDC text such as ``{flink-job-id=…}`` or ``[…]``, or ``None``."""
    match = _JOB_ID.search(context.strip(" []{}"))
    return match["id"] if match else None


def _time_only(line: str, default_timezone: tzinfo) -> Header | None:
    match = match_timestamp(line.strip())
    if match is None:
        return None
    return Header("time-only", timestamp_of(match, default_timezone), None, None, None, "")


_SEPARATOR = re.compile(r"[ \t|,;]+|-{1,3}(?=\s)|:(?=\s)|\u2014")
# A class of a throwable at the end of the line, or before a colon, begins the message.
_LOGGER_TOKEN = re.compile(
    r"(?![\w.$]{1,300}(?:Exception|Error)(?::|[ \t]*$))"
    r"(?P<logger>[A-Za-z_$][\w$]*(?:\.[\w$]+)+|[A-Z]\w*)(?:[:@(]\d{1,6}\)?)?(?=[\s:|\-\[]|$)"
)
# The following text is neither another bracketed part nor the level.
_NO_LEVEL = re.compile(rf"[ \t]{{0,8}}(?![ \t\[]|{_ANY_CASE_LEVEL.pattern})")
_ENDS_LOGGER = re.compile(r":|[ ]{1,80}-(?:[ ]|$)")
_THREAD_TOKEN = re.compile(r"[\w.\-/#$]+(?=[ \t|])")


def _parse_tokens(line: str, default_timezone: tzinfo) -> Header | None:
    """The header of a line, parsed as a sequence of tokens; ``None`` if it is not a header.

    Tokens are read from left to right: the timestamp, brackets, separators, the level, one logger,
    and the thread. The message starts after the dash, colon, bar, or bracketed logger that
    completes the header, or at the first text that is not a token.
    """
    parts = _Tokens()
    column = 0
    head = line[:MAX_HEADER_CHARS]
    for _ in range(24):
        if column >= len(head):
            break
        end = parts.eat(head, column, default_timezone)
        if end is None:
            break
        column = end
        if parts.is_complete:
            break
    if not parts.is_header:
        return None
    message = line[column:]
    if message[:1] in ("-", ":", "|"):
        message = message[1:]
    return Header(
        "house",
        parts.logged_at,
        canonical_level(parts.level),
        parts.logger,
        parts.thread,
        message.lstrip(" \t"),
        job_id_of(" ".join(parts.context)) if parts.context else None,
    )


class _Tokens:
    """The parts of one line that the token grammar has found so far."""

    __slots__ = ("context", "has_time", "is_complete", "level", "logged_at", "logger", "thread")

    def __init__(self) -> None:
        self.level: str | None = None
        self.logger: str | None = None
        self.thread: str | None = None
        self.logged_at: datetime | None = None
        self.has_time = False
        self.is_complete = False
        self.context: list[str] = []

    def eat(self, line: str, column: int, zone: tzinfo) -> int | None:
        """The column after the token at ``column``, or ``None`` if the message starts here."""
        separator = _SEPARATOR.match(line, column)
        if separator:
            ends = separator[0].strip(" \t") in ("-", ":", "|", "--", "---", "\u2014")
            self.is_complete = ends and self._is_before_message(line, separator.end())
            return separator.end()
        time = None if self.has_time or column > 400 else match_timestamp(line, column)
        if time:
            self.has_time, self.logged_at = True, timestamp_of(time, zone)
            return time.end()
        if line[column] in "[(<{":
            return self._eat_bracket(line, column, zone)
        level = _ANY_CASE_LEVEL.match(line, column)
        if level and self.level is None:
            self.level = level[0]
            return level.end()
        logger = _LOGGER_TOKEN.match(line, column)
        if logger and self.logger is None and "." in logger["logger"]:
            self.logger = logger["logger"]
            return logger.end()
        token = _THREAD_TOKEN.match(line, column) if self.has_time and column < 200 else None
        # After the level, a bare word is a thread only if a bar follows it.
        if token and (self.level is None or line[token.end() :].lstrip(" \t")[:1] == "|"):
            self.thread = self.thread or token[0]
            return token.end()
        # A logger without a package, as in "%c{1} - %m" and "%c{1}: %m".
        rest = line[logger.end() :] if logger else ""
        if logger and self.logger is None and self.level and _ENDS_LOGGER.match(rest):
            self.logger = logger["logger"]
            return logger.end()
        return None

    @property
    def is_header(self) -> bool:
        if self.level is None:
            return self.is_complete
        return self.has_time or self.logger is not None

    def _is_before_message(self, line: str, column: int) -> bool:
        """Whether the text before ``column`` is a complete header.

        A complete header has a level and a logger that no bracket follows. Without a level, it has
        a time, a thread, and a logger, and no bracket or level follows.
        """
        if self.level is not None:
            return self.logger is not None and line[column : column + 1] != "["
        is_whole = self.has_time and self.thread is not None and self.logger is not None
        return is_whole and _NO_LEVEL.match(line, column) is not None

    def _goes_on(self, rest: str) -> bool:
        """Whether a bracketed logger is followed by another header part and not by the message.

        Kafka messages also start with a bracket: "[Consumer clientId=a, groupId=b] …".
        """
        if rest.startswith((" -", "[")):
            return True
        following = _GROUP.match(rest, 1) if rest[:1] == " " and self.thread is None else None
        return following is not None and "=" not in following[0]

    def _eat_bracket(self, line: str, column: int, zone: tzinfo) -> int | None:
        match = _GROUP.match(line, column)
        if match is None or (match[0][0] == "{" and not self.has_time):
            return None
        text = match[0][1:-1].strip()
        level = _ANY_CASE_LEVEL.fullmatch(text)
        logger = _LOGGER_TOKEN.fullmatch(text)
        time = None if self.has_time else match_timestamp(text)
        if time:
            self.has_time, self.logged_at = True, timestamp_of(time, zone)
        elif level and self.level is None:
            self.level = level[0]
        elif logger and self.logger is None and text.count(".") >= 2:
            self.logger = text
            self.is_complete = self.level is not None and not self._goes_on(line[match.end() :])
        elif self.thread is None and text and not (match[0][0] == "{" or _CONTEXT.match(text)):
            self.thread = text
        elif text:
            self.context.append(text)
        return match.end()
