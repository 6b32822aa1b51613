"""Detects which carriers the lines of a file have."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from flink_triage.logs.formats.carriers import CARRIERS, INDENTS, Peel
from flink_triage.logs.layouts.json_lines import kind_of_line
from flink_triage.logs.layouts.timestamps import match_timestamp, mostly_plain
from flink_triage.logs.text.trace_lines import continues_trace, is_throwable_header

_DIGITS = re.compile(r"\d{1,10}")
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
_MAX_NESTED = 3
# Terminal widths. Narrower text is usually wrapped between words.
_WIDTHS = range(60, 501)


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
    if all(name in INDENTS or name == "quote" for name in names):
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
        texts = _peeled_by_most(peel, lines, 0.5 if name in INDENTS else _ENOUGH)
        if not texts:
            continue
        if name in INDENTS:
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
