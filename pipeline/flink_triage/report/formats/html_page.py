"""Prepares a cleaned result for the HTML templates: limited, ordered, and with stable anchors."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from flink_triage.diagnosis.incidents.cited_traces import cut_trace
from flink_triage.model import (
    SEVERITIES,
    ConfigChange,
    Diagnosis,
    Evidence,
    Incident,
    Result,
    TimelineEntry,
    UnknownFailure,
)
from flink_triage.report.drawings.cause_graph import Graph, graph_of
from flink_triage.report.drawings.incident_timeline import Chart, chart_of
from flink_triage.report.drawings.job_lanes import Overview, overview_of
from flink_triage.report.facts import wording
from flink_triage.report.facts.folded_stack import Block, blocks_of
from flink_triage.report.facts.patches import Patch, PatchRenderer, patches_of
from flink_triage.report.facts.unnamed_failure import Failure, failure_of
from flink_triage.report.facts.wording import Consequence, capped

_ANCHOR = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_FLINK_ISSUE = re.compile(r"FLINK-\d{1,6}")
_TONES = (*SEVERITIES, "undetermined", "healthy")
_LINK = re.compile(r"https://[A-Za-z0-9][A-Za-z0-9.-]*(?:/[A-Za-z0-9._~/#?&=%+:@,-]*)?")


@dataclass(frozen=True, slots=True)
class Limits:
    """Maximum number of items per part of the page; omitted items are counted on the page."""

    rows: int = 1000
    row_incidents: int = 12
    incidents: int = 200
    diagnoses: int = 12
    evidence: int = 5
    traces: int = 2
    trace_chars: int = 12_000
    excerpt_chars: int = 12_000
    marks: int = 300
    entries: int = 60
    lanes: int = 40
    options: int = 300
    unknown: int = 40
    gaps: int = 100

    def smaller(self, share: float) -> Limits:
        """Lower limits, for a page of about ``share`` of its current size.

        The first call shortens the sections, and later calls omit sections. The table of
        deployments is shortened last, because it is the overview of a fleet. Limits that cannot be
        lowered are returned unchanged.
        """
        if self.evidence > _LEAN["evidence"]:
            return replace(self, **{n: min(v, getattr(self, n)) for n, v in _LEAN.items()})
        if self.incidents > 8:
            fewer = min(self.incidents - 1, int(self.incidents * max(share, 0.3)))
            return replace(self, incidents=max(8, fewer))
        kept = {"rows", "row_incidents"} if self.trace_chars > 1000 else set()
        halves = {n: max(1, getattr(self, n) // 2) for n in self.__slots__ if n not in kept}
        return replace(self, **halves)


# Limits per section on a page that would be too large.
_LEAN = {"diagnoses": 4, "evidence": 1, "traces": 1, "trace_chars": 4000, "excerpt_chars": 2000,
         "marks": 80, "entries": 16, "options": 8}  # fmt: skip


@dataclass(frozen=True, slots=True)
class EvidenceView:
    evidence: Evidence
    key_lines: tuple[str, ...]
    excerpt: str
    line_count: int
    cut_chars: int
    blocks: tuple[Block, ...]


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
    """One effective option; ``change`` is the proposed change, if any."""

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
    graph: Graph | None
    entries: tuple[TimelineEntry, ...]
    entries_left_out: int
    first_fault: EvidenceView | None
    failure: Failure | None
    changes: tuple[tuple[int, ConfigChange], ...]
    options: tuple[Option, ...]
    options_left_out: int


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table of deployments; ``anchor`` is ``None`` if the page has no section for it.

    ``more`` contains other incidents of the deployment. ``signatures`` contains the rank-1
    signatures of all its diagnosed incidents; the filter searches them.
    """

    incident: Incident
    anchor: str | None
    badge: str
    tone: str
    cause: Diagnosis | None
    patches: tuple[Patch, ...] = ()
    more: tuple[Row, ...] = ()
    more_left_out: int = 0
    signatures: tuple[str, ...] = ()
    tones: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnknownView:
    failure: UnknownFailure
    evidence: tuple[EvidenceView, ...]


@dataclass(frozen=True, slots=True)
class PageView:
    result: Result
    title: str
    rows: tuple[Row, ...]
    quiet: tuple[Row, ...]
    rows_left_out: int
    incidents: tuple[IncidentView, ...]
    incidents_left_out: int
    unknown: tuple[UnknownView, ...]
    unknown_left_out: int
    is_fleet: bool
    gaps: int
    overview: Overview | None
    signatures: tuple[tuple[str, int], ...]
    tones: tuple[str, ...]


