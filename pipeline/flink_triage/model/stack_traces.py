"""A stack trace: a chain of throwables with frames, and its fingerprints."""

from __future__ import annotations

from dataclasses import dataclass

from flink_triage.model.vocabulary import Origin, Relation


@dataclass(frozen=True, slots=True)
class Frame:
    """One ``at class.method(file:line)`` line of a Java stack trace, or a call in a traceback.

    ``class_name`` is the printed class name without a class loader or module prefix, or the name of
    the Python module. ``line`` is ``None`` if no line number is printed. ``jar`` is the JAR file
    name in Log4j 2's packaging data, such as ``flink-dist-1.16.0.jar``, or ``None``.
    """

    class_name: str
    method: str
    file: str | None = None
    line: int | None = None
    jar: str | None = None
    origin: Origin = "user"


class Frames(tuple[Frame, ...]):
    """The frames of a throwable; computes its hash only once, because it is a key of caches."""

    def __hash__(self) -> int:
        known: int | None = self.__dict__.get("hash")
        if known is None:
            known = self.__dict__["hash"] = super().__hash__()
        return known

    def __reduce__(self) -> tuple[type[Frames], tuple[tuple[Frame, ...]]]:
        # Do not pickle the hash, because it differs between processes.
        return Frames, (tuple(self),)


@dataclass(frozen=True, slots=True)
class Throwable:
    """One throwable of a chain.

    ``type`` is the original class: Flink's ``SerializedThrowable: some.Type: message`` is unwrapped
    to ``some.Type`` with ``is_serialized``, and ``RemoteException(some.Type): message`` to
    ``some.Type``. ``frames`` contains only the printed frames. ``omitted_frame_count`` is the n in
    ``... n more``, which replaces the n frames that the throwable shares with its enclosing
    throwable.
    """

    type: str
    message: str
    frames: tuple[Frame, ...] = Frames()
    omitted_frame_count: int = 0
    relation: Relation = "thrown"
    is_serialized: bool = False
    suppressed: tuple[tuple[Throwable, ...], ...] = ()

    @property
    def text(self) -> str:
        """``type: message``, or only the type if the message is empty."""
        return f"{self.type}: {self.message}" if self.message else self.type


@dataclass(frozen=True, slots=True)
class StackTrace:
    """A cause chain, outermost throwable first; never empty.

    ``is_truncated`` means that a part of the trace is missing, for example because the text starts
    or ends inside the trace.
    """

    throwables: tuple[Throwable, ...]
    is_truncated: bool = False

    @property
    def thrown(self) -> Throwable:
        return self.throwables[0]

    @property
    def root_cause(self) -> Throwable:
        return self.throwables[-1]


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Three versioned fingerprints of a stack trace (``v1:`` and 32 hex digits).

    ``full`` groups equal failures on the same call path, ``root_cause`` groups equal root causes
    regardless of the throwables that wrap them, and ``user_frames`` groups failures at the same
    location in user code (``None`` without user frames).
    """

    full: str
    root_cause: str
    user_frames: str | None = None
