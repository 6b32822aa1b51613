"""Renders a stack trace as canonical text, and reconstructs omitted frames."""

from __future__ import annotations

from flink_triage.model import Frame, StackTrace, Throwable

_SERIALIZED = "org.apache.flink.util.SerializedThrowable"


def render(trace: StackTrace) -> str:
    """The text that ``Throwable.printStackTrace`` would print, including ``... n more``.

    JARs are printed as in log4j2 (``~[jar:?]``). For a Java stack trace that is not truncated, and
    whose messages do not look like lines of a trace, ``extract("", render(trace))`` returns the
    same trace.
    """
    lines: list[str] = []
    _render_chain(trace.throwables, "", lines)
    return "\n".join(lines)


def expand_frames(trace: StackTrace) -> tuple[tuple[Frame, ...], ...]:
    """All frames of each throwable in the chain, including those omitted as ``... n more``.

    If the enclosing throwable has fewer frames than were omitted, only those are added.
    """
    expanded: list[tuple[Frame, ...]] = []
    enclosing: tuple[Frame, ...] = ()
    for throwable in trace.throwables:
        omitted = throwable.omitted_frame_count
        tail = enclosing[-omitted:] if omitted else ()
        enclosing = throwable.frames + tail if tail else throwable.frames
        expanded.append(enclosing)
    return tuple(expanded)


def own_frames(trace: StackTrace) -> tuple[tuple[Frame, ...], ...]:
    """The frames of each throwable above those that it shares with its enclosing throwable.

    They may differ from the printed frames, because the text that the JobManager logs for a
    serialized exception does not omit all shared frames.
    """
    own: list[tuple[Frame, ...]] = []
    enclosing: tuple[Frame, ...] = ()
    for throwable, frames in zip(trace.throwables, expand_frames(trace), strict=True):
        printed = throwable.frames
        # Omitted frames are shared by definition, so only printed frames are compared.
        offset = len(enclosing) - (len(frames) - len(printed))
        shared = 0
        while shared < min(len(printed), offset) and _call(printed[-1 - shared]) == _call(
            enclosing[offset - 1 - shared]
        ):
            shared += 1
        own.append(printed[:-shared] if shared else printed)
        enclosing = frames
    return tuple(own)


def _call(frame: Frame) -> tuple[str, str, int | None]:
    return frame.class_name, frame.method, frame.line


def leading_frames(trace: StackTrace, index: int, count: int) -> tuple[Frame, ...]:
    """The first ``count`` frames of the throwable at ``index``, including omitted frames."""
    throwable = trace.throwables[index]
    if len(throwable.frames) >= count or not throwable.omitted_frame_count:
        return throwable.frames[:count]
    return expand_frames(trace)[index][:count]


def render_frame(frame: Frame) -> str:
    """The frame as ``class.method(file:line) ~[jar:?]``, without ``at``."""
    source = frame.file or "Unknown Source"
    if frame.line is not None:
        source = f"{source}:{frame.line}"
    jar = f" ~[{frame.jar}:?]" if frame.jar else ""
    return f"{frame.class_name}.{frame.method}({source}){jar}"


def _render_chain(chain: tuple[Throwable, ...], prefix: str, lines: list[str]) -> None:
    for index, throwable in enumerate(chain):
        word = "Caused by: " if index or throwable.relation == "cause" else ""
        if throwable.relation == "suppressed" and not index:
            word = "Suppressed: "
        lines.append(f"{prefix}{word}{_header(throwable)}")
        lines.extend(f"{prefix}\tat {render_frame(frame)}" for frame in throwable.frames)
        if throwable.omitted_frame_count:
            lines.append(f"{prefix}\t... {throwable.omitted_frame_count} more")
        for suppressed in throwable.suppressed:
            _render_chain(suppressed, prefix + "\t", lines)


def _header(throwable: Throwable) -> str:
    if not throwable.is_serialized:
        return throwable.text
    if throwable.type == _SERIALIZED:
        return throwable.text
    return f"{_SERIALIZED}: {throwable.text}"
