"""Assembles throwable headers and stack frames, in printed order, into a cause chain."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from flink_triage.logs.text.trace_lines import HEADER, is_throwable_type
from flink_triage.model import Frame, Frames, Relation, StackTrace, Throwable

MAX_THROWABLES = 256
MAX_MESSAGE_LINES = 1000
# Maximum nesting of ``Suppressed:``; deeper suppressed throwables are added to the deepest chain.
MAX_SUPPRESSED_DEPTH = 8

SERIALIZED = "org.apache.flink.util.SerializedThrowable"
_TYPE = re.compile(r"[A-Za-z_$][\w$]{0,255}(?:\.{1,2}[\w$]{1,255}){1,30}")


@dataclass(slots=True)
class _Draft:
    type: str
    lines: list[str]
    relation: Relation
    frames: list[Frame] = field(default_factory=list)
    omitted: int = 0
    suppressed: list[_Chain] = field(default_factory=list)


@dataclass(slots=True)
class _Chain:
    """A chain that may still grow, with the indentation of its first line.

    ``depth`` is the number of enclosing ``Suppressed:`` blocks, including its own.
    """

    indent: int
    depth: int
    drafts: list[_Draft] = field(default_factory=list)
    is_root_first: bool = False


class Assembly:
    """Collects one stack trace.

    The caller classifies each line. The indentation of a cause or a suppressed throwable determines
    the chain to which it belongs.
    """

    def __init__(self) -> None:
        self.is_truncated = False
        self._main = _Chain(indent=0, depth=0)
        self._open: list[_Chain] = [self._main]
        self._current: _Draft | None = None
        self._server_side: list[_Draft] = []
        self._python: list[Throwable] = []
        self._python_outer: tuple[Throwable, ...] = ()
        self._count = 0

    @property
    def is_empty(self) -> bool:
        return self._current is None

    @property
    def is_full(self) -> bool:
        """Whether the trace has the maximum number of throwables, which marks it as truncated."""
        if self._count >= MAX_THROWABLES:
            self.is_truncated = True
        return self._count >= MAX_THROWABLES

    @property
    def in_message(self) -> bool:
        """Whether the current throwable has no frames yet, neither printed nor omitted."""
        return self._current is None or not (self._current.frames or self._current.omitted)

    @property
    def message_tail(self) -> str:
        if self._current is None:
            return ""
        return next((line for line in reversed(self._current.lines) if line.strip()), "")

    def start(self, header: str, indent: int) -> None:
        self._main.indent = indent
        self._add(self._main, header, "thrown")

    def add_frame(self, frame: Frame) -> None:
        self._draft().frames.append(frame)

    def add_omitted(self, count: int) -> None:
        self._draft().omitted = count

    def add_message_line(self, text: str) -> None:
        draft = self._draft()
        if len(draft.lines) < MAX_MESSAGE_LINES:
            draft.lines.append(text)
        else:
            self.is_truncated = True

    def add_cause(self, header: str, indent: int, is_wrapper: bool) -> None:
        """Add a cause to the innermost chain that is not indented more than the cause.

        If the chain is not indented more than the main chain, the cause belongs to the main chain.
        """
        while len(self._open) > 1 and self._is_left(self._open[-1], indent):
            self._open.pop()
        chain = self._open[-1]
        if self.is_full and len(chain.drafts) > 1:
            # Drop the most recent throwable, to keep the root cause, which is usually printed last.
            chain.drafts.pop()
            self._count -= 1
        chain.is_root_first = chain.is_root_first or is_wrapper
        self._add(chain, header, "cause" if chain.drafts or chain.depth else "thrown")

    def _is_left(self, chain: _Chain, indent: int) -> bool:
        # Without indentation, the chain of a cause is unknown. Use the main chain, because thrown
        # exceptions usually have causes, and suppressed throwables rarely do.
        return indent < chain.indent or chain.indent <= self._main.indent

    def add_suppressed(self, header: str, indent: int) -> None:
        while len(self._open) > 1 and indent <= self._open[-1].indent:
            self._open.pop()
        owner_chain = self._open[-1]
        if not owner_chain.drafts:
            self._add(owner_chain, "", "thrown")
        if owner_chain.depth >= MAX_SUPPRESSED_DEPTH:
            self._add(owner_chain, header, "cause")
            return
        chain = _Chain(indent=indent, depth=owner_chain.depth + 1)
        owner_chain.drafts[-1].suppressed.append(chain)
        self._open.append(chain)
        self._add(chain, header, "suppressed")

    def enter_server_side(self, header: str) -> None:
        """Begin the server's stack trace, which the REST client prints in its exception message."""
        if self._current is not None and not self.is_full:
            self._server_side.append(self._current)
            self._add(self._open[-1], header, "cause")

    def leave_server_side(self) -> bool:
        if not self._server_side:
            return False
        self._current = self._server_side.pop()
        return True

    def add_python(self, throwables: Sequence[Throwable]) -> None:
        """Add Python errors, outermost first, at the end of the cause chain."""
        self._python.extend(throwables)

    def wrap_in_python(self, throwables: Sequence[Throwable]) -> None:
        """Add Python errors, outermost first, as wrappers of the Java stack trace that follows."""
        self._python_outer += tuple(throwables)

    def build(self) -> StackTrace | None:
        chain = _without_return(_finish(self._main))
        chain = self._python_outer + chain + tuple(self._python)
        if not chain:
            return None
        return StackTrace(_relate(_unrepeat(chain)), self.is_truncated)

    def _draft(self) -> _Draft:
        if self._current is None:
            self._add(self._main, "", "thrown")
        assert self._current is not None
        return self._current

    def _add(self, chain: _Chain, header: str, relation: Relation) -> None:
        type_name, message = _split_header(header)
        self._current = _Draft(type_name, [message], relation)
        chain.drafts.append(self._current)
        self._count += 1