def page_of(result: Result, limits: Limits, renderer: PatchRenderer) -> PageView:
    """The page, with a section for each incident with a failure.

    If there are at most three incidents, each one has a section. If there is more than one, the
    page also has a table of deployments. Items that exceed ``limits`` are omitted and counted.
    """
    ordered = wording.by_urgency(result.incidents)
    is_fleet = len(ordered) > 1
    detailed = [i for i in ordered if i.is_failure] if len(ordered) > 3 else list(ordered)
    shown = _first_of_each(detailed, limits.incidents)
    anchors = _anchors(shown)
    views = tuple(
        _incident(result, incident, anchor, limits, renderer)
        for incident, anchor in zip(shown, anchors, strict=True)
    )
    anchor_of = {id(view.incident): view.anchor for view in views}
    rows = _rows(ordered, anchor_of, limits, renderer) if is_fleet else ()
    lines, rows_left_out = capped(rows, limits.rows)
    unknown, unknown_left_out = capped(result.unknown, limits.unknown)
    coverage = result.coverage
    causes = Counter(name for row in rows for name in row.signatures)
    return PageView(
        result=result,
        title=_title(result, ordered),
        rows=tuple(row for row in lines if row.incident.is_failure),
        quiet=tuple(row for row in lines if not row.incident.is_failure),
        rows_left_out=rows_left_out,
        incidents=views,
        incidents_left_out=len(detailed) - len(shown),
        unknown=tuple(
            UnknownView(failure, _evidence(result, failure.evidence, limits, set())[0])
            for failure in unknown
        ),
        unknown_left_out=unknown_left_out,
        is_fleet=is_fleet,
        gaps=sum(not quarantined.is_ignored for quarantined in coverage.quarantined)
        + len(coverage.signatures_skipped)
        + coverage.truncated,
        overview=overview_of(ordered, limits.lanes) if is_fleet else None,
        signatures=tuple(sorted(causes.items(), key=lambda pair: (-pair[1], pair[0]))),
        tones=tuple(tone for tone in _TONES if any(tone in row.tones for row in rows)),
    )


def _first_of_each(ordered: Sequence[Incident], limit: int) -> list[Incident]:
    """At most ``limit`` incidents, in the given order.

    The worst incident of each deployment takes precedence, then the second worst, and so on.
    """
    seen: Counter[str] = Counter()
    numbered: list[tuple[int, int]] = []
    for index, incident in enumerate(ordered):
        numbered.append((seen[incident.deployment], index))
        seen[incident.deployment] += 1
    return [ordered[index] for _, index in sorted(sorted(numbered)[:limit], key=lambda p: p[1])]


def _rows(
    ordered: Sequence[Incident],
    anchor_of: Mapping[int, str],
    limits: Limits,
    renderer: PatchRenderer,
) -> tuple[Row, ...]:
    """One row per deployment, with its worst incident shown and the others folded."""
    by_deployment: dict[str, list[Incident]] = {}
    for incident in ordered:
        by_deployment.setdefault(incident.deployment, []).append(incident)
    rows = []
    for worst, *others in by_deployment.values():
        more, left_out = capped(others, limits.row_incidents)
        first = _row(worst, anchor_of)
        rest = tuple(_row(incident, anchor_of) for incident in more)
        all_rows = [first, *(_row(incident, anchor_of) for incident in others)]
        named = dict.fromkeys(
            row.cause.signature
            for row in all_rows
            if row.cause and row.incident.verdict == "diagnosed"
        )
        changes = first.cause.remediation.config if named and first.cause else ()
        rows.append(
            replace(
                first,
                patches=patches_of(changes, worst.flink_version, renderer)[:1],
                more=rest,
                more_left_out=left_out,
                signatures=tuple(named),
                tones=tuple(dict.fromkeys(row.tone for row in all_rows)),
            )
        )
    return tuple(rows)


def _row(incident: Incident, anchor_of: Mapping[int, str]) -> Row:
    badge, tone = _badge(incident)
    return Row(incident, anchor_of.get(id(incident)), badge, tone, wording.root(incident))


def link_of(reference: str) -> str | None:
    """The URL of a Flink issue or a plain https page; ``None`` for any other reference."""
    if _FLINK_ISSUE.fullmatch(reference):
        return f"https://issues.apache.org/jira/browse/{reference}"
    return reference if _LINK.fullmatch(reference) else None


def _title(result: Result, ordered: Sequence[Incident]) -> str:
    if len(ordered) != 1:
        return wording.overview(result)
    cause = wording.root(ordered[0])
    headline = ordered[0].verdict if cause is None else cause.title
    return f"{ordered[0].deployment}: {headline}"


