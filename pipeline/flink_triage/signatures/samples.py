"""Matches a pack against its own examples.

Reports examples that do not match, near misses that match, alternatives that match no example, and
examples that other signatures also match.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from flink_triage.logs.layouts import parse_header
from flink_triage.model import Event, Match
from flink_triage.settings import DEFAULT_SETTINGS, Settings
from flink_triage.signatures.matcher import Matcher
from flink_triage.signatures.pack import SignaturePack, build_pack
from flink_triage.signatures.signature import Signature
from flink_triage.traces import extract
from flink_triage.yaml_documents import Problem

# The rank of a signature by its role, if several signatures match one event.
_ROLE_RANK = {
    "trigger": 0,
    "contributing": 0,
    "loop-sustainer": 1,
    "symptom": 2,
    "wrapper": 3,
    "benign": 4,
}


@dataclass(frozen=True, slots=True)
class Overlap:
    """The signatures that match one sample, other than the signature that owns the sample.

    ``beaten_by`` contains those that rank above or equal to the owner, although no chain of
    ``explains`` connects the two. Generic signatures rank last; others rank by role, distance from
    the root cause, and specificity.
    """

    owner: str
    sample: int
    others: tuple[str, ...]
    beaten_by: tuple[str, ...] = ()


def event_from_text(text: str, path: str = "sample") -> Event:
    """The event in a sample: a header (in any layout), and all lines after it."""
    first, _, rest = text.strip("\n").partition("\n")
    header = parse_header(first)
    size = len(text.encode("utf-8", "replace"))
    if header is None:
        return Event(path, 0, size, 1, None, None, None, None, first, rest or None)
    continuation = "\n".join(part for part in (header.stack, rest) if part)
    return Event(
        path=path,
        offset=0,
        size_bytes=size,
        line=1,
        logged_at=header.logged_at,
        level=header.level,
        logger=header.logger,
        thread=header.thread,
        message=header.message,
        continuation=continuation or None,
        job_id=header.job_id,
    )


def match_text(matcher: Matcher, text: str) -> tuple[Match, ...]:
    """The matches of one sample; the process that wrote it is unknown."""
    event = event_from_text(text)
    message, trace = extract(event.message, event.continuation)
    return matcher.match(event, message, trace, None)


def check_examples(
    pack: SignaturePack, settings: Settings = DEFAULT_SETTINGS
) -> tuple[Problem, ...]:
    """Report examples that their signature does not match, and near misses that it matches.

    Parts of a sequence that no example matches are also reported.
    """
    problems: list[Problem] = []
    for signature in pack.signatures.values():
        matcher = Matcher(build_pack([signature]), settings)
        seen: set[int] = set()
        for index, text in enumerate(signature.examples.match):
            found = match_text(matcher, text)
            seen.update(match.alternative for match in found)
            if not found:
                problems.append(_problem(signature, f"examples.match[{index}]", "does not match"))
        for index, text in enumerate(signature.examples.no_match):
            for match in match_text(matcher, text):
                reason = f'matches alternative {match.alternative}: "{match.excerpt[:80]}"'
                problems.append(_problem(signature, f"examples.no_match[{index}]", reason))
        if signature.mode == "sequence" and seen and len(seen) < len(signature.alternatives):
            missing = sorted(set(range(len(signature.alternatives))) - seen)
            reason = f"no example shows {', '.join(f'sequence[{index}]' for index in missing)}"
            problems.append(_problem(signature, "examples.match", reason))
    return tuple(problems)


def untested_alternatives(
    pack: SignaturePack, settings: Settings = DEFAULT_SETTINGS
) -> Mapping[str, tuple[int, ...]]:
    """The alternatives of ``any`` that match no example of their signature, by signature ID.

    Forms of an ``error`` are excluded.
    """
    untested: dict[str, tuple[int, ...]] = {}
    for signature in pack.signatures.values():
        if signature.mode != "any":
            continue
        left = tuple(
            index
            for index, alternative in enumerate(signature.alternatives)
            # The forms of an error have their own examples, in their data file.
            if alternative.error is None
            and not _is_shown(replace(signature, alternatives=(alternative,)), settings)
        )
        if left:
            untested[signature.id] = left
    return untested


def _is_shown(signature: Signature, settings: Settings) -> bool:
    matcher = Matcher(build_pack([signature]), settings)
    return any(match_text(matcher, text) for text in signature.examples.match)


def overlap_matrix(
    pack: SignaturePack, settings: Settings = DEFAULT_SETTINGS
) -> tuple[Overlap, ...]:
    """The examples that other signatures also match."""
    matcher = Matcher(pack, settings)
    reach = {signature_id: explained_by(pack, signature_id) for signature_id in pack.signatures}
    overlaps = []
    for signature in pack.signatures.values():
        for index, text in enumerate(signature.examples.match):
            matches = match_text(matcher, text)
            own = next((match for match in matches if match.signature == signature.id), None)
            others = [match for match in matches if match.signature != signature.id]
            if others:
                beaten_by = tuple(
                    other.signature
                    for other in others
                    if not _are_related(reach, signature.id, other.signature)
                    and (own is None or _order(pack, other) <= _order(pack, own))
                )
                names = tuple(other.signature for other in others)
                overlaps.append(Overlap(signature.id, index, names, beaten_by))
    return tuple(overlaps)


def _are_related(reach: Mapping[str, frozenset[str]], one: str, other: str) -> bool:
    """Whether one signature explains the other, so that both apply to the event."""
    return other in reach[one] or one in reach[other]


def explained_by(pack: SignaturePack, signature_id: str) -> frozenset[str]:
    """All failures that a failure explains, directly or indirectly."""
    reach: set[str] = set()
    waiting = [signature_id]
    while waiting:
        signature = pack.signatures.get(waiting.pop())
        for explained in signature.explains if signature else ():
            if explained not in reach:
                reach.add(explained)
                waiting.append(explained)
    return frozenset(reach)


def _order(pack: SignaturePack, match: Match) -> tuple[bool, int, int, int]:
    signature = pack.signatures[match.signature]
    depth = match.depth_from_root if match.depth_from_root is not None else 1_000_000
    specificity = signature.alternatives[match.alternative].specificity
    return (signature.is_generic, _ROLE_RANK[signature.role], depth, -specificity)


def _problem(signature: Signature, field: str, reason: str) -> Problem:
    return Problem(signature.path, signature.lines.get(field, 1), field, reason)
