"""A clean result in, what the HTML templates print out: capped, ordered, with stable anchors."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from flink_triage.model import (
    ConfigChange,
    Diagnosis,
    Evidence,
    Incident,
    Result,
    TimelineEntry,
    UnknownFailure,
)
from flink_triage.report import facts
from flink_triage.report.facts import Consequence, capped
from flink_triage.report.patches import Patch, PatchRenderer, patches_of
from flink_triage.report.timeline import Chart, chart_of

_ANCHOR = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_FLINK_ISSUE = re.compile(r"FLINK-\d{1,6}")
_LINK = re.compile(r"https://[A-Za-z0-9][A-Za-z0-9.-]*(?:/[A-Za-z0-9._~/#?&=%+:@,-]*)?")


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of each thing the page shows; what is left out is counted on the page."""

    rows: int = 1000
    incidents: int = 60
    diagnoses: int = 12
    evidence: int = 5
    excerpt_chars: int = 12_000
    marks: int = 300
    entries: int = 60
    options: int = 300
    unknown: int = 40
    gaps: int = 100

    def halved(self) -> Limits:
        halves = {name: max(1, getattr(self, name) // 2) for name in self.__slots__}
        return Limits(**halves)


@dataclass(frozen=True, slots=True)
class EvidenceView:
    evidence: Evidence
    key_lines: tuple[str, ...]
    excerpt: str
    line_count: int
    cut_chars: int


@dataclass(frozen=True, slots=True)
class DiagnosisView:
    diagnosis: Diagnosis
    anchor: str
    patches: tuple[Patch, ...]
    consequences: tuple[Consequence, ...]
    evidence: tuple[EvidenceView, ...]
    evidence_left_out: int


@dataclass(frozen=True, slots=True)
class Option:
    """One effective option; ``change`` is what is proposed for it."""

    key: str
    value: str
    change: ConfigChange | None


@dataclass(frozen=True, slots=True)
class IncidentView:
    incident: Incident
    anchor: str
    badge: str
    tone: str
    cause: DiagnosisView | None
    others: tuple[DiagnosisView, ...]
    diagnoses_left_out: int
    chart: Chart | None
    entries: tuple[TimelineEntry, ...]
    entries_left_out: int
    first_fault: EvidenceView | None
    changes: tuple[tuple[int, ConfigChange], ...]
    options: tuple[Option, ...]
    options_left_out: int


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table of deployments; ``anchor`` is ``None`` where no section follows."""

    incident: Incident
    anchor: str | None
    badge: str
    tone: str
    cause: Diagnosis | None


@dataclass(frozen=True, slots=True)
class UnknownView:
    failure: UnknownFailure
    evidence: tuple[EvidenceView, ...]


@dataclass(frozen=True, slots=True)
class PageView:
    result: Result
    title: str
    rows: tuple[Row, ...]
    healthy: tuple[Row, ...]
    rows_left_out: int
    incidents: tuple[IncidentView, ...]
    incidents_left_out: int
    unknown: tuple[UnknownView, ...]
    unknown_left_out: int
    is_fleet: bool
    gaps: int


def page_of(result: Result, limits: Limits, renderer: PatchRenderer) -> PageView:
    """Sections for everything with trouble, and for all when there are few; a table for many."""
    ordered = facts.by_urgency(result.incidents)
    is_fleet = len(ordered) > 1
    detailed = [i for i in ordered if i.verdict != "healthy"] if len(ordered) > 3 else list(ordered)
    shown, left_out = capped(detailed, limits.incidents)
    anchors = _anchors(shown)
    views = tuple(
        _incident(result, incident, anchor, limits, renderer)
        for incident, anchor in zip(shown, anchors, strict=True)
    )
    anchor_of = {id(view.incident): view.anchor for view in views}
    rows, rows_left_out = capped(ordered if is_fleet else (), limits.rows)
    lines = tuple(Row(i, anchor_of.get(id(i)), *_badge(i), facts.root(i)) for i in rows)
    unknown, unknown_left_out = capped(result.unknown, limits.unknown)
    coverage = result.coverage
    return PageView(
        result=result,
        title=_title(result, ordered),
        rows=tuple(row for row in lines if row.incident.verdict != "healthy"),
        healthy=tuple(row for row in lines if row.incident.verdict == "healthy"),
        rows_left_out=rows_left_out,
        incidents=views,
        incidents_left_out=left_out,
        unknown=tuple(
            UnknownView(failure, _evidence(failure.evidence, limits)[0]) for failure in unknown
        ),
        unknown_left_out=unknown_left_out,
        is_fleet=is_fleet,
        gaps=len(coverage.quarantined) + len(coverage.signatures_skipped) + coverage.truncated,
    )


def link_of(reference: str) -> str | None:
    """The address of a reference that may be followed: Flink's tracker or a plain https page."""
    if _FLINK_ISSUE.fullmatch(reference):
        return f"https://issues.apache.org/jira/browse/{reference}"
    return reference if _LINK.fullmatch(reference) else None


def _title(result: Result, ordered: Sequence[Incident]) -> str:
    if len(ordered) != 1:
        return facts.overview(result)
    cause = facts.root(ordered[0])
    said = ordered[0].verdict if cause is None else cause.title
    return f"{ordered[0].deployment}: {said}"


def _incident(
    result: Result, incident: Incident, anchor: str, limits: Limits, renderer: PatchRenderer
) -> IncidentView:
    shown, left_out = capped(incident.diagnoses, limits.diagnoses)
    diagnoses = [_diagnosis(incident, item, anchor, limits, renderer) for item in shown]
    entries, entries_left_out = capped(incident.timeline, limits.entries)
    options, options_left_out = _options(result, incident, limits)
    is_diagnosed = incident.verdict == "diagnosed"
    fault = (incident.first_fault,) if incident.first_fault is not None else ()
    badge, tone = _badge(incident)
    return IncidentView(
        incident=incident,
        anchor=anchor,
        badge=badge,
        tone=tone,
        cause=diagnoses[0] if diagnoses and is_diagnosed else None,
        others=tuple(diagnoses[1:] if is_diagnosed else diagnoses),
        diagnoses_left_out=left_out,
        chart=chart_of(incident, limits.marks),
        entries=entries,
        entries_left_out=entries_left_out,
        first_fault=next(iter(_evidence(fault, limits)[0]), None),
        changes=_changes(incident),
        options=options,
        options_left_out=options_left_out,
    )


def _diagnosis(
    incident: Incident,
    diagnosis: Diagnosis,
    anchor: str,
    limits: Limits,
    renderer: PatchRenderer,
) -> DiagnosisView:
    evidence, left_out = _evidence(diagnosis.evidence, limits)
    return DiagnosisView(
        diagnosis=diagnosis,
        anchor=f"{anchor}-d{diagnosis.rank}",
        patches=patches_of(diagnosis.remediation.config, incident.flink_version, renderer),
        consequences=facts.consequences(incident, diagnosis),
        evidence=evidence,
        evidence_left_out=left_out,
    )


def _evidence(found: Sequence[Evidence], limits: Limits) -> tuple[tuple[EvidenceView, ...], int]:
    shown, left_out = capped(found, limits.evidence)
    views = tuple(
        EvidenceView(
            evidence=evidence,
            key_lines=facts.key_lines(evidence.excerpt),
            excerpt=evidence.excerpt[: limits.excerpt_chars],
            line_count=evidence.excerpt.count("\n") + 1,
            cut_chars=max(0, len(evidence.excerpt) - limits.excerpt_chars),
        )
        for evidence in shown
    )
    return views, left_out


def _changes(incident: Incident) -> tuple[tuple[int, ConfigChange], ...]:
    """Every proposed change, merged over all diagnoses, with the best rank that proposes it."""
    merged = {(change.scope, change.key): change for change in incident.config}
    found: dict[tuple[str, str], tuple[int, ConfigChange]] = {}
    for diagnosis in incident.diagnoses:
        for change in diagnosis.remediation.config:
            key = (change.scope, change.key)
            found.setdefault(key, (diagnosis.rank, merged.get(key, change)))
    return tuple(found.values())


def _options(result: Result, incident: Incident, limits: Limits) -> tuple[tuple[Option, ...], int]:
    effective = result.effective_config.get(incident.deployment, {})
    changes = {change.key: change for _, change in _changes(incident)}
    options = [Option(key, effective[key], changes.get(key)) for key in sorted(effective)]
    return capped(options, limits.options)


def _badge(incident: Incident) -> tuple[str, str]:
    """The word on the badge and the tone of its colour, both out of a fixed set."""
    cause = facts.root(incident)
    if incident.verdict == "diagnosed" and cause is not None:
        return cause.severity, cause.severity
    return incident.verdict, "healthy" if incident.verdict == "healthy" else "undetermined"


def _anchors(incidents: Sequence[Incident]) -> list[str]:
    """``i-<incident id>``, stable across runs; a digest where an id is no safe anchor."""
    anchors: list[str] = []
    for incident in incidents:
        name = incident.incident_id
        if not _ANCHOR.fullmatch(name):
            name = hashlib.sha256(name.encode("utf-8", "backslashreplace")).hexdigest()[:16]
        anchor = f"i-{name}"
        anchors.append(anchor if anchor not in anchors else f"{anchor}-{len(anchors)}")
    return anchors