def _split_header(header: str) -> tuple[str, str]:
    match = HEADER.match(header)
    if match is None:
        return "", header
    message = header[match.end() :].strip()
    if message.startswith("(message:"):  # Thrift's own toString
        message = message[len("(message:") :].removesuffix(")")
    remote = match["remote"] or ""
    return remote if is_throwable_type(remote) else match["type"], message


def _relate(chain: tuple[Throwable, ...], first: Relation = "thrown") -> tuple[Throwable, ...]:
    return tuple(
        _with_relation(throwable, first if index == 0 else "cause")
        for index, throwable in enumerate(chain)
    )


def _with_relation(throwable: Throwable, relation: Relation) -> Throwable:
    return throwable if throwable.relation == relation else replace(throwable, relation=relation)


def _unrepeat(chain: tuple[Throwable, ...]) -> tuple[Throwable, ...]:
    """Remove a repeated type from each message, and mark its throwable as serialized.

    log4j2 prints the type before the message of a SerializedThrowable, which begins with the same
    type. ``new X(cause)`` also prints ``X: X: message`` if the cause has the type X; this type is
    kept.
    """
    result: list[Throwable] = []
    for throwable, cause in zip(chain, (*chain[1:], None), strict=True):
        repeated = f"{throwable.type}: "
        is_repeated = bool(throwable.type) and throwable.message.startswith(repeated)
        if is_repeated and (cause is None or cause.type != throwable.type):
            message = throwable.message[len(repeated) :]
            result.append(replace(throwable, message=message, is_serialized=True))
        else:
            result.append(throwable)
    return tuple(result)


def _without_return(chain: tuple[Throwable, ...]) -> tuple[Throwable, ...]:
    """Remove the last throwable if it repeats an earlier one and has only omitted frames.

    log4j2 prints a circular reference this way.
    """
    last = chain[-1] if len(chain) > 1 else None
    if last is None or last.frames or not last.omitted_frame_count:
        return chain
    is_known = any((t.type, t.message) == (last.type, last.message) for t in chain[:-1])
    return chain[:-1] if is_known else chain


def _finish(chain: _Chain) -> tuple[Throwable, ...]:
    """The finished chain; the recursion depth is limited by ``MAX_SUPPRESSED_DEPTH``."""
    finished = tuple(_finish_one(draft) for draft in chain.drafts)
    if not chain.is_root_first:
        return finished
    return _relate(finished[::-1], finished[0].relation if finished else "thrown")


def _finish_one(draft: _Draft) -> Throwable:
    type_name, message, is_serialized = unwrap_serialized(
        draft.type, "\n".join(draft.lines).strip()
    )
    return Throwable(
        type=type_name,
        # log4j2 and logback print "null" for a missing message; the JVM prints nothing.
        message="" if message == "null" else message,
        frames=_known_frames(tuple(draft.frames)),
        omitted_frame_count=draft.omitted,
        relation=draft.relation,
        is_serialized=is_serialized,
        suppressed=tuple(_finish(chain) for chain in draft.suppressed),
    )


@lru_cache(maxsize=256)
def _known_frames(frames: tuple[Frame, ...]) -> Frames:
    """The same object for recently seen equal frames, because it is a key of caches."""
    return Frames(frames)


def unwrap_serialized(type_name: str, message: str) -> tuple[str, str, bool]:
    """The original class and message of a throwable, and whether it is a ``SerializedThrowable``.

    The message of a ``SerializedThrowable`` is ``class: message``. Flink before 1.16 (FLINK-25970)
    printed only the message; the type is then unknown and remains ``SerializedThrowable``.
    """
    is_serialized = False
    while type_name.rpartition(".")[2] == "SerializedThrowable":
        is_serialized = True
        match = _TYPE.match(message)
        if match is None:
            break
        rest = message[match.end() :]
        if not (is_throwable_type(match.group()) or match.group().count(".") > 1):
            break
        if rest and not rest.startswith((":", "\n")):
            break
        type_name, message = match.group(), rest.removeprefix(":").strip()
    return type_name, message, is_serialized
