"""Finds the positions of an event's messages within its lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from flink_triage.logs.lifecycle import task_in_text
from flink_triage.logs.text.trace_lines import continues_trace, is_cause, is_suppressed
from flink_triage.model import Event, StackTrace, Throwable
from flink_triage.recurrence.event_shape import Analysis, Misfit, Slot
from flink_triage.recurrence.outline import VARIABLE, Outline

# `traces.fingerprint` truncates longer messages before it masks them, possibly inside an ID.
_MAX_MESSAGE_CHARS = 800
_FLAT_FRAME = re.compile(r"\bat [\w$.<>/]{3,400}\(")
# Text that does not follow the grammar of a printed Java stack trace.
_STRANGE = re.compile(r"#01\d|Traceback|Wrapped by|\\n|<br|xception on server side")


def slots_of(
    event: Event, outline: Outline, analysis: Analysis, printed: Sequence[Throwable]
) -> list[tuple[Slot, ...]]:
    """The slots of each throwable's message, followed by those of the event's message.

    Raises ``Misfit`` if the position of a message cannot be determined.
    """
    lines = outline.lines
    if not printed:
        if event.continuation is not None or analysis.message != event.message:
            raise Misfit
        return [(Slot(0, 0, len(event.message), event.message),)]
    message = _message_slot(lines, analysis.message, printed[0].type)
    is_in_line = bool(lines[0][message.end :].strip())
    slots = _throwable_slots(outline, printed, 0 if is_in_line else 1)
    slots.append((message,))
    return slots


def _message_slot(lines: Sequence[str], message: str, first_type: str) -> Slot:
    """The slot of the message, which must be on the first line; only a throwable may follow it."""
    line = lines[0]
    start = line.find(message)
    end = start + len(message)
    if start < 0 or line[:start].strip():
        raise Misfit
    rest = line[end:].strip()
    if rest and not (message and rest.startswith(first_type)):
        raise Misfit
    return Slot(0, start, end, message)


def printed_throwables(trace: StackTrace | None) -> list[Throwable]:
    """All throwables of a stack trace, including suppressed ones, in printed order."""
    throwables: list[Throwable] = []

    def add(chain: Iterable[Throwable]) -> None:
        for throwable in chain:
            throwables.append(throwable)
            for suppressed in throwable.suppressed:
                add(suppressed)

    add(trace.throwables if trace is not None else ())
    return throwables


def _throwable_slots(
    outline: Outline, printed: Sequence[Throwable], first_line: int
) -> list[tuple[Slot, ...]]:
    lines = outline.lines
    for line in lines:
        is_frame_like = continues_trace(line) and not (is_cause(line) or is_suppressed(line))
        if is_frame_like or _FLAT_FRAME.search(line) or _STRANGE.search(line):
            raise Misfit
    found = []
    following = first_line
    for throwable in printed:
        if VARIABLE.search(throwable.type) or len(throwable.message) > _MAX_MESSAGE_CHARS:
            raise Misfit
        slots = []
        name = throwable.type
        for part in throwable.message.split("\n"):
            number = _line_with(lines, following, part, name)
            is_fixed = VARIABLE.search(part) is None
            is_indented = not is_fixed and any(part in run for run in outline.runs)
            if is_fixed or (is_indented and number is None):
                slots.append(Slot(-1, 0, 0, part))
            elif is_indented or number is None:
                raise Misfit
            else:
                end = len(lines[number].rstrip())
                # A literal may span the type and the message, so the text between them must not
                # differ.
                if name and not lines[number][: end - len(part)].endswith(f"{name}: "):
                    raise Misfit
                slots.append(Slot(number, end - len(part), end, part))
            following = following if number is None else number + 1
            name = ""
        found.append(tuple(slots))
    return found


def _line_with(lines: Sequence[str], first: int, part: str, type_name: str) -> int | None:
    for number in range(first, len(lines)):
        line = lines[number].rstrip()
        if line.endswith(part) and type_name in line[: len(line) - len(part)]:
            return number
    return None


def message_place(throwable: Throwable, order: Mapping[int, int]) -> tuple[int, int]:
    """The number of the piece with a throwable, and the column at which its message starts."""
    return order[id(throwable)], len(throwable.type) + 2


def place_of_task(
    analysis: Analysis, trace: StackTrace | None, order: Mapping[int, int], message_number: int
) -> tuple[int, int] | None:
    """The number of the piece with the task, and the column at which its message starts.

    ``None`` if there is no task.
    """
    if task_in_text(analysis.message) is not None:
        return message_number, 0
    for throwable in trace.throwables if trace is not None else ():
        if task_in_text(throwable.message) is not None:
            return message_place(throwable, order)
    return None
