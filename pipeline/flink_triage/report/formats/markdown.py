"""Renders a result as Markdown that can be pasted into an issue.

Log text is in a code span, in a fence longer than any run of backticks inside, or in escaped prose.
In prose, mentions, issue numbers and bare links are disabled, so that a pasted report does not
notify anyone.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from flink_triage.model import (
    Diagnosis,
    Evidence,
    Incident,
    Result,
    SimilarFailure,
    UnknownFailure,
)
from flink_triage.remediation import render_patch
from flink_triage.report.facts import changed, wording
from flink_triage.report.facts import closest_failures as resemblance
from flink_triage.report.facts.patches import PatchRenderer, now, patches_of
from flink_triage.report.facts.sanitize import clean_values, one_line
from flink_triage.report.facts.unnamed_failure import failure_of
from flink_triage.report.facts.wording import capped, count

T = TypeVar("T")

# GitHub rejects a body of more than 65,536 characters.
MAX_CHARS = 60_000
# Limits of the diagnoses per incident, the evidence per diagnosis, and the incidents, reduced until
# the page fits.
_BUDGETS = ((20, 5, 40), (5, 2, 20), (2, 1, 8), (1, 0, 3))

# Maximum length of one field; a longer one is truncated and ends in an ellipsis.
_MAX_PROSE, _MAX_CODE, _MAX_EXCERPT = 4_000, 1_000, 8_000

_BACKTICKS = re.compile(r"`+")
# An info string cannot contain a backtick; this distinguishes a fence from a code span.
_FENCE = re.compile(r"(`{3,})([^`]*)")
_PUNCTUATION = re.compile(r"([\\`*_\[\]<>|~$&])")
# Prefixes that turn a line into a heading, a list or a rule.
_AT_START = re.compile(r"^(?:(\d{1,9})(?=[.)])|(?=[-+=#]))")
_REFERENCE = re.compile(r"(?i)(@|#(?=\d)|\bgh-(?=\d)|\bwww(?=\.)|:(?=//)|\bmailto:|\bxmpp:)")
_LINK = re.compile(r"https://[A-Za-z0-9.-]+(?:/[A-Za-z0-9._~/#?&=%+-]*)?")
_FLINK_ISSUE = re.compile(r"FLINK-\d{1,6}")
_ZERO_WIDTH_SPACE = "\u200b"


def render_markdown(result: Result, *, patch: PatchRenderer | None = None) -> str:
    """The report, with fewer incidents and details if it exceeds `MAX_CHARS` characters."""
    cleaned, renderer = clean_values(result), patch or render_patch
    text = ""
    for diagnoses, evidence, incidents in _BUDGETS:
        text = _Writer(cleaned, renderer, diagnoses, evidence, incidents).write()
        if len(text) <= MAX_CHARS:
            return text
    cut = text[: MAX_CHARS - 200].rpartition("\n\n")[0]
    return (
        f"{_closed(cut)}\n\nThis report is truncated. The JSON output contains the complete "
        "result.\n"
    )


def code(text: str) -> str:
    """One line of log text as a code span that its own backticks cannot end."""
    line = one_line(_cut(text, _MAX_CODE)) or " "
    fence = "`" * (1 + max(map(len, _BACKTICKS.findall(line)), default=0))
    pad = " " if line[0] in "` " or line[-1] in "` " else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def prose(text: str) -> str:
    """Text that Markdown renders literally, without markup, mentions or links."""
    unlinked = _REFERENCE.sub(r"\1" + _ZERO_WIDTH_SPACE, one_line(_cut(text, _MAX_PROSE)))
    return _AT_START.sub(r"\1\\", _PUNCTUATION.sub(r"\\\1", unlinked))


def fenced(text: str, language: str = "text") -> str:
    """Text in a fence longer than any run of backticks inside it."""
    fence = "`" * max(3, 1 + max(map(len, _BACKTICKS.findall(text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _closed(text: str) -> str:
    """The text with open fences and folded sections closed, if it was truncated inside them."""
    opened = ""
    for line in text.split("\n"):
        found = _FENCE.fullmatch(line)
        if found and not opened:
            opened = found[1]
        elif found and len(found[1]) >= len(opened) and not found[2]:
            opened = ""
    folded = text.count("\n<details>") - text.count("\n</details>")
    return text + (f"\n{opened}" if opened else "") + "\n\n</details>" * folded


class _Writer:
    def __init__(
        self, result: Result, patch: PatchRenderer, diagnoses: int, evidence: int, incidents: int
    ) -> None:
        self._result, self._patch = result, patch
        self._max_diagnoses, self._max_evidence = diagnoses, evidence
        self._max_incidents = incidents
        self._blocks: list[str] = []

    def write(self) -> str:
        result = self._result
        self._blocks = [f"# Flink triage: {prose(wording.overview(result))}"]
        incidents = wording.by_urgency(result.incidents)
        troubled = [incident for incident in incidents if incident.is_failure]
        quiet = [incident for incident in incidents if not incident.is_failure]
        shown, left_out = capped(troubled, self._max_incidents)
        for incident in shown:
            self._incident(incident)
        self._left_out(left_out, "incident with a failure", "incidents with a failure")
        for verdict, of in itertools.groupby(quiet, lambda incident: incident.verdict):
            self._blocks.append(f"## {verdict.capitalize()}")
            self._list(tuple(of), self._quiet_line, f"{verdict} deployment")
        self._unknown(result.unknown)
        self._coverage(result)
        return "\n\n".join(self._blocks) + "\n"

    def _incident(self, incident: Incident) -> None:
        job = wording.job_of(incident)
        facts_line = [
            *([code(job)] if job else []),
            *([f"Flink {code(incident.flink_version)}"] if incident.flink_version else []),
            prose(wording.state(incident)),
        ]
        self._blocks.append(f"## {code(incident.deployment)}")
        self._blocks.append(" · ".join(facts_line))
        if incident.verdict == "undetermined":
            summary = incident.summary or "The cause was not found in these logs."
            self._blocks.append(f"**Undetermined.** {prose(summary)}")
            if incident.first_fault is not None:
                self._blocks.append(
                    f"First fault at {code(wording.location(incident.first_fault))}:"
                )
                self._blocks.append(fenced(_cut(incident.first_fault.excerpt, _MAX_EXCERPT)))
            failure = failure_of(self._result, incident)
            if failure is not None:
                lines = (f"- {label}: {code(text)}" for label, text in failure.lines())
                self._blocks.append("\n".join(lines))
        self._changes(incident)
        if incident.similar:
            self._blocks.append(f"**{resemblance.HEADING}:**")
            self._blocks.append("\n".join(map(_similar_lines, incident.similar)))
        if incident.missing_evidence:
            self._blocks.append("Missing evidence:")
            self._list(incident.missing_evidence, prose, "item")
        shown, left_out = capped(incident.diagnoses, self._max_diagnoses)
        for diagnosis in shown:
            self._diagnosis(incident, diagnosis)
        self._left_out(left_out, "diagnosis", "diagnoses")

    def _changes(self, incident: Incident) -> None:
        shown, left_out = changed.shown(incident)
        for heading, changes in shown:
            title = prose(heading[0].upper() + heading[1:])
            self._blocks.append(f"**{title}.** {changed.NO_CAUSE}")
            self._blocks.append("\n".join(f"- {code(change)}" for change in changes))
        self._left_out(left_out, "change")

    def _diagnosis(self, incident: Incident, diagnosis: Diagnosis) -> None:
        tags = f"{diagnosis.role} · {diagnosis.severity} · confidence {diagnosis.confidence:.2f}"
        self._blocks.append(f"### {diagnosis.rank}\\. {prose(diagnosis.title)}")
        self._blocks.append(f"{tags} · {code(diagnosis.signature)}")
        self._blocks.append("\n".join(self._facts(incident, diagnosis)))
        if diagnosis.rank == 1:
            self._remediation(incident, diagnosis)
        self._folded(diagnosis)

    def _facts(self, incident: Incident, diagnosis: Diagnosis) -> list[str]:
        events = count(diagnosis.occurrences, "event")
        lines = [f"- {events} since {prose(wording.instant(diagnosis.first_seen_at))}"]
        lines += [f"- where: {code(place)}" for place in wording.where(diagnosis)]
        followed = [
            f"{prose(item.title)} ({item.occurrences:,}x)"
            for item in wording.consequences(incident, diagnosis)
            if item.rank is not None
        ]
        if diagnosis.rank == 1:
            ending = wording.ending(incident)
            chain = [*followed, *([prose(ending)] if ending else [])]
            lines += [f"- explains: {' → '.join(chain)}"] if chain else []
            last = wording.last_healthy(incident)
            lines += [f"- last healthy: {prose(last)}"] if last else []
        return lines

    def _remediation(self, incident: Incident, diagnosis: Diagnosis) -> None:
        remediation = diagnosis.remediation
        self._blocks.append(f"**Do:** {prose(remediation.summary)}")
        if remediation.steps:
            steps = (f"{i}. {prose(step)}" for i, step in enumerate(remediation.steps, start=1))
            self._blocks.append("\n".join(steps))
        for block in patches_of(remediation.config, incident.flink_version, self._patch):
            self._blocks.append(f"{code(block.place)}:")
            self._blocks.append(fenced(block.text, "yaml" if block.is_flink_file else "text"))
        if remediation.config:
            lines = (
                f"- {code(change.key)} ({change.action}, {code(now(change))}): "
                f"{prose(change.reason)}"
                for change in remediation.config
            )
            self._blocks.append("\n".join(lines))
        risk = f"{remediation.risk}: {wording.RISKS[remediation.risk]}"
        self._blocks.append(f"Risk: {prose(risk)}")
        if remediation.verify:
            self._blocks.append(f"Verify: {prose(remediation.verify)}")
        tried = (
            f"- People try: {prose(fix.advice)}\n  - But: {prose(fix.assessment)}"
            for fix in remediation.commonly_tried
        )
        self._blocks += ["\n".join(tried)] if remediation.commonly_tried else []
        links = ", ".join(map(_reference, remediation.references))
        self._blocks += [f"See: {links}"] if links else []

    def _folded(self, diagnosis: Diagnosis) -> None:
        self._blocks.append(
            "<details>\n<summary>What happened, why this ranking, evidence</summary>"
        )
        if diagnosis.cause:
            self._blocks.append(prose(diagnosis.cause))
        if diagnosis.reasons:
            self._blocks.append("\n".join(f"- {prose(reason)}" for reason in diagnosis.reasons))
        shown, left_out = capped(diagnosis.evidence, self._max_evidence)
        for evidence in shown:
            self._evidence(evidence)
        self._left_out(left_out, "piece of evidence", "pieces of evidence")
        self._blocks.append("</details>")

    def _evidence(self, evidence: Evidence) -> None:
        place = code(wording.location(evidence, width=200))
        self._blocks.append(f"{place} at {prose(wording.instant(evidence.at))}")
        self._blocks.append(fenced(_cut(evidence.excerpt, _MAX_EXCERPT)))

    def _unknown(self, unknown: tuple[UnknownFailure, ...]) -> None:
        if not unknown:
            return
        self._blocks.append("## Failures without a signature")
        self._list(unknown, _unknown_line, "unknown failure")

    def _coverage(self, result: Result) -> None:
        self._blocks.append("## Coverage")
        self._blocks.append(prose(wording.coverage_line(result.coverage)))
        gaps = [
            *(
                f"{wording.gap_label(item)}{code(item.path)}: {prose(item.reason)}"
                for item in result.coverage.quarantined
            ),
            *(
                f"not evaluated: {code(item.signature)}: {prose(item.reason)}"
                for item in result.coverage.signatures_skipped
            ),
        ]
        if gaps:
            self._list(gaps, str, "gap")
        run = f"run {code(result.run.run_id)} · signatures {code(result.run.signature_set)}"
        self._blocks.append(f"{run} · {prose(wording.instant(result.run.started_at))}")

    def _list(self, items: Iterable[T], line: Callable[[T], str], noun: str) -> None:
        shown, left_out = capped(tuple(items), 10 * self._max_diagnoses)
        self._blocks.append("\n".join(f"- {line(item)}" for item in shown))
        self._left_out(left_out, noun)

    def _left_out(self, number: int, noun: str, plural: str | None = None) -> None:
        if number:
            rest = count(number, f"more {noun}", plural and f"more {plural}")
            self._blocks.append(f"{rest}: see the JSON output.")

    def _quiet_line(self, incident: Incident) -> str:
        last = wording.last_healthy(incident)
        state = (
            f"last {last}" if last else "" if incident.verdict == "healthy" else incident.summary
        )
        near = resemblance.titles(incident.similar)
        text = " ".join(prose(part) for part in (state, f"{near}." if near else "") if part)
        return code(incident.deployment) + (f": {text}" if text else "")


def _unknown_line(failure: UnknownFailure) -> str:
    kind = failure.root_cause_type or failure.exception_type or "unknown type"
    description = f"{kind}: {failure.root_cause_message}" if failure.root_cause_message else kind
    frame = f" in {code(failure.first_user_frame)}" if failure.first_user_frame else ""
    places = ", ".join(code(wording.location(evidence)) for evidence in failure.evidence[:2])
    at = f" at {places}" if places else ""
    if failure.first_seen_at is not None:
        at += f", first seen {wording.instant(failure.first_seen_at)}"
    near = f"\n  {prose(resemblance.titles(failure.similar))}" if failure.similar else ""
    fingerprint = code(failure.fingerprint)
    return f"{failure.count:,}x {code(description)}{frame}{at}, fingerprint {fingerprint}{near}"


def _similar_lines(similar: SimilarFailure) -> str:
    details = (
        f"  - {label}: {_reference(text) if label == 'see' else prose(text)}"
        for label, text in resemblance.details_of(similar)
    )
    return "\n".join((f"- {prose(similar.title)} ({code(similar.signature)})", *details))


def _reference(reference: str) -> str:
    if _FLINK_ISSUE.fullmatch(reference):
        return f"[{reference}](https://issues.apache.org/jira/browse/{reference})"
    return f"<{reference}>" if _LINK.fullmatch(reference) else code(reference)
