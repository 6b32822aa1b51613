"""Splits the text of a stack trace into foldable blocks, one per throwable.

The lines are not changed, except that indents and empty lines are removed. Each block also contains
the origin of each frame, and the frames that ``... n more`` abbreviates, which are the last frames
of the enclosing throwable.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from flink_triage.model import Origin
from flink_triage.traces import parse_frame

_MORE = re.compile(r"\s*\.\.\. (?P<count>\d{1,6}) (?:more|common frames omitted)\s*")
_NESTED = re.compile(r"(?P<indent>\s*)(?P<relation>Caused by|Suppressed): ")
# A longer run of frames outside user code is folded, except for the first frame of a throwable.
_SHOWN_FOREIGN = 3


@dataclass(frozen=True, slots=True)
class FrameLine:
    """A frame; ``text`` is the logged line without its indent."""

    text: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class FrameRun:
    """Neighboring frames that are shown or folded together."""

    frames: tuple[FrameLine, ...]
    is_folded: bool

    @property
    def summary(self) -> str:
        """``24 frames of flink, jdk``: the contents of the fold."""
        names = list(dict.fromkeys(frame.origin for frame in self.frames))
        return f"{len(self.frames)} frames of {', '.join(names)}"


@dataclass(frozen=True, slots=True)
class Block:
    """One throwable: its message lines, its frames, and the frames that ``more`` abbreviates."""

    header: str
    runs: tuple[FrameRun, ...]
    more: str | None
    omitted: tuple[FrameLine, ...]


def blocks_of(text: str) -> tuple[Block, ...]:
    """The throwables in the text, in order; empty if the text has no frames."""
    drafts = _drafts(text.split("\n"))
    if not any(draft.frames for draft in drafts):
        return ()
    # Frames known so far by indent, so that a suppressed throwable is completed from its parent.
    whole: dict[int, list[FrameLine]] = {}
    blocks = []
    for draft in drafts:
        enclosing = whole.get(draft.indent if draft.relation != "Suppressed" else draft.indent - 1)
        omitted = (enclosing or [])[-draft.omitted_count :] if draft.omitted_count else []
        whole[draft.indent] = [*draft.frames, *omitted]
        blocks.append(
            Block("\n".join(draft.header), _runs(draft.frames), draft.more, tuple(omitted))
        )
    return tuple(blocks)


@dataclass(slots=True)
class _Draft:
    header: list[str]
    frames: list[FrameLine]
    relation: str | None = None
    indent: int = 0
    more: str | None = None
    omitted_count: int = 0


def _drafts(lines: Sequence[str]) -> list[_Draft]:
    drafts = [_Draft([], [])]
    for line in lines:
        current = drafts[-1]
        frame, more = parse_frame(line), _MORE.fullmatch(line)
        nested = _NESTED.match(line)
        if frame is not None and nested is None:
            current.frames.append(FrameLine(line.strip(), frame.origin))
        elif more is not None:
            current.more, current.omitted_count = line.strip(), int(more["count"])
        elif nested is not None or (line.strip() and (current.frames or current.more)):
            relation = nested["relation"] if nested else None
            indent = len(nested["indent"].expandtabs(1)) if nested else 0
            drafts.append(_Draft([line.strip()], [], relation, indent))
        elif line.strip():
            current.header.append(line.strip())
    return [draft for draft in drafts if draft.header or draft.frames]


def _runs(frames: Sequence[FrameLine]) -> tuple[FrameRun, ...]:
    """User frames and the first frame stay visible; long runs of other frames are folded."""
    runs: list[FrameRun] = []
    for is_user, group in groupby(enumerate(frames), lambda pair: pair[1].origin == "user"):
        numbered = list(group)
        shown = [] if is_user or numbered[0][0] else [numbered.pop(0)[1]]
        rest = tuple(frame for _, frame in numbered)
        if not is_user and len(rest) > _SHOWN_FOREIGN:
            if shown:
                runs.append(FrameRun(tuple(shown), False))
            runs.append(FrameRun(rest, True))
        elif shown or rest:
            runs.append(FrameRun((*shown, *rest), False))
    return tuple(runs)
