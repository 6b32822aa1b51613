"""Diagnoses logs with two simple methods, as baselines for accuracy.

``grep and count`` selects the signature whose strings occur most often; ``most frequent exception``
selects the signature of the most frequent exception. Both use the literals and class names of all
signatures that may be an answer, except generic ones; the first also uses their frames. They ignore
regexes, other conditions, and the order of events.
"""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from flink_triage.logs.inputs.files import list_inputs
from flink_triage.signatures import Alternative, Signature, SignaturePack

Ranking = list[str]
Baseline = Callable[[str, SignaturePack], Ranking]

# ``Caused by: a.b.CException: message``, also after an event header.
_THROWN = re.compile(
    r"(?:^|[\s:>])((?:[a-z_]\w{0,60}\.){1,12}[A-Z][\w$]{0,120}(?:Exception|Error))(?::[ \t]*(.*))?$"
)
_NUMBER = re.compile(r"\d+")
_MAX_LINE_CHARS = 2000


def text_of(path: Path) -> str:
    """The text of all logs below ``path``; gzip files are decompressed."""
    texts = []
    for file in list_inputs([str(path)]).files:
        content = Path(file.path).read_bytes()
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
        texts.append(content.decode("utf-8", "replace"))
    return "\n".join(texts)


def grep_and_count(text: str, pack: SignaturePack) -> Ranking:
    """Signatures ranked by the count of their most frequent alternative.

    The count of an alternative is that of its rarest literal, class, or frame. If one of several
    classes or frames suffices, the most frequent one counts.
    """
    counts: dict[str, int] = {}

    def count(literal: str) -> int:
        if literal not in counts:
            counts[literal] = text.count(literal)
        return counts[literal]

    def count_form(form: Alternative) -> int:
        asked = [count(literal) for literal in form.literals]
        for any_of in (form.throwables, form.root_causes, form.frames):
            asked += [max(map(count, any_of))] if any_of else []
        return min(asked, default=0)

    return _ranked({one.id: max(map(count_form, one.alternatives)) for one in _answers(pack)})


def most_frequent_exception(text: str, pack: SignaturePack) -> Ranking:
    """Signatures that match the exceptions of the text, the most frequent exception first.

    Exceptions are distinguished by class, and by message without numbers. A signature matches an
    exception if the line of the first occurrence contains all literals of an alternative, and if
    the alternative requires the class of the exception or no class. Alternatives without literals
    are ignored. If several signatures match, the one with the longest literals is used.
    """
    counts: Counter[tuple[str, str]] = Counter()
    lines: dict[tuple[str, str], str] = {}
    for line in text.split("\n"):
        found = _THROWN.search(line[:_MAX_LINE_CHARS])
        if found is not None:
            thrown = found[1], _NUMBER.sub("#", found[2] or "")
            counts[thrown] += 1
            lines.setdefault(thrown, line)
    named = (_naming(thrown[0], lines[thrown], pack) for thrown, _ in counts.most_common())
    return list(dict.fromkeys(name for name in named if name is not None))


BASELINES: Mapping[str, Baseline] = {
    "grep and count": grep_and_count,
    "most frequent exception": most_frequent_exception,
}


def _naming(name: str, line: str, pack: SignaturePack) -> str | None:
    simple = name.rpartition(".")[2]
    found = []
    for signature in _answers(pack):
        for form in signature.alternatives:
            asked = {of.rpartition(".")[2] for of in (*form.throwables, *form.root_causes)}
            is_text_there = form.literals and all(literal in line for literal in form.literals)
            if is_text_there and (not asked or simple in asked):
                found.append((sum(map(len, form.literals)), signature.id))
    return max(found)[1] if found else None


def _answers(pack: SignaturePack) -> Iterable[Signature]:
    return (one for one in pack.signatures.values() if one.is_answer and not one.is_generic)


def _ranked(found: Mapping[str, int]) -> Ranking:
    """The most frequent first; equal counts are ordered by id, so that the order is stable."""
    held = [name for name in found if found[name]]
    return sorted(held, key=lambda name: (-found[name], name))
