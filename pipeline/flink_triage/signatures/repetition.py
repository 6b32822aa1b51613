"""Checks whether the matches in an episode have the required number or order."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import datetime

from flink_triage.signatures.signature import Signature

Hit = tuple[datetime | None, int]


def episode_match(signature: Signature, hits: Sequence[Hit]) -> bool:
    """Whether a signature matches an episode.

    ``hits`` are the (time, alternative) pairs of the episode, in log order. With ``within``, hits
    without a time are ignored, because the time between hits is unknown.
    """
    if signature.mode == "sequence":
        return _has_sequence(signature, hits)
    if signature.within_seconds is None:
        return len(hits) >= signature.count
    return _has_burst(signature.count, signature.within_seconds, hits)


def _has_burst(count: int, within_seconds: float, hits: Sequence[Hit]) -> bool:
    window: deque[datetime] = deque()
    for at in sorted(at for at, _ in hits if at is not None):
        window.append(at)
        while (at - window[0]).total_seconds() > within_seconds:
            window.popleft()
        if len(window) >= count:
            return True
    return False


def _has_sequence(signature: Signature, hits: Sequence[Hit]) -> bool:
    length = len(signature.alternatives)
    if signature.within_seconds is None:
        reached = 0
        for _, alternative in _in_time(hits):
            if alternative == reached:
                reached += 1
            if reached == length:
                return True
        return False
    # For each prefix of the sequence, the latest possible start time. This is sufficient to check
    # in one pass whether the whole sequence occurs in time.
    begun: list[datetime | None] = [None] * length
    for at, alternative in _in_time([hit for hit in hits if hit[0] is not None]):
        start = at if alternative == 0 else begun[alternative - 1]
        if at is None or start is None:
            continue
        begun[alternative] = start
        is_whole = alternative == length - 1
        if is_whole and (at - start).total_seconds() <= signature.within_seconds:
            return True
    return False


def _in_time(hits: Sequence[Hit]) -> list[Hit]:
    """The hits, stably sorted by time if every hit has one, because files interleave."""
    times = [at for at, _ in hits if at is not None]
    if len(times) < len(hits):
        return list(hits)
    order = sorted(range(len(hits)), key=times.__getitem__)
    return [hits[index] for index in order]
