"""Checks whether an event has a given class, stack frame, or logger, by comparing names.

Logs print the same name in different forms: relocated to a shaded package, without its package,
with packages abbreviated to one letter, or with akka (before Flink 1.18) or pekko in its package.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from flink_triage.logs.text.trace_lines import is_throwable_type
from flink_triage.model import Frame, Origin, StackTrace, Throwable
from flink_triage.traces import PYFLINK_ERRORS

_AKKA = "akka."
_PEKKO = "org.apache.pekko."
# ``%c{2}`` prints the last two parts of a logger name. A name with more than three parts is assumed
# not to be shortened in this way.
_MAX_SHORT_NAME_PARTS = 3
_LEADING_CLASS = re.compile(r"(?P<type>[a-z]\w{0,64}(?:\.[\w$]{1,255}){1,30}):(?:[ \n]|$)")
# Nested futures add classes at the start of a message. At most this number of classes is read.
_MAX_LEADING_CLASSES = 4


def _canonical(name: str) -> str:
    if name.startswith(PYFLINK_ERRORS):
        return name.removeprefix(PYFLINK_ERRORS)
    return _PEKKO + name[len(_AKKA) :] if name.startswith(_AKKA) else name


@lru_cache(maxsize=16384)
def is_type(name: str, wanted: str) -> bool:
    """Whether ``name`` is ``wanted``, possibly relocated (``x.y.shaded.``) or without its package.

    ``wanted`` may also lack the package.
    """
    name, wanted = _canonical(name), _canonical(wanted)
    if name == wanted or name.endswith("." + wanted):
        return True
    if "." in name:
        return False
    simple = wanted.rpartition(".")[2]
    return name in (simple, simple.rpartition("$")[2])


def simple_name(name: str) -> str:
    """A class name without package and outer class; equal for two names if ``is_type`` is true."""
    return name[max(name.rfind("."), name.rfind("$")) + 1 :]


def is_any_type(name: str, wanted: Iterable[str]) -> bool:
    return any(is_type(name, one) for one in wanted)


def stated_types(throwable: Throwable) -> Iterator[str]:
    """The class of a throwable and the classes at the start of its message, outermost first.

    The message of ``new CompletionException(cause)`` is ``cause.toString()``. If the cause itself
    was cut off, only this message remains.
    """
    yield throwable.type
    start = 0
    for _ in range(_MAX_LEADING_CLASSES):
        match = _LEADING_CLASS.match(throwable.message, start)
        if match is None or not is_throwable_type(match["type"]):
            return
        yield match["type"]
        start = match.end()


def hides_class(name: str) -> bool:
    """Whether the name hides the original class of a throwable.

    Before Flink 1.16 (FLINK-25970), ``SerializedThrowable`` printed only the message of the
    original throwable. An unknown class does not contradict a condition.
    """
    return name.rpartition(".")[2] == "SerializedThrowable"


@lru_cache(maxsize=16384)
def is_logger(name: str, wanted: str) -> bool:
    """Whether ``name`` is the logger ``wanted``, or a logger in the package ``wanted``.

    ``name`` may be abbreviated (``o.a.f.r.X``, ``c.X``, ``X``).
    """
    name, wanted = _canonical(name), _canonical(wanted.rstrip("."))
    if name == wanted or name.startswith((wanted + ".", wanted + "$")):
        return True
    parts, wanted_parts = name.split("."), wanted.split(".")
    if len(parts) >= len(wanted_parts) and _agree(parts, wanted_parts):
        return True
    if len(parts) > _MAX_SHORT_NAME_PARTS:
        return False
    if len(parts) == 1 and not wanted_parts[-1][:1].isupper():
        # A class name without a package does not contradict any package.
        return name[:1].isupper()
    return any(
        parts[: len(tail)] == tail[: len(parts)]
        for tail in (wanted_parts[start:] for start in range(1, len(wanted_parts)))
        if len(tail) <= len(parts) or tail[-1][:1].islower()
    )


def _agree(parts: list[str], wanted_parts: list[str]) -> bool:
    pairs = zip(parts, wanted_parts, strict=False)
    return all(bool(part) and full.startswith(part) for part, full in pairs)


@lru_cache(maxsize=256)
def frame_names(frames_of_each: tuple[tuple[Frame, ...], ...]) -> str:
    """The ``class.method`` of each frame, one per line, as the input of ``frames_found``."""
    frames = (frame for frames in frames_of_each for frame in frames)
    names = (_canonical(f"{frame.class_name}.{frame.method}") for frame in frames)
    return "\n".join(f".{name}" for name in names)


@lru_cache(maxsize=16384)
def frames_found(names: str, wanted: Sequence[str]) -> Sequence[str]:
    """The items of ``wanted`` that match a frame.

    An item matches if a frame name starts with it, possibly after omitting leading packages or the
    class.
    """
    return tuple(one for one in wanted if f".{_canonical(one)}" in names)


def chain_with_depths(trace: StackTrace) -> Iterator[tuple[int, Throwable]]:
    """Every throwable with its depth from the root cause, starting with the root cause.

    Suppressed throwables come after all causes, because they did not cause the failure.
    """
    causes = trace.throwables
    last = len(causes) - 1
    for index in range(last, -1, -1):
        yield last - index, causes[index]
    depth = len(causes)
    waiting = [suppressed for throwable in causes for suppressed in throwable.suppressed]
    while waiting:
        chain = waiting.pop(0)
        for index in range(len(chain) - 1, -1, -1):
            yield depth, chain[index]
            depth += 1
            waiting.extend(chain[index].suppressed)


def failing_origin(trace: StackTrace) -> Origin | None:
    """The origin of the innermost frame outside of the JDK, libraries, and native code.

    Only the innermost throwable with frames is considered. If user code called a connector, the
    origin is ``user``. ``None`` without such a frame, and if the frames belong to several classes
    without packages, because these may be Flink classes in a manually shortened trace.
    """
    frames = next((t.frames for t in reversed(trace.throwables) if t.frames), ())
    origins = [f.origin for f in frames if f.origin not in ("jdk", "library", "native")]
    caller = next((origin for origin in origins if origin != "connector"), None)
    if caller != "user":
        return origins[0] if origins else None
    classes = {frame.class_name for frame in frames}
    return "user" if len(classes) == 1 or any("." in name for name in classes) else None
