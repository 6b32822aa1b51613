"""Extracts the facts to report from the stack trace of a failure without a signature.

The facts are the exception and its message, its wrappers, the location that threw it (for an
argument check, its caller), the job's own code, the owner of the code at that location, search
terms, and whether the cause may be missing. The module does not determine the cause.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from flink_triage.model import (
    Evidence,
    Frame,
    Incident,
    Result,
    StackTrace,
    Throwable,
    UnknownFailure,
)
from flink_triage.report.facts.sanitize import one_line
from flink_triage.traces import OMITTED_STACKS, extract, part_of, simple_name

_MAX_CHARS = 400
_MAX_WRAPPED = 2
_MAX_PARTS = 3

# Exceptions without a message that only wrap a cause; if one is last, the trace was truncated.
_BARE_WRAPPERS = (
    "java.lang.reflect.InvocationTargetException",
    "java.lang.reflect.UndeclaredThrowableException",
    "java.util.concurrent.CompletionException",
    "java.util.concurrent.ExecutionException",
)
# Exceptions of the client that submitted or watches the job; their frames belong to the client.
_CLIENTS = (
    "org.apache.flink.client.",
    "org.apache.flink.runtime.client.",
    "org.apache.flink.runtime.JobException",
)
# Classes that check arguments: the location of the failure is their caller.
_CHECKS = re.compile(r"(?:^|[.$])(?:Preconditions|Objects|Assert|Validate|Verify|Checks?)$")
_START_IS_MISSING = (
    "the trace begins in the middle of its frames: the exception is above them in the original log"
)
# The last frames of a complete trace: the start of a thread or of a program.
_ENTRY = re.compile(r"(?:Thread(?:\$\w+)?|TimerThread)\.run(?:With)?$|\.main(?:\$\w+)?$")
_FLINK = "Flink"
# A plain word, which is assumed to be the same in every occurrence of a message.
_WORD = re.compile(r"[^\W\d_]{1,40}(?:['-][^\W\d_]{1,40})?[.,:;!?]?")
# Without spaces between words, as in Chinese, the number of characters counts instead.
_MIN_WORDS, _MIN_WORD_CHARS, _MAX_SEARCH_CHARS = 3, 4, 80


@dataclass(frozen=True, slots=True)
class Failure:
    """Facts about an unknown failure; each text is one line.

    ``thrown`` is the innermost throwable, except those that only wrap a missing cause.
    ``wrapped_in`` contains up to two wrappers with a message of their own, nearest first. ``cut``
    is the reason why the cause may be missing.
    """

    thrown: str | None
    wrapped_in: tuple[str, ...]
    place: str | None
    own_code: str | None
    part: str | None
    search_for: str | None
    cut: str | None

    def lines(self) -> Iterator[tuple[str, str]]:
        """Pairs of label and text, most important first."""
        if self.thrown is not None:
            yield "thrown", self.thrown
        for text in self.wrapped_in:
            yield "wrapped in", text
        if self.place is not None:
            yield "at", self.place
        if self.own_code is not None:
            yield "in the job's code", self.own_code
        if self.part is not None:
            yield "belongs to", self.part
        if self.cut is not None:
            yield "cut off", self.cut
        if self.search_for is not None:
            yield "search for", self.search_for


def failure_of(result: Result, incident: Incident) -> Failure | None:
    """The failure of an undetermined incident; ``None`` for other incidents.

    ``None`` also if the incident has no first fault, or if the fault has no stack trace.
    """
    if incident.verdict != "undetermined" or incident.first_fault is None:
        return None
    return failure_at(result, incident.first_fault)


def failure_at(result: Result, evidence: Evidence) -> Failure | None:
    """The failure in the trace to which ``evidence`` refers; ``None`` without a trace."""
    text = result.stack_traces.get(evidence.fingerprint or "") or evidence.excerpt
    trace = extract("", text)[1]
    return _failure(trace) if trace is not None else None


def naming(failure: UnknownFailure) -> str:
    """The command that drafts a signature for the failure."""
    draft = "flink-triage signatures new <logs> --id <yours>/<name>"
    return f"{draft} --fingerprint {failure.fingerprint}"


def _failure(trace: StackTrace) -> Failure:
    chain = trace.throwables
    named = [i for i, t in enumerate(chain) if t.type and not _is_bare_wrapper(t)]
    at = named[-1] if named else len(chain) - 1
    thrown, around = chain[at], chain[:at][::-1]
    inward = [t for t in (*chain[at:][::-1], *around) if not t.type.startswith(_CLIENTS)]
    place = _place(inward)
    own = next((f for t in inward for f in t.frames if f.origin == "user"), None)
    return Failure(
        thrown=_thrown(thrown),
        wrapped_in=tuple(_wrappers(thrown, around)),
        place=_frame(place) if place is not None else None,
        own_code=_frame(own) if own is not None and own != place else None,
        part=_parts(inward, place),
        search_for=_search(thrown, place),
        cut=_cut(chain) if thrown.type else _START_IS_MISSING,
    )


def _thrown(throwable: Throwable) -> str | None:
    if not throwable.type:
        return None
    text = _shortened(throwable)
    return text if throwable.message else f"{text}, without a message"


def _is_bare_wrapper(throwable: Throwable) -> bool:
    return throwable.type in _BARE_WRAPPERS and not throwable.message


def _shortened(throwable: Throwable) -> str:
    text = one_line(throwable.text)
    return text if len(text) <= _MAX_CHARS else f"{text[: _MAX_CHARS - 1]}…"


def _wrappers(thrown: Throwable, around: Sequence[Throwable]) -> Iterator[str]:
    """The nearest wrappers with their own message; many only repeat the message of their cause."""
    texts = [thrown.text]
    shown = 0
    for throwable in around:
        if throwable.message and not any(throwable.message in text for text in texts):
            is_echo = any(text in throwable.message for text in texts)
            texts.append(throwable.text)
            if is_echo:
                continue
            yield _shortened(throwable)
            shown += 1
            if shown == _MAX_WRAPPED:
                return


def _place(inward: Sequence[Throwable]) -> Frame | None:
    """The first frame outside the JDK and argument checks, or else the first frame."""
    frames = [frame for throwable in inward for frame in throwable.frames]
    return next(
        (f for f in frames if f.origin != "jdk" and not _CHECKS.search(f.class_name)),
        next(iter(frames), None),
    )


def _frame(frame: Frame) -> str:
    """``a.b.C.method (C.java:12, the-jar-1.0.jar)``."""
    line = f":{frame.line}" if frame.line is not None else ""
    source = f"{frame.file}{line}" if frame.file else ""
    where = ", ".join(part for part in (source, frame.jar) if part)
    return one_line(f"{frame.class_name}.{frame.method}" + (f" ({where})" if where else ""))


def _parts(inward: Sequence[Throwable], place: Frame | None) -> str | None:
    """The failing components, such as ``Jackson, called by the Kafka connector``.

    The code that runs every task is omitted.
    """
    frames = [frame for throwable in inward for frame in throwable.frames]
    begin = frames.index(place) if place is not None else 0
    names: list[str] = []
    for frame in frames[begin:]:
        name = "the job's own code" if frame.origin == "user" else part_of(frame.class_name)
        if name is None or name in names:
            continue
        if names and (name == _FLINK or name.startswith(f"{_FLINK}'s ")):
            # The remaining frames belong to the code that runs every task.
            break
        names.append(name)
        if len(names) == _MAX_PARTS or frame.origin == "user":
            break
    return ", called by ".join(names) or None


def _search(thrown: Throwable, place: Frame | None) -> str | None:
    """Search terms for the same failure: the class, with some plain words or the location.

    ``None`` if only the class is known, which is too general.
    """
    name = simple_name(thrown.type)
    runs: list[list[str]] = [[]]
    for word in thrown.message.split("\n", 1)[0].split():
        if _WORD.fullmatch(word):
            runs[-1].append(word)
        else:
            runs.append([])
    words = " ".join(max(runs, key=lambda run: len(" ".join(run)))).rstrip(".,:;!?")
    words = (
        words[:_MAX_SEARCH_CHARS].rpartition(" ")[0] if len(words) > _MAX_SEARCH_CHARS else words
    )
    is_unspaced = len(words) >= _MIN_WORD_CHARS and not words.isascii()
    if words.count(" ") + 1 >= _MIN_WORDS or is_unspaced:
        return f'{name} "{words}"'
    if place is None:
        return None
    return f"{name} {place.class_name.rpartition('.')[2]}.{place.method}".lstrip()


def _cut(chain: Sequence[Throwable]) -> str | None:
    """The reason why the innermost throwable may not be the last one of the original trace."""
    root = chain[-1]
    if _is_bare_wrapper(root):
        return f"{root.type} only wraps its cause: search for it below this in the original log"
    if root.type in OMITTED_STACKS and not (
        root.message or root.frames or root.omitted_frame_count
    ):
        return (
            "the JVM omits the frames of exceptions that are thrown often: see the first ones in "
            "the log, or run with -XX:-OmitStackTraceInFastThrow"
        )
    if not root.frames or root.omitted_frame_count or any(_is_python(f) for f in root.frames):
        return None
    last = root.frames[-1]
    if _ENTRY.search(f"{last.class_name}.{last.method}"):
        return None
    return (
        'the trace ends in the middle of its frames: search for "Caused by" below them in the '
        "original log"
    )


def _is_python(frame: Frame) -> bool:
    return frame.file is not None and frame.file.endswith((".py", ".pyx"))