def _incident(
    result: Result, incident: Incident, anchor: str, limits: Limits, renderer: PatchRenderer
) -> IncidentView:
    shown, left_out = capped(incident.diagnoses, limits.diagnoses)
    shown_traces = set[str]()
    fault = (incident.first_fault,) if incident.first_fault is not None else ()
    first_fault = next(iter(_evidence(result, fault, limits, set())[0]), None)
    diagnoses = [
        _diagnosis(result, incident, item, anchor, limits, renderer, shown_traces) for item in shown
    ]
    entries, entries_left_out = capped(incident.timeline, limits.entries)
    options, options_left_out = _options(result, incident, limits)
    is_diagnosed = incident.verdict == "diagnosed"
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
        graph=graph_of(incident),
        entries=entries,
        entries_left_out=entries_left_out,
        first_fault=first_fault,
        failure=failure_of(result, incident),
        changes=_changes(incident),
        options=options,
        options_left_out=options_left_out,
    )


def _diagnosis(
    result: Result,
    incident: Incident,
    diagnosis: Diagnosis,
    anchor: str,
    limits: Limits,
    renderer: PatchRenderer,
    shown_traces: set[str],
) -> DiagnosisView:
    evidence, left_out = _evidence(result, diagnosis.evidence, limits, shown_traces)
    return DiagnosisView(
        diagnosis=diagnosis,
        anchor=f"{anchor}-d{diagnosis.rank}",
        patches=patches_of(diagnosis.remediation.config, incident.flink_version, renderer),
        consequences=wording.consequences(incident, diagnosis),
        evidence=evidence,
        evidence_left_out=left_out,
    )


def _evidence(
    result: Result, found: Sequence[Evidence], limits: Limits, shown_traces: set[str]
) -> tuple[tuple[EvidenceView, ...], int]:
    """The evidence, with each trace at most once; ``shown_traces`` contains those already shown."""
    shown, left_out = capped(found, limits.evidence)
    views, traces = [], 0
    for evidence in shown:
        trace, name = "", evidence.fingerprint
        if name is not None and name not in shown_traces and traces < limits.traces:
            trace = cut_trace(result.stack_traces.get(name, ""), limits.trace_chars)
            shown_traces.add(name)
            traces += 1
        text = evidence.excerpt[: limits.excerpt_chars]
        views.append(
            EvidenceView(
                evidence=evidence,
                key_lines=wording.key_lines(evidence.excerpt),
                excerpt=text,
                line_count=evidence.excerpt.count("\n") + 1,
                cut_chars=max(0, len(evidence.excerpt) - limits.excerpt_chars),
                blocks=blocks_of(trace) if trace else blocks_of(text),
            )
        )
    return tuple(views), left_out


def _changes(incident: Incident) -> tuple[tuple[int, ConfigChange], ...]:
    """The changes of all diagnoses, each with the best rank that proposes it."""
    found: dict[tuple[str, str], tuple[int, ConfigChange]] = {}
    for diagnosis in incident.diagnoses:
        for change in diagnosis.remediation.config:
            key = (change.scope, change.key)
            found.setdefault(key, (diagnosis.rank, change))
    return tuple(found.values())


def _options(result: Result, incident: Incident, limits: Limits) -> tuple[tuple[Option, ...], int]:
    effective = result.effective_config.get(incident.deployment, {})
    changes = {change.key: change for _, change in _changes(incident)}
    options = [Option(key, effective[key], changes.get(key)) for key in sorted(effective)]
    return capped(options, limits.options)


def _badge(incident: Incident) -> tuple[str, str]:
    """The word on the badge and its color, both from a fixed set."""
    cause = wording.root(incident)
    if incident.verdict == "diagnosed" and cause is not None:
        return cause.severity, cause.severity
    return incident.verdict, "undetermined" if incident.is_failure else "healthy"


def _anchors(incidents: Sequence[Incident]) -> list[str]:
    """The anchor ``i-<incident ID>`` of each incident; a number makes a repeated one unique.

    An ID that is not a safe anchor is replaced by a digest.
    """
    anchors: list[str] = []
    for incident in incidents:
        name = incident.incident_id
        if not _ANCHOR.fullmatch(name):
            name = hashlib.sha256(name.encode("utf-8", "backslashreplace")).hexdigest()[:16]
        anchor = f"i-{name}"
        anchors.append(anchor if anchor not in anchors else f"{anchor}-{len(anchors)}")
    return anchors
