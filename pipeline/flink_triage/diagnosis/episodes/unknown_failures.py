"""Groups faults whose stack trace no signature explains, over all deployments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

from flink_triage.diagnosis.episodes.episodes import Episode
from flink_triage.diagnosis.moment import Moment
from flink_triage.model import Evidence, Observation, UnknownFailure
from flink_triage.signatures import SignaturePack
from flink_triage.signatures.similar import similar_failures


def is_unknown(observation: Observation, pack: SignaturePack) -> bool:
    """Whether no signature explains the root cause of a stack trace.

    A wrapper does not explain the root cause. A symptom that wraps a root cause without a signature
    does not explain it either, unless the outermost exception and the root cause belong to the same
    library: libraries wrap their own exceptions to add details.
    """
    if observation.fingerprint is None:
        return False
    is_root_named = any(match.depth_from_root == 0 for match in observation.matches)
    is_root_named |= _library_of(observation.exception_type) == _library_of(
        observation.root_cause_type
    )
    matched = [(pack.signatures[m.signature], m.depth_from_root) for m in observation.matches]
    return not any(
        (signature.is_answer or signature.role == "benign")
        and (signature.role != "symptom" or not depth or is_root_named)
        for signature, depth in matched
    )


def first_unknown(episode: Episode, pack: SignaturePack) -> Moment | None:
    """The first fault of ``episode`` with a stack trace that no signature explains.

    Traces that lack their beginning, and therefore the exception class, come last.
    """
    unknown = [m for m in episode.faults if is_unknown(m.observation, pack)]
    return next((m for m in unknown if m.observation.root_cause_type), next(iter(unknown), None))


@lru_cache(maxsize=1024)
def _library_of(type_name: str | None) -> str:
    """The first three parts of a class name, such as ``org.apache.kafka``."""
    return ".".join((type_name or "").split(".")[:3])


def group_unknown(
    faults: Iterable[tuple[Observation, Evidence]], max_evidence: int, pack: SignaturePack
) -> tuple[UnknownFailure, ...]:
    """Group the given faults by root cause fingerprint, most frequent first."""
    groups: dict[str, list[tuple[Observation, Evidence]]] = {}
    for observation, evidence in faults:
        assert observation.fingerprint is not None  # is_unknown requires a stack trace
        groups.setdefault(observation.fingerprint.root_cause, []).append((observation, evidence))
    unknown = [_unknown(key, group, max_evidence, pack) for key, group in groups.items()]
    return tuple(sorted(unknown, key=lambda u: (-u.count, u.fingerprint)))


def merge_unknown(
    failures: Iterable[UnknownFailure], max_evidence: int
) -> tuple[UnknownFailure, ...]:
    """Merge failures with the same fingerprint, most frequent first.

    ``failures`` are those of several deployments, or of consecutive parts of one deployment.
    """
    merged: dict[str, UnknownFailure] = {}
    for failure in failures:
        known = merged.get(failure.fingerprint)
        if known is None:
            merged[failure.fingerprint] = failure
            continue
        merged[failure.fingerprint] = replace(
            known,
            count=known.count + failure.count,
            first_user_frame=known.first_user_frame or failure.first_user_frame,
            deployments=tuple(sorted({*known.deployments, *failure.deployments})),
            evidence=(*known.evidence, *failure.evidence)[:max_evidence],
            first_seen_at=min(
                (at for at in (known.first_seen_at, failure.first_seen_at) if at is not None),
                default=None,
            ),
        )
    return tuple(sorted(merged.values(), key=lambda u: (-u.count, u.fingerprint)))


def _unknown(
    key: str,
    group: Sequence[tuple[Observation, Evidence]],
    max_evidence: int,
    pack: SignaturePack,
) -> UnknownFailure:
    first = group[0][0]
    return UnknownFailure(
        fingerprint=key,
        count=sum(o.occurrences for o, _ in group),
        exception_type=first.exception_type,
        root_cause_type=first.root_cause_type,
        root_cause_message=first.root_cause_message,
        first_user_frame=next((o.first_user_frame for o, _ in group if o.first_user_frame), None),
        deployments=tuple(sorted({o.deployment for o, _ in group})),
        evidence=tuple(e for _, e in group[:max_evidence]),
        first_seen_at=min((e.at for _, e in group if e.at is not None), default=None),
        similar=similar_failures(first, pack),
    )
