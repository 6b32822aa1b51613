"""Finds the digits and IDs of a form that affect its matches, and the positions of event details.

Events of a form (see ``event_forms``) can be counted without building them only if signatures and
parsers treat all of them alike (``SensitiveDigits``, ``has_interchangeable_digits``), and if at
least two parsed events of the form have the same properties (``constant_of``, ``places_of``).
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence

from flink_triage.model import Observation

_NUMBER = re.compile(rb"(?<![0-9A-Za-z$])[0-9]+(?![0-9A-Za-z$])")
_ID = re.compile(rb"(?<![0-9A-Za-z$])[0-9a-f]{32}(?![0-9A-Za-z$])")
_FRAME_INDENTS = (b"\n\t", b"\n\t\t", b"\n    ")
# Forms in which the regexes for traces, masks, and secrets distinguish some digits or IDs: an ID
# that may overlap with a number, an address, or an object's hash code; a number in a class name; or
# a character that is encoded as a number.
_UNEQUAL = re.compile(
    rb"&#0|%0000|0//0|[0-9][+\-:.,_@/][0h]h{30}|@[0h]h{30}|Lambda[^ \n]*/[0h]h{30}"
    rb"|^[\t ]*(?:(?:Caused by|Suppressed): )?"
    rb"[\w$.]*(?<![0-9A-Za-z$])0+(?![0-9A-Za-z$])[\w$.]*(?::|$)",
    re.MULTILINE,
)
# The syslog encoding of a newline or a tab.
_ESCAPE = re.compile(rb"#(00)0")
# A stack frame, which may share its line with other text.
_FRAME_WITH_DIGIT = re.compile(rb"(?<![0-9A-Za-z])at[ \t]+[^\s(]*[0-9][^\s(]*[ ]?\(")
# Regex parts that do not distinguish between digits.
_DIGIT_CLASSES = re.compile(r"\(\?P?[<=]\w+[>)]|\{\d*,?\d*\}|0-9|\\d")
_EDGES_OF_HEX = re.compile(r"^[0-9a-f]+(?![0-9A-Za-z])|(?<![0-9A-Za-z])[0-9a-f]+$|^[0-9a-f]+$")

# The columns [start, end) of an event.
Span = tuple[int, int]


class SensitiveDigits:
    """Finds the digits of an event that may affect its matches.

    ``literals`` are all literals of the signatures; ``searches`` are their regexes, each with the
    literals that it requires.
    """

    def __init__(
        self, literals: Iterable[str], searches: Iterable[tuple[Sequence[str], str]]
    ) -> None:
        forms = {literal: _NUMBER.sub(_zeros, literal.encode()) for literal in set(literals)}
        self._numbers = sorted({form for form in forms.values() if _NUMBER.search(form)})
        self._ids = sorted(
            {
                _EDGES_OF_HEX.sub(lambda m: "h" * len(m[0]), text).encode()
                for text in forms
                if _EDGES_OF_HEX.search(text)
            }
        )
        self._searches = sorted(
            {
                tuple(sorted(forms.get(text) or text.encode() for text in needed))
                for needed, pattern in searches
                if re.search(r"[0-9]", _DIGIT_CLASSES.sub("", pattern))
            }
        )

    def spans(self, form: bytes, header_bytes: int) -> list[Span] | None:
        """The columns of digits that may affect the matches; ``None`` if IDs may affect them."""
        if b"hh" in form and any(text in form for text in self._ids):
            return None
        if any(all(text in form for text in needed) for needed in self._searches):
            return [m.span() for m in re.finditer(rb"0+", form) if m.start() >= header_bytes]
        escapes = [found.span(1) for found in _ESCAPE.finditer(form)]
        return escapes + [
            (found.start() + digits.start(), found.start() + digits.end())
            for text in self._numbers
            for found in re.finditer(re.escape(text), form)
            for digits in re.finditer(rb"0+", text)
        ]


def _zeros(found: re.Match[bytes]) -> bytes:
    return b"0" * len(found[0])


def has_interchangeable_digits(form: bytes) -> bool:
    """Whether the regexes for traces, masks, and secrets treat all digits and IDs alike."""
    return not (_UNEQUAL.search(form) or _has_flat_frame(form))


def _has_flat_frame(form: bytes) -> bool:
    """Whether a stack frame that shares its line with other text contains a digit."""
    return any(
        not form.endswith(_FRAME_INDENTS, 0, found.start())
        for found in _FRAME_WITH_DIGIT.finditer(form)
    )


def constant_of(observation: Observation) -> tuple[Hashable, ...]:
    """The properties that all events of a form must share, so that they can be counted."""
    event, lifecycle = observation.event, observation.event.lifecycle
    trace = observation.fingerprint
    return (
        lifecycle.kind if lifecycle is not None else None,
        lifecycle.to_state if lifecycle is not None else None,
        event.level,
        tuple((match.signature, match.alternative) for match in observation.matches),
        trace.full if trace is not None else None,
        observation.subtask is None,
        observation.parallelism is None,
        observation.task is None,
        event.logger is None,
        event.job_id is None,
        lifecycle is None or lifecycle.job_id is None,
    )


def is_plain(constant: tuple[Hashable, ...]) -> bool:
    """Whether the events have no match, lifecycle event, or stack trace."""
    kind, _, _, matches, trace, *_ = constant
    return kind is None and not matches and trace is None


def places_of(
    observation: Observation, form: bytes, data: bytes, header_bytes: int
) -> dict[str, list[Span]] | None:
    """The columns of the job, task, subtask, parallelism, and logger in the bytes of an event.

    Of the job, task, and logger, only variable columns are included. ``None`` if a detail does not
    occur in the bytes.
    """
    event, lifecycle = observation.event, observation.event.lifecycle
    details = ("job", "task", "subtask", "parallelism", "logger")
    places: dict[str, list[Span]] = {name: [] for name in details}
    for job in {event.job_id, lifecycle.job_id if lifecycle is not None else None} - {None}:
        assert job is not None
        spans = _spans_of(job.encode(), data)
        if not spans:
            return None
        places["job"] += [span for span in spans if form[slice(*span)] != data[slice(*span)]]
    numbers = (("subtask", observation.subtask), ("parallelism", observation.parallelism))
    for name, number in numbers if observation.subtask is not None else ():
        places[name] = [
            found.span()
            for found in _NUMBER.finditer(data, header_bytes)
            if int(found[0]) == number
        ]
        if not places[name]:
            return None
    for name, text in (("task", observation.task), ("logger", event.logger)):
        if text is None:
            continue
        spans = _spans_of(text.encode(), data)
        if not spans:
            return None
        for start, end in spans:
            words = (*_NUMBER.finditer(data, start, end), *_ID.finditer(data, start, end))
            # A number or an ID may end where the detail ends.
            places[name] += [(word.start(), word.end()) for word in words]
    return places


def _spans_of(text: bytes, data: bytes) -> list[Span]:
    spans = []
    start = data.find(text) if text else -1
    while start >= 0:
        spans.append((start, start + len(text)))
        start = data.find(text, start + len(text))
    return spans
