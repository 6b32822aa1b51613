"""Parses header lines with user-defined layouts: regexes with named groups.

Layouts are specified with ``--layout``, or in a ``layouts.yaml`` file in a signature directory. The
file contains a list of mappings with a ``name``, a ``regex``, and an ``example`` line, which the
regex must match.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from datetime import tzinfo
from pathlib import Path

import regex

from flink_triage.errors import UsageError
from flink_triage.logs.layouts.headers import MAX_HEADER_CHARS, Header, canonical_level
from flink_triage.logs.layouts.timestamps import parse_timestamp
from flink_triage.user_regex import problem_of_regex
from flink_triage.yaml_documents import (
    MappingNode,
    Node,
    Problem,
    Scalar,
    SequenceNode,
    read_document,
)

LAYOUT_FILE = "layouts.yaml"
OWN_LAYOUT = "own"
_KEYS = ("name", "regex", "example")
_SECONDS = 1.0
_SHOWN_CHARS = 200
_GROUPS = ("at", "level", "logger", "thread", "message", "job")


def check_layout(pattern: str) -> str:
    """Return the pattern given with ``--layout``; raises ``UsageError`` if it is not usable."""
    problem = _problem_of(pattern)
    if problem is not None:
        raise UsageError(f"--layout: {pattern[:_SHOWN_CHARS]!r} {problem}")
    return pattern


def _problem_of(pattern: str) -> str | None:
    problem = problem_of_regex(pattern)
    if problem is not None:
        return problem
    compiled = regex.compile(pattern)
    try:
        matches_nothing = compiled.match("", timeout=_SECONDS)
    except TimeoutError:
        return "takes too long on an empty line"
    unknown = sorted(set(compiled.groupindex) - set(_GROUPS))
    if unknown or not {"at", "level"} & set(compiled.groupindex):
        return (
            f"has the groups {sorted(compiled.groupindex)}; "
            f"allowed: {', '.join(_GROUPS)}, and at or level is required"
        )
    return "matches an empty line" if matches_nothing else None


def read_layouts(directories: Iterable[Path]) -> tuple[str, ...]:
    """The regexes in the ``layouts.yaml`` files of these directories, which may lack the file.

    Raises ``UsageError`` with the problems of all files, as ``path:line: field: reason``.
    """
    found: list[str] = []
    problems: list[Problem] = []
    for directory in directories:
        path = directory / LAYOUT_FILE
        if os.path.lexists(path):
            document, wrong = read_document(path, str(path))
            problems += wrong
            if document is not None:
                found += _layouts_of(document, str(path), problems)
    if problems:
        message = "\n".join(map(str, problems))
        raise UsageError(message)
    return tuple(found)


def _layouts_of(document: Node, label: str, problems: list[Problem]) -> list[str]:
    if not isinstance(document, SequenceNode):
        reason = f"is not a list of layouts, each with {', '.join(_KEYS)}"
        problems.append(Problem(label, document.line, "layouts", reason))
        return []
    found = (_layout_of(item, label, problems) for item in document.items)
    return [pattern for pattern in found if pattern is not None]


def _layout_of(item: Node, label: str, problems: list[Problem]) -> str | None:
    def wrong(line: int, field: str, reason: str) -> None:
        problems.append(Problem(label, line, field, reason))

    if not isinstance(item, MappingNode):
        wrong(item.line, "layout", f"is not a mapping with {', '.join(_KEYS)}")
        return None
    texts: dict[str, Scalar] = {}
    for entry in item.entries:
        if entry.key not in _KEYS:
            wrong(entry.line, entry.key, f"is unknown, allowed: {', '.join(_KEYS)}")
        elif not isinstance(entry.value, Scalar):
            wrong(entry.line, entry.key, "is not a string")
        else:
            texts[entry.key] = entry.value
    for key in _KEYS:
        if item.get(key) is None:
            wrong(item.line, key, "is missing")
    pattern, example = texts.get("regex"), texts.get("example")
    if pattern is None:
        return None
    problem = _problem_of(pattern.text)
    if problem is not None:
        wrong(pattern.line, "regex", f"{pattern.text[:_SHOWN_CHARS]!r} {problem}")
    elif example is not None:
        layouts = OwnLayouts((pattern.text,), _SECONDS)
        if layouts.parse(example.text, None) is None:
            wrong(example.line, "example", layouts.problem or "is not matched by the regex")
    return pattern.text


class OwnLayouts:
    """Tries the user-defined layouts in order; disables a layout after a timeout.

    ``problem`` describes the most recent timeout.
    """

    def __init__(self, patterns: Sequence[str], timeout_seconds: float) -> None:
        self._patterns = [regex.compile(pattern, regex.DOTALL) for pattern in patterns]
        self._timeout = timeout_seconds
        self.problem: str | None = None

    def parse(self, line: str, default_timezone: tzinfo | None) -> Header | None:
        """The header on this line, or ``None``.

        If ``default_timezone`` is ``None``, the time is not parsed.
        """
        for pattern in self._patterns:
            try:
                match = pattern.match(line[:MAX_HEADER_CHARS], timeout=self._timeout)
            except TimeoutError:
                self.problem = (
                    f"partial: the layout {pattern.pattern!r} took longer than "
                    f"{self._timeout} s on a line and was switched off"
                )
                self._patterns = [one for one in self._patterns if one is not pattern]
                return self.parse(line, default_timezone)
            if match is not None:
                return _header_of(match, line, default_timezone)
        return None


def _header_of(match: regex.Match[str], line: str, default_timezone: tzinfo | None) -> Header:
    parts = match.groupdict()
    at = parts.get("at")
    message = parts.get("message")
    # The regex is applied only to the head of a long line. If the message extends to the end of the
    # head, it also includes the rest of the line.
    if message is None:
        message = line[match.end() :].lstrip()
    elif match.end("message") == MAX_HEADER_CHARS:
        message += line[MAX_HEADER_CHARS:]
    return Header(
        OWN_LAYOUT,
        parse_timestamp(at, default_timezone) if at and default_timezone is not None else None,
        canonical_level(parts.get("level")),
        parts.get("logger"),
        parts.get("thread"),
        message,
        parts.get("job"),
    )
