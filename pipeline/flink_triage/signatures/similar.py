"""Finds the known failures that are most similar to a failure without a matching signature.

Terms in common are weighted by BM25 (Robertson and Zaragoza, 2009): the fewer signatures contain a
term, the higher its weight. The result is neither a cause nor a diagnosis. Decision 71 explains how
the thresholds below were determined.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from flink_triage.model import Observation, SimilarFailure
from flink_triage.signatures.pack import SignaturePack
from flink_triage.signatures.pack_cache import code_digest, keep, kept
from flink_triage.signatures.signature import Alternative, Signature
from flink_triage.signatures.terms import (
    CLASS,
    WORD,
    Terms,
    terms_of_failure,
    terms_of_signature,
    words_of,
)
from flink_triage.traces import part_of, simple_name

MAX_SIMILAR = 3
# Minimum score, and minimum share of the points of the failure's terms; below either threshold, the
# similarity is coincidental.
MIN_SCORE = 12.0
MIN_SHARE = 0.25

_SATURATION, _LENGTH_SHARE = 1.2, 0.5
_MAX_WORDS, _MAX_CLASSES = 5, 2
_OTHER_CONDITIONS = "other conditions of its signature are not met"
_MAX_QUOTED_CHARS = 80
# Minimum points of a distinctive term.
_MIN_POINTS = 1.0
_LINK = re.compile(r"https://|FLINK-\d")


@dataclass(frozen=True, slots=True)
class Near:
    """A signature with its score and the distinctive common terms, highest score first."""

    signature: str
    score: float
    terms: tuple[str, ...]


class SimilarIndex:
    """An index of signatures by their terms; ``terms`` contains the terms by signature ID."""

    def __init__(self, terms: Mapping[str, Terms]) -> None:
        self._terms = terms
        self._lengths = {id_: sum(of.values()) for id_, of in terms.items()}
        self._mean = math.fsum(self._lengths.values()) / max(len(terms), 1) or 1.0
        self._holders: dict[str, list[str]] = defaultdict(list)
        for id_, of in terms.items():
            for term in of:
                self._holders[term].append(id_)

    def nearest(self, failure: Terms) -> list[Near]:
        """All signatures above the thresholds, most similar first."""
        scores: dict[str, dict[str, float]] = defaultdict(dict)
        total = 0.0
        for term in sorted(failure):
            holders = self._holders.get(term, ())
            points = failure[term] * self._rarity(len(holders))
            total += points
            for id_ in holders:
                scores[id_][term] = points * self._gain(id_, term)
        found = [_near(id_, of) for id_, of in scores.items()]
        least = max(MIN_SCORE, MIN_SHARE * total)
        near = [one for one in found if one.score >= least]
        return sorted(near, key=lambda one: (-one.score, one.signature))

    def _rarity(self, holders: int) -> float:
        return math.log(1 + (len(self._terms) - holders + 0.5) / (holders + 0.5))

    def _gain(self, id_: str, term: str) -> float:
        weight = self._terms[id_][term]
        share = 1 - _LENGTH_SHARE + _LENGTH_SHARE * self._lengths[id_] / self._mean
        return weight * (_SATURATION + 1) / (weight + _SATURATION * share)


def similar_failures(
    observation: Observation,
    pack: SignaturePack,
    without: Collection[str] = (),
    index: SimilarIndex | None = None,
) -> tuple[SimilarFailure, ...]:
    """At most three known failures that are similar to the failure in an event, most similar first.

    Signatures that match the event, those in ``without``, generic ones, and those that cannot be a
    diagnosis are excluded. ``index`` defaults to the index of ``pack``.
    """
    matches = observation.matches
    wrappers = {
        match.depth_from_root
        for match in matches
        if match.depth_from_root is not None and not pack.signatures[match.signature].is_answer
    }
    failure = terms_of_failure(observation, wrappers)
    if not failure:
        return ()
    index = index or _index_of(pack)
    excluded = {*without, *(match.signature for match in matches)}
    near = [
        one
        for one in index.nearest(failure)
        if pack.signatures[one.signature].is_answer and one.signature not in excluded
    ]
    seen = _Seen.of(observation)
    return tuple(_similar(pack.signatures[one.signature], one, seen) for one in near[:MAX_SIMILAR])


def terms_of_pack(pack: SignaturePack) -> dict[str, Terms]:
    """The terms of each signature that is not generic, by signature ID."""
    return {
        id_: terms_of_signature(signature)
        for id_, signature in pack.signatures.items()
        if not signature.is_generic
    }


@lru_cache(maxsize=1)
def _index_of(pack: SignaturePack) -> SimilarIndex:
    """The index of the current pack, created for the first unknown failure.

    Most runs have none, and a process rarely uses more than one pack. The terms are cached, because
    parsing the examples takes 0.4 s.
    """
    key = f"{pack.digest}-{code_digest()}"
    terms = kept("terms", key)
    if not isinstance(terms, dict):
        terms = terms_of_pack(pack)
        keep("terms", key, terms)
    return SimilarIndex(terms)


def _near(signature: str, points: Mapping[str, float]) -> Near:
    strong = [term for term in points if points[term] >= _MIN_POINTS]
    ordered = sorted(strong, key=lambda term: (-points[term], term))
    return Near(signature, sum(points.values()), tuple(ordered))


@dataclass(frozen=True, slots=True)
class _Seen:
    """The text of a failure, and the classes of its outermost and innermost throwable."""

    text: str
    root_cause: str | None
    classes: frozenset[str]

    @classmethod
    def of(cls, observation: Observation) -> _Seen:
        message, root = observation.event.message, observation.root_cause_type
        names = (observation.exception_type, root)
        return cls(
            text=f"{message}\n{root}: {observation.root_cause_message}",
            root_cause=root,
            classes=frozenset(simple_name(name) for name in names if name is not None),
        )


def _similar(signature: Signature, near: Near, seen: _Seen) -> SimilarFailure:
    return SimilarFailure(
        signature=signature.id,
        title=signature.title,
        agrees=tuple(_agreements(near)),
        differs=tuple(_differences(signature, seen)) or (_OTHER_CONDITIONS,),
        reference=next(filter(_LINK.match, signature.references), None),
    )


def _agreements(near: Near) -> Iterator[str]:
    """The common classes and words; words that are part of a common class are omitted."""
    classes = [term.removeprefix(CLASS) for term in near.terms if term.startswith(CLASS)]
    yield from classes
    class_words = {word for name in classes for word in words_of(name)}
    words = [term.removeprefix(WORD) for term in near.terms if term.startswith(WORD)]
    other_words = [word for word in words if word not in class_words][:_MAX_WORDS]
    if other_words:
        yield f"the words {', '.join(other_words)}"


def _differences(signature: Signature, seen: _Seen) -> Iterator[str]:
    """Conditions of the most similar alternative that are not met, and a different component."""
    nearest = min(signature.alternatives, key=lambda of: len(_missing(of, seen)))
    classes = nearest.root_causes or nearest.throwables
    if classes and seen.classes.isdisjoint(map(simple_name, classes)):
        named = " or ".join(map(simple_name, classes[:_MAX_CLASSES]))
        yield f"{named} is expected, but is neither outermost nor the root cause"
    missing = _missing(nearest, seen)
    if missing:
        yield f'its text "{missing[0][:_MAX_QUOTED_CHARS]}" is not in the message'
    theirs = {part for name in classes if (part := part_of(name)) is not None}
    here = part_of(seen.root_cause) if seen.root_cause is not None else None
    if here is not None and theirs and here not in theirs:
        yield f"it is a failure of {' or '.join(sorted(theirs))}, but this one is of {here}"


def _missing(alternative: Alternative, seen: _Seen) -> list[str]:
    return [literal for literal in alternative.literals if literal not in seen.text]
