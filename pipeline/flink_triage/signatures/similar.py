"""A failure that no signature names in, the known failures that resemble it most out.

What agrees is weighted by BM25 (Robertson and Zaragoza, 2009): a term counts the more, the fewer
signatures hold it.  The result names no cause and is no diagnosis; decision 71 says how the limits
below were found.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from flink_triage.model import Event, Match, SimilarFailure, StackTrace
from flink_triage.traces import part_of

from .pack import SignaturePack
from .signature import Alternative, Signature
from .terms import (
    CLASS,
    FRAME,
    WORD,
    Terms,
    simple_name,
    terms_of_failure,
    terms_of_signature,
    trace_of,
    words_of,
)

MAX_SIMILAR = 3
# Below either, what agrees is chance: so many points, and such a share of what the failure says.
MIN_SCORE = 12.0
MIN_SHARE = 0.25

_SATURATION, _LENGTH_SHARE = 1.2, 0.5
_MAX_WORDS, _MAX_FRAMES = 5, 2
_MAX_QUOTED_CHARS = 80
_LINK = re.compile(r"https://|FLINK-\d")


@dataclass(frozen=True, slots=True)
class Near:
    """A signature with its score, and the terms in common, those that say most first."""

    signature: str
    score: float
    terms: tuple[str, ...]


class SimilarIndex:
    """Signatures by their terms; ``terms`` holds those of each signature by id."""

    def __init__(self, terms: Mapping[str, Terms]) -> None:
        lengths = {id_: sum(of.values()) for id_, of in terms.items()}
        mean = sum(lengths.values()) / max(len(lengths), 1) or 1.0
        self._postings: dict[str, list[tuple[str, float]]] = defaultdict(list)
        for id_, of in sorted(terms.items()):
            share = 1 - _LENGTH_SHARE + _LENGTH_SHARE * lengths[id_] / mean
            for term, weight in of.items():
                gain = weight * (_SATURATION + 1) / (weight + _SATURATION * share)
                self._postings[term].append((id_, gain))
        self._count = len(terms)

    def nearest(self, failure: Terms) -> list[Near]:
        """All signatures that reach the limits, nearest first."""
        scores: dict[str, dict[str, float]] = defaultdict(dict)
        total = 0.0
        for term in sorted(failure):
            postings = self._postings.get(term, ())
            points = failure[term] * self._rarity(len(postings))
            total += points
            for id_, gain in postings:
                scores[id_][term] = points * gain
        found = [_near(id_, of) for id_, of in scores.items()]
        least = max(MIN_SCORE, MIN_SHARE * total)
        near = [one for one in found if one.score >= least]
        return sorted(near, key=lambda one: (-one.score, one.signature))

    def _rarity(self, holders: int) -> float:
        return math.log(1 + (self._count - holders + 0.5) / (holders + 0.5))


def similar_failures(
    event: Event,
    matches: Collection[Match],
    pack: SignaturePack,
    without: Collection[str] = (),
    index: SimilarIndex | None = None,
) -> tuple[SimilarFailure, ...]:
    """At most three known failures that resemble the one that ``event`` reports, nearest first.

    ``matches`` are those of the event: what a wrapper matched does not count.  Neither those nor
    the signatures in ``without`` are given.  ``index`` is that of ``pack`` unless one is given.
    """
    said, trace = trace_of(event.message, event.continuation)
    wrappers = {
        match.depth_from_root
        for match in matches
        if match.depth_from_root is not None and not pack.signatures[match.signature].is_answer
    }
    failure = terms_of_failure(said, trace, wrappers)
    if not failure:
        return ()
    index = index or _index_of(pack)
    told = {*without, *(match.signature for match in matches)}
    near = [
        one
        for one in index.nearest(failure)
        if pack.signatures[one.signature].is_answer and one.signature not in told
    ]
    text = f"{event.message}\n{event.continuation or ''}"
    return tuple(
        _similar(pack.signatures[one.signature], one, text, trace) for one in near[:MAX_SIMILAR]
    )


def terms_of_pack(pack: SignaturePack) -> dict[str, Terms]:
    """The terms of each signature that names a failure of a kind, by id."""
    return {
        id_: terms_of_signature(signature)
        for id_, signature in pack.signatures.items()
        if not signature.is_generic
    }


# The index of the pack in use; a process hardly ever uses two.
_built: dict[str, SimilarIndex] = {}


def _index_of(pack: SignaturePack) -> SimilarIndex:
    """Built when a failure without a name is found: most runs never need it."""
    index = _built.get(pack.digest)
    if index is None:
        _built.clear()
        index = _built[pack.digest] = SimilarIndex(terms_of_pack(pack))
    return index


def _near(signature: str, points: Mapping[str, float]) -> Near:
    ordered = sorted(points, key=lambda term: (-points[term], term))
    return Near(signature, sum(points.values()), tuple(ordered))


def _similar(
    signature: Signature, near: Near, text: str, trace: StackTrace | None
) -> SimilarFailure:
    return SimilarFailure(
        signature=signature.id,
        title=signature.title,
        agrees=tuple(_agreements(near)),
        differs=tuple(_differences(signature, near, text, trace)),
        reference=next(filter(_LINK.match, signature.references), None),
    )


def _agreements(near: Near) -> Iterator[str]:
    """The classes, words and frames in common; words of a class in common are not repeated."""
    classes = [term.removeprefix(CLASS) for term in near.terms if term.startswith(CLASS)]
    yield from classes
    said = {word for name in classes for word in words_of(name)}
    words = [term.removeprefix(WORD) for term in near.terms if term.startswith(WORD)]
    told = [word for word in words if word not in said][:_MAX_WORDS]
    if told:
        yield f"the words {', '.join(told)}"
    frames = [term.removeprefix(FRAME) for term in near.terms if term.startswith(FRAME)]
    yield from (f"the frame {frame}" for frame in frames[:_MAX_FRAMES])


def _differences(
    signature: Signature, near: Near, text: str, trace: StackTrace | None
) -> Iterator[str]:
    """What the signature asks for and the failure does not show."""
    form = _nearest_form(signature, text)
    if form is None:
        return
    classes = form.root_causes or form.throwables
    if classes and not any(_is_shown(name, trace) for name in classes):
        yield f"{' or '.join(map(simple_name, classes[:2]))} was expected and is not there"
    missing = [literal for literal in form.literals if literal not in text]
    if missing:
        yield f'its text "{missing[0][:_MAX_QUOTED_CHARS]}" is not there'
    theirs = {part for name in classes if (part := part_of(name)) is not None}
    here = part_of(trace.root_cause.type) if trace is not None else None
    if here is not None and theirs and here not in theirs:
        yield f"it is a failure of {' or '.join(sorted(theirs))}, and this one is of {here}"
    if not (missing or (classes and not any(_is_shown(name, trace) for name in classes))):
        yield "other conditions of the signature are not met"


def _nearest_form(signature: Signature, text: str) -> Alternative | None:
    """The alternative of which the least is missing."""
    return min(
        signature.alternatives,
        key=lambda form: sum(literal not in text for literal in form.literals),
        default=None,
    )


def _is_shown(name: str, trace: StackTrace | None) -> bool:
    shown = trace.throwables if trace is not None else ()
    return any(simple_name(throwable.type) == simple_name(name) for throwable in shown)
