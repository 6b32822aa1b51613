"""Recognizes failures that differ only in the text that their exceptions quote, such as a record.

Such failures may also differ in numbers and IDs, like other events of one form. Fingerprints do not
contain quoted text, so these failures are of one kind, even if the quoted texts have different
lengths. This requires that the quoted text does not affect how the event is parsed, and that the
events contain the same literals and match the same regexes.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import accumulate, pairwise
from typing import Any

import regex

from flink_triage.logs.text.hyperscan_databases import database_of
from flink_triage.logs.text.redact import may_hold_secret
from flink_triage.logs.text.regex_steps import is_quick
from flink_triage.logs.text.trace_lines import TRACE_WORDS
from flink_triage.settings import Settings

# Scope, literals, simple names of classes (empty for any class), and regex of an alternative.
Search = tuple[str, Sequence[str], Sequence[str], str]

# As in `traces.mask`.
_QUOTED = re.compile(
    rb"\"[^\"\n]{0,1024}\"|`[^`\n]{0,1024}`"
    rb"|(?<![A-Za-z0-9])'[^'\n]{0,1024}'(?![A-Za-z0-9])"
)
# A stack frame, and a throwable with its message. The message must be on one line, and short enough
# that `traces.fingerprint` does not truncate it before masking. A throwable with its message has
# fewer than `regex_steps.SHORT_CHARS` characters.
_FRAME = re.compile(rb"\t(?:at [\w$.<>/@-]{1,1024}\([^()]{0,256}\).{0,512}|\.\.\. \d{1,9} more)")
_HEADLINE = re.compile(
    rb"(?:Caused by: )?(?:org\.apache\.flink\.util\.SerializedThrowable: (?=(?:[\w$]+\.){2}))?"
    rb"([A-Za-z_$][\w$.]{0,255}: .{0,700})"
)
# The class of a throwable, and the classes at the start of its message.
_CLASSES = re.compile(rb"(?:[A-Za-z_$][\w$.]{0,255}:(?: |$)){1,5}")
_MAX_EVENT_BYTES = 16 * 1024
# The bits that contain the number of a literal.
_NUMBER = (1 << 32) - 1
# Headlines for which the parser changes the class or the message.
_REWRITTEN = re.compile(rb"SerializedThrowable|: \(message:|^([\w$.]+: )\1")
# A subtask, an ID, a character to clean, or a word of a stack trace.
INDICATIONS = (
    rb"\([0-9]{1,6}/[0-9]{1,6}\)",
    rb"[0-9a-f]{32}",
    rb"[\x00\x1b\r&\x80-\xff]",
    "|".join(word.replace(".", r"\.") for word in TRACE_WORDS).encode(),
)
# Indications in quoted text, which may also contain a stack trace on one line.
_QUOTED_INDICATIONS = (*INDICATIONS, rb"#01|<br", rb" by:|at[ \t]+[^ \n]*\(")

_LINE_END = re.compile(r"\(\?:\\n\|\\Z\)")
_EXCLUDED = re.compile(r"\[\^(?:[^\]\\]|\\.)*\]")
_MAY_CROSS_LINES = re.compile(r"\\[nsAZWD]|\(\?[a-z]*[sm]|\^|\$")


class QuotedKey(bytes):
    """The ``form`` of an event without quoted text, followed by its literals and matches."""

    form: bytes

    @classmethod
    def of(cls, form: bytes, marks: bytes) -> QuotedKey:
        key = cls(form + b"\0" + marks)
        key.form = form
        return key


@dataclass(frozen=True, slots=True)
class _Search:
    """A regex, its required literals, and the classes that it applies to (empty for all)."""

    literals: frozenset[int]
    names: frozenset[bytes]
    pattern: str
    is_event: bool


class QuotedText:
    """Removes quoted text from events, and finds the literals and regexes that match the full text.

    ``literals`` and ``searches`` are those of all signatures.
    """

    def __init__(
        self, literals: Iterable[str], searches: Iterable[Search], settings: Settings
    ) -> None:
        self._literals = sorted(set(literals))
        self._timeout_seconds = settings.regex_timeout_seconds
        # The matcher does not search the middle of a longer text.
        self._max_bytes = min(_MAX_EVENT_BYTES, settings.max_match_chars)
        numbers = {literal: number for number, literal in enumerate(self._literals)}
        # The searches by their longest literal, which is usually the rarest.
        self._searches: dict[int | None, list[_Search]] = {}
        for scope, needed, classes, pattern in searches:
            if scope not in ("frame", "message"):
                longest = numbers[max(needed, key=len)] if needed else None
                self._searches.setdefault(longest, []).append(
                    _Search(
                        frozenset(numbers[text] for text in needed),
                        frozenset(name.encode() for name in classes),
                        pattern,
                        scope == "event",
                    )
                )
        of_all = (search for some in self._searches.values() for search in some)
        self._known_names = frozenset().union(*(search.names for search in of_all))
        self._database: Any = None
        self._searches_for = lru_cache(maxsize=1024)(self._select_searches)

    def without(self, event: bytes) -> tuple[bytes, bytes] | None:
        """The event without quoted text, and a text that identifies its literals and matches.

        ``None`` if the event is not a failure with a stack trace that quotes text, if it is too
        long, or if the quoted text may affect more than its matches.
        """
        if len(event) > self._max_bytes:
            return None
        lines = event.split(b"\n")
        headlines = [i for i, line in enumerate(lines[1:-1], 1) if line[:1] != b"\t"]
        if not _is_failure(lines, headlines):
            return None
        quoted: list[bytes] = []
        texts: list[bytes] = []

        def leave_out(found: re.Match[bytes]) -> bytes:
            quoted.append(found[0][1:-1])
            return found[0][:1] * 2

        for index in headlines:
            text = _HEADLINE.fullmatch(lines[index])
            if text is None or _REWRITTEN.search(text[1]):
                return None
            texts.append(text[1])
            lines[index] = _QUOTED.sub(leave_out, lines[index])
        if not any(quoted) or not self._is_neutral(b"\n".join(quoted)):
            return None
        marks = self._marks_of(lines[0], texts)
        return None if marks is None else (b"\n".join(lines), marks)

    def _is_neutral(self, quoted: bytes) -> bool:
        """Whether the text does not affect how stack traces and tasks are parsed."""
        database, scratch = _indication_database()
        found: list[int] = []
        database.scan(quoted, match_event_handler=lambda *_: found.append(1), scratch=scratch)
        return not found

    def _marks_of(self, header_line: bytes, throwables: Sequence[bytes]) -> bytes | None:
        """The literals in the header line and each throwable, and the regexes that match them.

        ``None`` if these cannot be determined, or if the text may contain a secret.
        """
        literals = self._literals_in((header_line, *throwables))
        names = frozenset(name for text in throwables for name in _simple_names(text))
        found = frozenset([literal & _NUMBER for literal in literals])
        searches = self._searches_for(found, names & self._known_names)
        try:
            texts = [text.decode().rstrip() for text in throwables]
            if searches is None or may_hold_secret("\n".join(texts)):
                return None
            matches = [search(text) is not None for text in texts for search in searches]
        except (UnicodeDecodeError, TimeoutError):
            return None
        return array("Q", literals).tobytes() + bytes(matches)

    def _literals_in(self, lines: Sequence[bytes]) -> list[int]:
        """For each literal that occurs, its number, and the index of its line in the upper bits."""
        if self._database is None:
            self._database = database_of([literal.encode() for literal in self._literals])
        database, scratch = self._database
        found: list[int] = []
        ends = list(accumulate(len(line) + 1 for line in lines))

        def note(number: int, _start: int, end: int, *_: object) -> None:
            found.append(bisect_left(ends, end) << 32 | number)

        database.scan(b"\n".join(lines), match_event_handler=note, scratch=scratch)
        return sorted(found)

    def _select_searches(
        self, literals: frozenset[int], names: frozenset[bytes]
    ) -> Sequence[Callable[[str], Any]] | None:
        """Search functions of the regexes that may match.

        ``None`` if one of the regexes may match more than one throwable.
        """
        selected = [
            search
            for literal in (None, *sorted(literals))
            for search in self._searches.get(literal, ())
            if search.literals <= literals and not (search.names and search.names.isdisjoint(names))
        ]
        if any(search.is_event and may_cross_lines(search.pattern) for search in selected):
            return None
        patterns = dict.fromkeys(search.pattern for search in selected)
        return [_search_function(pattern, self._timeout_seconds) for pattern in patterns]


def _is_failure(lines: Sequence[bytes], headlines: Sequence[int]) -> bool:
    """Whether these are a header line, throwables that each have frames, and an empty last line."""
    if lines[-1] or not headlines or headlines[0] != 1 or headlines[-1] == len(lines) - 2:
        return False
    if any(index + 1 == following for index, following in pairwise(headlines)):
        return False
    return all(map(_is_frame, [line for line in lines if line[:1] == b"\t"]))


def _simple_names(throwable: bytes) -> list[bytes]:
    """The classes at the start of the text, without packages and outer classes."""
    classes = _CLASSES.match(throwable)
    names = classes[0].split(b":")[:-1] if classes is not None else []
    return [name[max(name.rfind(b"."), name.rfind(b"$")) + 1 :].strip() for name in names]


@lru_cache(maxsize=32768)
def _is_frame(line: bytes) -> bool:
    return _FRAME.fullmatch(line) is not None


@lru_cache(maxsize=4096)
def _search_function(pattern: str, timeout_seconds: float) -> Callable[[str], Any]:
    """``search`` of the compiled regex for short texts, with a timeout if that is necessary."""
    search = regex.compile(pattern).search
    return search if is_quick(pattern) else partial(search, timeout=timeout_seconds)


@lru_cache(maxsize=1)
def _indication_database() -> tuple[Any, Any]:
    return database_of(_QUOTED_INDICATIONS, literal=False)


def may_cross_lines(pattern: str) -> bool:
    """Whether a match of the regex may contain a newline, or depend on the lines around it."""
    pattern = _LINE_END.sub("", pattern)
    pattern = _EXCLUDED.sub(lambda found: "" if r"\n" in found[0] else r"\s", pattern)
    return _MAY_CROSS_LINES.search(pattern) is not None
