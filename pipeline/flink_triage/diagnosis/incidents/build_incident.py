"""Builds an incident with diagnoses from an episode and its ranked candidates."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from flink_triage.diagnosis.context.handled_exceptions import is_well
from flink_triage.diagnosis.durations import WELL_WITHIN
from flink_triage.diagnosis.episodes.episodes import Episode, in_order
from flink_triage.diagnosis.episodes.unknown_failures import first_unknown
from flink_triage.diagnosis.incidents.evidence import (
    evidence_of,
    hit_evidence,
    message_and_root_cause,
)
from flink_triage.diagnosis.incidents.missing_evidence import missing_evidence, other_causes
from flink_triage.diagnosis.incidents.shown_timeline import timeline_entries
from flink_triage.diagnosis.moment import Moment
from flink_triage.diagnosis.ranking.causality import (
    Candidate,
    Hit,
    has_stopped_something,
    was_survived,
)
from flink_triage.diagnosis.ranking.confidence import confidence
from flink_triage.diagnosis.ranking.shared_faults import blast_radius
from flink_triage.diagnosis.timeline.timeline import DeploymentTimeline
from flink_triage.model import Diagnosis, Incident, Observation, SimilarFailure, Verdict
from flink_triage.remediation import OptionTable, resolve
from flink_triage.remediation.placeholders import fill
from flink_triage.settings import Settings
from flink_triage.signatures import Signature, SignaturePack
from flink_triage.signatures.similar import similar_failures

IS_TEXT = "The failure was found in prose, not in a log line, and is therefore less certain."
# Limit of a message in a summary; the evidence contains the whole message.
MAX_QUOTED_CHARS = 200


def build_incident(
    timeline: DeploymentTimeline,
    episode: Episode,
    ranked: Sequence[Candidate],
    pack: SignaturePack,
    options: OptionTable,
    settings: Settings,
) -> Incident | None:
    """The incident of ``episode`` with its ``ranked`` candidates.

    ``None`` if user code handled all faults, or if no job failed and the faults require no action.
    """
    answers = [c for c in ranked if c.signature.is_answer]
    unknown = first_unknown(episode, pack)
    if episode.is_handled or not (episode.has_failed or _matters(timeline, episode, answers)):
        return None
    verdict = _verdict(answers, unknown, episode)
    wrappers = [c for c in ranked if not c.signature.is_answer]
    last_wrapper = None if answers else _last_wrapper(wrappers, unknown)
    ordered = [*answers, *wrappers]
    sure = {each.id: confidence(each, ranked, episode.outcome) for each in ordered}
    shown = [*(hit.moment for answer in answers for hit in answer.hits), *episode.faults]
    version = timeline.version_at(moment.observation.event.path for moment in shown)
    diagnoses = tuple(
        _diagnosis(number, candidate, sure[candidate.id], timeline, version, options, settings)
        for number, candidate in enumerate(ordered, start=1)
        if answers
    )
    first = unknown if verdict == "undetermined" and unknown else _first_fault(episode, answers)
    started = episode.first_fault.at
    # JVM output in .out files has no timestamps: the incident starts at the first fault with one.
    began_at = next((m.time for m in episode.faults if m.time is not None), None)
    return Incident(
        incident_id=incident_id(timeline.deployment, _first_job(episode), started, "incident"),
        deployment=timeline.deployment,
        job_id=episode.job_id,
        job_name=timeline.job_names.get(episode.job_id) if episode.job_id else None,
        flink_version=version,
        started_at=began_at,
        ended_at=episode.ended_at,
        verdict=verdict,
        outcome=episode.outcome,
        restarts=episode.restarts,
        first_fault=evidence_of(first, settings) if first is not None else None,
        last_healthy=episode.last_healthy,
        diagnoses=diagnoses,
        similar=_similar_to(unknown, ranked, pack) if verdict == "undetermined" else (),
        timeline=timeline_entries(timeline, episode, settings),
        summary=_summary(verdict, episode, answers, unknown, last_wrapper),
        missing_evidence=missing_evidence(
            verdict, answers, unknown, last_wrapper, timeline, episode
        ),
        blast_radius=blast_radius(timeline, episode),
        other_causes=other_causes(answers, wrappers, pack),
        config=diagnoses[0].remediation.config if diagnoses else (),
        notes=tuple(_notes(timeline, diagnoses)),
    )


def _similar_to(
    unknown: Moment | None, ranked: Sequence[Candidate], pack: SignaturePack
) -> tuple[SimilarFailure, ...]:
    """Known failures that resemble an unknown fault, except those that its incident shows."""
    if unknown is None:
        return ()
    shown = {candidate.signature.id for candidate in ranked}
    return similar_failures(unknown.observation, pack, shown)


def _notes(timeline: DeploymentTimeline, diagnoses: Sequence[Diagnosis]) -> Iterator[str]:
    yield from (skew.sentence for skew in timeline.skews)
    if timeline.events is not None:
        yield (
            f"{len(timeline.moments):,} of {timeline.events:,} notable events of this deployment "
            "were analyzed individually; the others were only counted. Use --since and --until to "
            "analyze a shorter period in detail."
        )
    if diagnoses and IS_TEXT in diagnoses[0].reasons:
        yield IS_TEXT


def _matters(timeline: DeploymentTimeline, episode: Episode, answers: Sequence[Candidate]) -> bool:
    """Whether an episode without a job failure is an incident.

    Faults with severity ``info`` are not, except stack traces in an excerpt. If the job recovered,
    or if a line of a healthy job followed faults that belong to no job (``_jobs_continued``), minor
    contributing faults and faults without a diagnosis are not incidents either. The latter are
    listed as unknown failures if they have a stack trace.
    """
    is_over = episode.outcome == "recovered" or _jobs_continued(timeline, episode)
    if not answers:
        return not is_over
    signatures = [c.signature for c in answers if c.signature.severity != "info"]
    if not signatures:
        return timeline.is_excerpt and any(m.observation.fingerprint for m in episode.faults)
    return any(not (is_over and _is_minor(signature)) for signature in signatures)


def _jobs_continued(timeline: DeploymentTimeline, episode: Episode) -> bool:
    """Whether faults that belong to no job were followed by a line of a healthy job (`is_well`).

    The line must follow within ``WELL_WITHIN``, and the outcome must be unknown.
    """
    if episode.job_id is not None or episode.outcome != "unknown":
        return False
    after = episode.last_fault.at + timedelta.resolution
    return any(is_well(m.observation) for m in timeline.between(after, after + WELL_WITHIN))


def _verdict(answers: Sequence[Candidate], unknown: Moment | None, episode: Episode) -> Verdict:
    if not answers:
        return "undetermined"
    best = answers[0]
    is_minor = _is_minor(best.signature)
    if unknown is None or not (best.signature.role == "symptom" or is_minor):
        return "diagnosed"
    if not unknown.observation.root_cause_type:
        # Without its beginning, a trace does not identify a different failure.
        return "diagnosed"
    stopped_something = has_stopped_something(unknown)
    if is_minor:
        is_in_it = any(has_stopped_something(hit.moment) for hit in best.hits)
        return "undetermined" if stopped_something and not is_in_it else "diagnosed"
    if stopped_something and (
        in_order(unknown) < in_order(best.hits[0].moment) or was_survived(best, episode)
    ):
        return "undetermined"
    return "diagnosed" if best.depth == 0 else "undetermined"


def _is_minor(signature: Signature) -> bool:
    return (signature.role, signature.severity) == ("contributing", "minor")


def _last_wrapper(wrappers: Sequence[Candidate], unknown: Moment | None) -> Signature | None:
    """The wrapper that is the last throwable of the unknown fault; its cause was not logged."""
    for candidate in wrappers:
        if any(h.moment is unknown and h.match.depth_from_root == 0 for h in candidate.hits):
            return candidate.signature
    return None


def _first_fault(episode: Episode, answers: Sequence[Candidate]) -> Moment:
    """The first evidence of the cause.

    If the cause is unknown, or if the job failed before it, this is the first fault of the episode.
    """
    if not answers or _had_failed_before(episode, answers[0]):
        return episode.first_fault
    return answers[0].hits[0].moment


def _had_failed_before(episode: Episode, cause: Candidate) -> bool:
    return any(a.failed_at and a.faults for a in episode.attempts[: min(cause.attempts)])


def _first_job(episode: Episode) -> str | None:
    """The job that was affected first; it identifies the incident even if other jobs follow."""
    parts = episode.parts or (episode,)
    return min(parts, key=lambda part: (in_order(part.first_fault), part.job_id or "")).job_id


def incident_id(deployment: str, job_id: str | None, started: datetime | None, what: str) -> str:
    """A stable id, derived from the deployment, the job, the start time, and the kind (``what``).

    It does not depend on the cause. A different signature pack changes it only by changing one of
    these properties.
    """
    identity = "\n".join((deployment, job_id or "", str(started or ""), what))
    return hashlib.sha256(identity.encode()).hexdigest()[:16]


def _diagnosis(
    number: int,
    candidate: Candidate,
    sure: float,
    timeline: DeploymentTimeline,
    version: str | None,
    options: OptionTable,
    settings: Settings,
) -> Diagnosis:
    signature = candidate.signature
    hits = _best_hits(candidate.hits)
    captures = dict(hits[0].match.captures)
    times = [h.moment.observation.event.logged_at for h in candidate.hits]
    known = sorted(at for at in times if at is not None)
    return Diagnosis(
        rank=number,
        signature=signature.id,
        title=signature.title,
        severity=signature.severity,
        role=signature.role,
        confidence=sure,
        score=round(candidate.score, 2),
        reasons=(*candidate.reasons, *((IS_TEXT,) if candidate.is_text else ())),
        occurrences=candidate.occurrences,
        first_seen_at=known[0] if known else None,
        last_seen_at=max(known[-1], candidate.last_at) if known else None,
        subtasks=_subtasks(h.moment.observation for h in candidate.hits),
        hosts=tuple(
            sorted({host for h in candidate.hits for host in h.moment.observation.reach.hosts})
        ),
        captures=captures,
        explains=candidate.explains,
        evidence=tuple(hit_evidence(h, settings) for h in hits[: settings.max_evidence]),
        cause=fill(signature.cause, captures),
        remediation=resolve(
            signature.remediation,
            flink_version=version,
            effective=timeline.config_at(hits[0].moment.observation.event.path),
            captures={"process": hits[0].moment.observation.process or "", **captures},
            text=_text_of(hits),
            table=options,
        ),
    )


def _text_of(hits: Iterable[Hit]) -> str:
    """The messages, root causes, and matching lines of the events, without repetitions."""
    texts: dict[str, None] = {}
    for hit in hits:
        observation = hit.moment.observation
        texts[hit.match.excerpt] = texts[message_and_root_cause(observation)] = None
        texts.update((match.excerpt, None) for match in observation.matches)
    return "\n".join(texts)


def _subtasks(observations: Iterable[Observation]) -> tuple[str, ...]:
    names = {
        f"{of.task} ({of.subtask}/{of.parallelism})" if of.subtask is not None else of.task
        for o in observations
        for of in o.reach.subtasks
    }
    return tuple(sorted(names))


def _best_hits(hits: Sequence[Hit]) -> list[Hit]:
    """The hits, nearest to the root cause first, then earliest.

    The first of these hits in each file precedes all other hits.
    """
    ordered = sorted(
        hits,
        key=lambda h: (
            99 if h.match.depth_from_root is None else h.match.depth_from_root,
            h.moment.at,
            h.moment.observation.event.path,
            h.moment.observation.event.offset,
        ),
    )
    seen: set[str] = set()
    first_of_file: list[Hit] = []
    others: list[Hit] = []
    for hit in ordered:
        path = hit.moment.observation.event.path
        (others if path in seen else first_of_file).append(hit)
        seen.add(path)
    return first_of_file + others


def _summary(
    verdict: Verdict,
    episode: Episode,
    answers: Sequence[Candidate],
    unknown: Moment | None,
    last_wrapper: Signature | None,
) -> str:
    if verdict == "diagnosed":
        best = answers[0]
        effects = f"; it explains {', '.join(best.explains)}" if best.explains else ""
        jobs = f" for {len(episode.job_ids)} jobs" if episode.parts else ""
        return f"{best.signature.title}{jobs}{effects}."
    if unknown is not None:
        observation = unknown.observation
        thrown = _thrown(observation)
        if not thrown:
            return "The first fault is a stack trace whose beginning was cut off."
        if last_wrapper is not None:
            return f"{last_wrapper.title}; the log does not contain the cause: {thrown}."
        return f"No signature explains the first fault: {thrown}."
    return "The logs report a failure, but not its cause."


def _thrown(observation: Observation) -> str:
    """The root cause with its message, as one line, or else the message of the event.

    If the trace was cut off before its root cause, this is the outermost throwable.
    """
    if not observation.root_cause_type:
        wrapped_in = observation.exception_type
        if wrapped_in:
            return f"{wrapped_in}, cut off before its cause"
        return observation.event.message[:MAX_QUOTED_CHARS]
    message = (observation.root_cause_message or "").strip().split("\n", 1)[0]
    message = message[:MAX_QUOTED_CHARS].rstrip(" .")
    return f"{observation.root_cause_type}: {message}" if message else observation.root_cause_type
