"""Parses a user's YAML file into a tree of nodes with line numbers.

Only mappings, sequences, and scalars are supported. Anchors, aliases, tags, and merge keys are
rejected. Aliases can expand a small file to billions of values. Duplicate keys are rejected,
because PyYAML silently keeps the last one. Scalars remain text, because YAML 1.1 would convert
``no`` to a boolean, ``1.10`` to the number 1.1, and ``12:30:45`` to a number of seconds.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from flink_triage.plain_yaml import MAX_DEPTH

MAX_FILE_BYTES = 256 * 1024
_TOO_DEEP = f"is nested deeper than {MAX_DEPTH}"

# libyaml's parser is ten times faster than the Python parser, and returns the same events.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Scalar:
    text: str
    line: int
    is_plain: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    key: str
    line: int
    value: Node


@dataclass(frozen=True, slots=True)
class MappingNode:
    entries: tuple[Entry, ...]
    line: int

    def get(self, key: str) -> Node | None:
        return next((entry.value for entry in self.entries if entry.key == key), None)


@dataclass(frozen=True, slots=True)
class SequenceNode:
    items: tuple[Node, ...]
    line: int


Node = Scalar | MappingNode | SequenceNode


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem in a user's file, which is printed as ``path:line: field: reason``."""

    path: str
    line: int
    field: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.field}: {self.reason}"


class _Refused(Exception):
    """Stops parsing a document; never raised outside of this module."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason


def read_document(path: Path, label: str) -> tuple[Node | None, tuple[Problem, ...]]:
    """The document in a file, and its problems; the document is ``None`` if it cannot be parsed.

    ``label`` is the name of the file in the problems.
    """
    try:
        # Read one byte more than allowed, to detect a larger file. Without O_NONBLOCK, opening a
        # FIFO would block until there is a writer.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                return None, (Problem(label, 1, "file", "is not a regular file"),)
            data = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        return None, (Problem(label, 1, "file", f"cannot be read: {error.strerror}"),)
    if len(data) > MAX_FILE_BYTES:
        reason = f"is larger than {MAX_FILE_BYTES // 1024} KiB, the maximum file size"
        return None, (Problem(label, 1, "file", reason),)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return None, (Problem(label, line, "file", f"is not UTF-8 at byte {error.start}"),)
    return parse_document(text, label)


def parse_document(text: str, label: str) -> tuple[Node | None, tuple[Problem, ...]]:
    try:
        return _Composer(label).compose(yaml.parse(text, Loader=_Loader))
    except _Refused as refused:
        return None, (Problem(label, refused.line, "yaml", refused.reason),)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        # libyaml reads ahead, and may reach its own limit before this module sees MAX_DEPTH.
        if error.problem == "exceeded maximum nesting depth":
            return None, (Problem(label, line, "yaml", _TOO_DEEP),)
        reason = error.problem or error.context or "is not YAML"
        column = f" at column {mark.column + 1}" if mark else ""
        return None, (Problem(label, line, "yaml", f"{reason}{column}"),)
    except yaml.reader.ReaderError as error:
        position = error.position if isinstance(error.position, int) else 0
        line = text.count("\n", 0, position) + 1
        return None, (
            Problem(label, line, "yaml", f"contains a control character: {error.reason}"),
        )


class _Composer:
    def __init__(self, label: str) -> None:
        self._label = label
        self._problems: list[Problem] = []

    def compose(self, events: Iterator[Any]) -> tuple[Node | None, tuple[Problem, ...]]:
        root: Node | None = None
        documents = 0
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise _Refused(_line(event), "contains a second document, allowed: one")
            elif isinstance(event, yaml.NodeEvent):
                root = self._node(event, events, 1)
        if root is None or (isinstance(root, Scalar) and root.is_plain and not root.text):
            raise _Refused(1, "is empty")
        return root, tuple(self._problems)

    def _node(self, event: Any, events: Iterator[Any], depth: int) -> Node:
        line = _line(event)
        if isinstance(event, yaml.AliasEvent):
            raise _Refused(
                line, f"aliases are not allowed, got *{event.anchor}; write out the value"
            )
        if event.anchor is not None:
            raise _Refused(
                line, f"anchors are not allowed, got &{event.anchor}; write out the value"
            )
        if event.tag is not None:
            raise _Refused(line, f"tags are not allowed, got {event.tag}")
        if depth > MAX_DEPTH:
            raise _Refused(line, _TOO_DEEP)
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(line, events, depth)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(line, events, depth)
        return Scalar(event.value, line, is_plain=not event.style)

    def _mapping(self, line: int, events: Iterator[Any], depth: int) -> MappingNode:
        entries: dict[str, Entry] = {}
        for event in events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            key = self._node(event, events, depth + 1)
            value = self._node(next(events), events, depth + 1)
            if not isinstance(key, Scalar):
                raise _Refused(key.line, "a key must be a scalar")
            if key.text == "<<":
                raise _Refused(key.line, "merge keys are not allowed; write out the merged keys")
            first = entries.get(key.text)
            if first is not None:
                reason = f"is a duplicate key, first on line {first.line}"
                self._problems.append(Problem(self._label, key.line, key.text, reason))
            else:
                entries[key.text] = Entry(key.text, key.line, value)
        return MappingNode(tuple(entries.values()), line)

    def _sequence(self, line: int, events: Iterator[Any], depth: int) -> SequenceNode:
        items: list[Node] = []
        for event in events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            items.append(self._node(event, events, depth + 1))
        return SequenceNode(tuple(items), line)


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1
