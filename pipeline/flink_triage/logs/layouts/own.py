"""Header layouts of one's own: a regex with named groups in, a ``Header`` for its lines out.

A layout comes from ``--layout`` or from a ``layouts.yaml`` beside the signatures of a team: a list
of ``name``, ``regex`` and an ``example`` line that it must explain.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import tzinfo
from pathlib import Path

import regex
import yaml

from flink_triage.errors import UsageError
from flink_triage.plain_yaml import load_plain_yaml

from .headers import MAX_HEADER_CHARS, Header, canonical_level
from .timestamps import parse_timestamp

LAYOUT_FILE = "layouts.yaml"
OWN_LAYOUT = "own"
_GROUPS = ("at", "level", "logger", "thread", "message", "job")


def check_layout(pattern: str, where: str = "--layout") -> str:
    """The pattern, if it can be used; raises ``UsageError`` that says what is allowed."""
    try:
        compiled = regex.compile(pattern)
    except regex.error as error:
        raise UsageError(f"{where}: {pattern!r} is not a regex ({error})") from None
    unknown = sorted(set(compiled.groupindex) - set(_GROUPS))
    if unknown or not {"at", "level"} & set(compiled.groupindex):
        raise UsageError(
            f"{where}: {pattern!r} has the groups {sorted(compiled.groupindex)}; "
            f"allowed: {', '.join(_GROUPS)}, and at or level must be there"
        )
    if compiled.match(""):
        raise UsageError(f"{where}: {pattern!r} matches an empty line")
    return pattern


def read_layouts(directories: Iterable[Path]) -> tuple[str, ...]:
    """The layouts of every ``layouts.yaml`` in these folders; raises ``UsageError``."""
    found: list[str] = []
    for directory in directories:
        path = directory / LAYOUT_FILE
        if path.is_file():
            found.extend(_layouts_of(path))
    return tuple(found)


def _layouts_of(path: Path) -> list[str]:
    try:
        entries = load_plain_yaml(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"{path}: is no YAML ({reason})") from None
    if not isinstance(entries, list):
        raise UsageError(f"{path}: is no list of layouts, each with name, regex and example")
    return [_layout_of(entry, f"{path}: layout {n}") for n, entry in enumerate(entries, 1)]


def _layout_of(entry: object, where: str) -> str:
    keys = ("name", "regex", "example")
    if not isinstance(entry, dict) or not all(isinstance(entry.get(key), str) for key in keys):
        raise UsageError(f"{where}: needs name, regex and example, each a text")
    pattern = check_layout(entry["regex"], where)
    if OwnLayouts((pattern,), 1.0).parse(entry["example"], None) is None:
        raise UsageError(f"{where}: its regex does not match its example {entry['example']!r}")
    return pattern


class OwnLayouts:
    """Tries the layouts of one's own, in their order; one that is too slow is switched off."""

    def __init__(self, patterns: Sequence[str], timeout_seconds: float) -> None:
        self._patterns = [regex.compile(pattern, regex.DOTALL) for pattern in patterns]
        self._timeout = timeout_seconds
        self.problem: str | None = None

    def parse(self, line: str, default_timezone: tzinfo | None) -> Header | None:
        """The header on this line; without a time zone its time is not read."""
        for pattern in self._patterns:
            try:
                match = pattern.match(line[:MAX_HEADER_CHARS], timeout=self._timeout)
            except TimeoutError:
                self.problem = (
                    f"partial: the layout {pattern.pattern!r} took longer than "
                    f"{self._timeout} s on a line and was not used from there on"
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
    # The regex sees the head of a long line only; what it took to the end of that goes on.
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
