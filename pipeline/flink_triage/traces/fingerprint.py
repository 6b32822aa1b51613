"""Computes versioned fingerprints of a trace."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b

from flink_triage.model import Fingerprint, Frame, StackTrace, Throwable
from flink_triage.traces.mask import mask
from flink_triage.traces.render import leading_frames, own_frames

VERSION = "v1"

# The head of a message distinguishes failures; its tail contains data.
_MESSAGE_CHARS = 200
# The same fault is reached on different paths: only the innermost calls identify its place.
_ROOT_FRAMES = 5
# Folding looks for repeated blocks up to this length (mutual recursion, visitor pairs).
_MAX_CYCLE = 8

# Numbers in names from the JVM and code generators, which differ in each run.
_NUMBERED = re.compile(
    r"""
    \$\$Lambda(?:\$\d+)?(?:/(?:0x)?[0-9a-fA-F]+)?
  | (?<=Generated)(?P<accessor>Method|Constructor|SerializationConstructor)Accessor\d+
  | \$Proxy\d+
  | (?:\$\$\w{1,64}CGLIB\$\$|\$\$SpringCGLIB\$\$|\$ByteBuddy\$|\$HibernateProxy\$)[\w$]*
  | (?<=[$\w])\$\d+
  | lambda\$(?P<lambda>[^$\s]{0,200})\$[0-9a-f]+(?:\$\d+)?
    """,
    re.VERBOSE,
)


def fingerprint(trace: StackTrace) -> Fingerprint:
    """``v1:`` digests of the whole chain, of its root cause, and of its user frames.

    Line numbers, files, jars, generated numbers and suppressed throwables (which describe the
    clean-up) are ignored; recursion is folded; only the masked head of a message's first line is
    used. The SerializedThrowable form of a failure has the same digests as its plain form.
    """
    full: list[str] = []
    for throwable, frames in zip(trace.throwables, own_frames(trace), strict=True):
        full.append(_headline(throwable))
        full.extend(_fold(_places(frames)))
    root = [_headline(trace.root_cause)]
    root.extend(_fold(_places(leading_frames(trace, len(trace.throwables) - 1, 64)))[:_ROOT_FRAMES])
    user = _fold(
        _places(f for t in reversed(trace.throwables) for f in t.frames if f.origin == "user")
    )
    return Fingerprint(
        full=_digest("full", full),
        root_cause=_digest("root", root),
        user_frames=_digest("user", user) if user else None,
    )


def first_user_frame(trace: StackTrace) -> Frame | None:
    """The first user frame of the innermost throwable that has one."""
    for throwable in reversed(trace.throwables):
        for frame in throwable.frames:
            if frame.origin == "user":
                return frame
    return None


def normalise_name(name: str) -> str:
    """A class or method name without the numbers that compilers and the JVM generate."""
    return _NUMBERED.sub(_number_free, name) if "$" in name or "Generated" in name else name


def _number_free(match: re.Match[str]) -> str:
    if match["accessor"] is not None:
        return f"{match['accessor']}Accessor"
    if match["lambda"] is not None:
        return f"lambda${match['lambda']}"
    text = match.group()
    if text.startswith("$$Lambda"):
        return "$$Lambda"
    return "$Proxy" if text.startswith("$Proxy") else "$"


def _headline(throwable: Throwable) -> str:
    message = throwable.message if throwable.message != "null" else ""
    return f"{throwable.type}: {mask(message[: 4 * _MESSAGE_CHARS])[:_MESSAGE_CHARS]}"


def _places(frames: Iterable[Frame]) -> list[str]:
    return [_place(f.class_name, f.method) for f in frames]


@lru_cache(maxsize=32768)
def _place(class_name: str, method: str) -> str:
    return f"{normalise_name(class_name)}.{normalise_name(method)}"


def _fold(places: Sequence[str]) -> list[str]:
    """The places; a run of a repeated block of up to ``_MAX_CYCLE`` places is kept once."""
    folded: list[str] = []
    for place in places:
        folded.append(place)
        for length in range(1, min(_MAX_CYCLE, len(folded) // 2) + 1):
            if folded[-length:] == folded[-2 * length : -length]:
                del folded[-length:]
                break
    return folded


def _digest(kind: str, parts: Sequence[str]) -> str:
    data = "\n".join((kind, *parts)).encode("utf-8", "surrogatepass")
    return f"{VERSION}:{blake2b(data, digest_size=16).hexdigest()}"
