"""Measures how often the root cause line of a labeled excerpt is parsed as a root cause.

The line is listed in an ``index.tsv``. It counts as found if it contains, or is contained in, the
root cause of a parsed chain or the message of an event, even if no signature matches it. Very short
messages and root causes are ignored.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from flink_triage.analyzer import Analyzer
from flink_triage.logs.detect.profile import probe
from flink_triage.logs.formats.carriers import CARRIERS
from flink_triage.logs.inputs.byte_ranges import plan_ranges
from flink_triage.logs.inputs.files import list_inputs
from flink_triage.logs.layouts.headers import parse_header
from flink_triage.logs.text.decode import clean
from flink_triage.settings import DEFAULT_SETTINGS
from flink_triage.signatures import builtin_pack_directory
from flink_triage.traces import extract

_LABEL = re.compile(r"^[>\s]*(?:Caused? by|Wrapped by)[:\uff1a]\s*")
_BLANKS = re.compile(r"\s+")
# A shorter parsed text would be contained in many labels.
_MIN_CHARS = 12
# A frame that is appended to the label, so that the label is parsed as a stack trace.
_FRAME = "org.apache.flink.Foo.bar(Foo.java:1)"


@dataclass(frozen=True, slots=True)
class RootLine:
    """The labeled line, and whether it was found; ``near`` is the most similar parsed text."""

    path: Path
    wanted: str
    is_found: bool
    near: str


def root_lines(tree: Path) -> list[RootLine]:
    """The results for all excerpts below ``tree`` whose label contains a line."""
    wanted = list(_named_lines(tree))
    if not wanted:
        return []
    analyzer = Analyzer((builtin_pack_directory(),))
    return [_look(path, line, analyzer) for path, line in wanted]


def _named_lines(tree: Path) -> Iterator[tuple[Path, str]]:
    for index in sorted(tree.rglob("index.tsv")):
        with index.open(newline="", encoding="utf-8") as rows:
            for row in csv.DictReader(rows, delimiter="\t"):
                path = next(index.parent.rglob(row["file"]), None)
                line = (row.get("root_cause_line") or "").strip()
                if path is not None and line:
                    yield path, line


def _look(path: Path, line: str, analyzer: Analyzer) -> RootLine:
    wanted = _bare(line)
    forms = {_one_line(wanted), _one_line(_typed(wanted))}
    candidates = list(_candidates(path, analyzer))
    found = any(_says(candidate, form) for candidate in candidates for form in forms)
    near = max(candidates, key=lambda text: _common(text, wanted), default="nothing")
    return RootLine(path, line, found, near[:200])


def _candidates(path: Path, analyzer: Analyzer) -> Iterator[str]:
    file = list_inputs([str(path)]).files[0]
    profile = probe(file, DEFAULT_SETTINGS)
    for byte_range in plan_ranges([(profile, "d")], DEFAULT_SETTINGS):
        for event in analyzer.events(byte_range):
            message, trace = extract(event.message, event.continuation)
            yield _one_line(message)
            if trace is not None:
                yield _one_line(trace.root_cause.text)


def _bare(line: str) -> str:
    """The line without carrier, header and ``Caused by:``, as in an event or a throwable."""
    text = clean(line)
    for name in ("syslog", "grep-path-line", "grep-line"):
        peeled = CARRIERS[name](text)
        text = peeled.text if peeled is not None else text
    header = parse_header(text)
    if header is not None and header.message:
        text = header.message
    return _LABEL.sub("", text)


def _typed(text: str) -> str:
    """A throwable with a custom string form, such as Thrift's, in the usual form."""
    _, trace = extract(text, f"\tat {_FRAME}")
    return trace.root_cause.text if trace is not None and trace.root_cause.type else text


def _one_line(text: str) -> str:
    """The text on one line, without quotes, because labels and logs differ in both."""
    return _BLANKS.sub(" ", text.replace("\\n", " ").replace('"', "")).strip()


def _says(candidate: str, wanted: str) -> bool:
    """Whether either text contains the other, because labels may be shorter than messages."""
    if len(candidate) < min(_MIN_CHARS, len(wanted)):
        return False
    return wanted in candidate or candidate in wanted


def _common(text: str, wanted: str) -> int:
    words = set(wanted.split())
    return sum(1 for word in set(text.split()) if word in words)


def print_root_lines(found: Sequence[RootLine]) -> None:
    """Print the share, and each miss with the most similar parsed text."""
    if not found:
        return
    hits = sum(line.is_found for line in found)
    percent = 100.0 * hits / len(found)
    print(f"root lines read  {percent:5.1f} %  ({hits} of {len(found)})")
    for line in found:
        if not line.is_found:
            print(f"LINE   {line.path.name}: {line.wanted[:160]}\n       read: {line.near[:160]}")
