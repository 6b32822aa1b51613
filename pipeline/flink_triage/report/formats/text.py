"""Renders a result as plain text for a terminal: verdict first, wrapped, with log text cleaned.

Only lines to paste into a configuration file may be wider than the page, because a wrapped option
is invalid.
"""

from __future__ import annotations

import itertools
import re

from flink_triage.model import Diagnosis, Evidence, Incident, Result, UnknownFailure
from flink_triage.remediation import render_patch
from flink_triage.report.facts import changed, impact, wording
from flink_triage.report.facts import closest_failures as resemblance
from flink_triage.report.facts.patches import PatchRenderer, already, now, patches_of
from flink_triage.report.facts.sanitize import NO_BREAK, clean_values, columns_of, fold, one_line
from flink_triage.report.facts.unnamed_failure import failure_at, failure_of, naming
from flink_triage.report.facts.wording import capped, count

_STYLES = {
    "title": "1",
    "faint": "2",
    "critical": "1;31",
    "major": "31",
    "minor": "33",
    "info": "36",
    "healthy": "32",
    "undetermined": "33",
    "diagnosed": "1",
}
_LIST = re.compile(r"\([^()]*\)")
_INDENT = 5
_MAX_EVIDENCE_LINES = 12
_MAX_SHORT = 3
# A longer location is printed on a separate line, to leave room for the log text.
_MAX_PLACE = 28
# On a wider page, paths that fit on a line are shown in full.
_PAGE_WIDTH = 80


def render_text(
    result: Result,
    *,
    verbose: bool = False,
    color: bool = False,
    width: int = 80,
    patch: PatchRenderer | None = None,
) -> str:
    """The complete result as lines that end in a newline, wrapped at ``width`` (at least 40).

    ``verbose`` shows more, such as reasons, alternatives, references, all steps, and timelines.
    """
    page = _Page(width, color)
    _Writer(page, verbose, patch or render_patch, clean_values(result)).write()
    return "\n".join(page.lines) + "\n"


class _Page:
    """Lines under construction; styles are added after wrapping, so that they do not add width."""

    def __init__(self, width: int, color: bool) -> None:
        self.lines: list[str] = []
        self.width = max(width, 40)
        self._color = color

    def add(
        self, text: str, *, indent: int = 0, hang: int = 0, style: str = "", label: str = ""
    ) -> None:
        """Add a wrapped paragraph after ``label``; continuation lines align with the first line."""
        if columns_of(label) > self.width // 2:
            text, label = f"{label} {text}", ""
        start = " " * indent + label
        rest = " " * (columns_of(start) + hang)
        head, *tail = fold(text, self.width - columns_of(rest))
        for number, line in enumerate([head, *tail]):
            self._append((start if number == 0 else rest) + line, style)

    def add_sides(self, left: str, right: str, *, label: str, style: str) -> None:
        """Add ``left`` and ``right`` on one line, or on two lines if they do not fit."""
        gap = self.width - columns_of(label) - columns_of(left) - columns_of(right)
        if gap >= 2:
            self._append(label + left + " " * gap + right, style)
            return
        self.add(left, label=label, style=style)
        self.add(right, indent=columns_of(label), style=style)

    def verbatim(self, line: str, *, indent: int, style: str = "") -> None:
        self._append(" " * indent + line, style)

    def blank(self) -> None:
        if self.lines and self.lines[-1]:
            self.lines.append("")

    def _append(self, line: str, style: str) -> None:
        code = _STYLES.get(style) if self._color else None
        line = line.rstrip()
        self.lines.append(f"\x1b[{code}m{line}\x1b[0m" if code and line else line)


class _Writer:
    def __init__(self, page: _Page, verbose: bool, patch: PatchRenderer, result: Result) -> None:
        self._page, self._verbose, self._patch, self._result = page, verbose, patch, result

    def write(self) -> None:
        page, result = self._page, self._result
        incidents = wording.by_urgency(result.incidents)
        if len(incidents) > 1:
            page.add(wording.overview(result), style="title")
        is_fleet = len(incidents) > 3
        quiet = [incident for incident in incidents if not incident.is_failure]
        for incident in incidents:
            if incident.is_failure or not is_fleet or self._verbose:
                page.blank()
                self._incident(incident)
        if is_fleet and quiet and not self._verbose:
            page.blank()
            for verdict, of in itertools.groupby(quiet, lambda incident: incident.verdict):
                names = [one_line(incident.deployment) for incident in of]
                page.add(", ".join(names), label=f"{len(names)} {verdict}: ", style="healthy")
        if not incidents:
            page.add("nothing to diagnose: no deployment was found in the input", style="title")
        self._unknown(result.unknown)
        self._coverage(result)

    # --- one incident ---------------------------------------------------------------------------

    def _incident(self, incident: Incident) -> None:
        version = f"Flink {one_line(incident.flink_version)}" if incident.flink_version else None
        parts = [one_line(incident.deployment), wording.job_of(incident), version]
        head = " · ".join([part for part in parts if part] + [wording.state(incident)])
        self._page.add(
            _without_breaks(head), hang=2, style="title" if incident.is_failure else "healthy"
        )
        if not incident.is_failure:
            self._quiet(incident)
            return
        if incident.verdict == "undetermined":
            self._undetermined(incident)
        limit = len(incident.diagnoses) if self._verbose else _MAX_SHORT
        shown, left_out = capped(incident.diagnoses, limit)
        for diagnosis in shown:
            self._diagnosis(incident, diagnosis)
        if left_out:
            further = f"{count(left_out, 'further diagnosis', 'further diagnoses')}: -v"
            self._page.add(further, indent=_INDENT, style="faint")
        if incident.verdict == "diagnosed":
            self._missing(incident)
        self._left_open(incident)
        if self._verbose:
            self._timeline(incident)

    def _quiet(self, incident: Incident) -> None:
        facts = [incident.summary or "no failure found"]
        facts += [f"last {last}"] if (last := wording.last_healthy(incident)) else []
        facts += [count(incident.restarts, "restart")] if incident.restarts else []
        self._page.add(" · ".join(facts), indent=_INDENT)
        if incident.first_fault is not None:
            self._evidence(incident.first_fault)
        self._similar(incident)
        self._missing(incident)

    def _undetermined(self, incident: Incident) -> None:
        summary = incident.summary or "The cause was not found in these logs."
        self._page.add(summary, label="  ?  ", style="undetermined")
        if incident.first_fault is not None:
            self._page.add("first fault:", indent=_INDENT)
            self._evidence(incident.first_fault)
        failure = failure_of(self._result, incident)
        for label, text in failure.lines() if failure is not None else ():
            # The summary already starts with the exception.
            if label != "thrown" or one_line(text) not in one_line(summary):
                self._labelled(label, text)
        if ending := wording.ending(incident):
            self._labelled("what followed", ending)
        self._before(incident)
        self._similar(incident)
        self._missing(incident)
        if incident.diagnoses:
            self._page.add("other findings in the log:", indent=_INDENT)

    def _similar(self, of: Incident | UnknownFailure) -> None:
        if of.similar:
            self._page.add(f"{resemblance.HEADING}:", indent=_INDENT)
        for one in of.similar:
            heading = f"{one_line(one.title)} ({one.signature})"
            self._page.add(heading, indent=_INDENT, hang=2, label="- ")
            for label, text in resemblance.details_of(one):
                self._page.add(text, indent=_INDENT + 4, label=f"{label}: ")

    def _missing(self, incident: Incident) -> None:
        for missing in incident.missing_evidence:
            self._labelled("missing evidence", missing)

    def _left_open(self, incident: Incident) -> None:
        if reach := impact.reach(incident):
            self._labelled("affected", reach)
        others, left_out = capped(incident.other_causes, 99 if self._verbose else _MAX_SHORT)
        for other in others:
            label = "also considered" if other.standing == "considered" else "could be"
            self._labelled(label, impact.other_cause(other))
            if self._verbose:
                self._page.add(one_line(other.reason), indent=_INDENT + 2)
        self._more(left_out, _INDENT)
        for note in incident.notes:
            self._labelled("note", note)

    def _timeline(self, incident: Incident) -> None:
        if not incident.timeline:
            return
        self._page.add("timeline:", indent=_INDENT)
        for entry in incident.timeline:
            times = f" ({entry.count:,}x)" if entry.count > 1 else ""
            at = wording.clock(entry.at, wording.since(incident))
            self._page.add(entry.text + times, indent=_INDENT + 2, label=f"{at}  ")

    # --- one diagnosis --------------------------------------------------------------------------

    def _diagnosis(self, incident: Incident, diagnosis: Diagnosis) -> None:
        page = self._page
        tags = f"{diagnosis.role} · {diagnosis.severity} · {diagnosis.confidence:.2f}"
        page.add_sides(
            one_line(diagnosis.title),
            tags,
            label=f"{diagnosis.rank:>3}  ",
            style=diagnosis.severity,
        )
        events = count(diagnosis.occurrences, "event")
        page.add(
            ", ".join([events, *wording.where(diagnosis, is_short=not self._verbose)]),
            indent=_INDENT,
        )
        shown, left_out = capped(diagnosis.evidence, 99 if self._verbose else 1)
        for evidence in shown:
            self._evidence(evidence)
        if self._verbose:
            self._more(left_out, _INDENT)
        if diagnosis.rank == 1:
            self._story(incident, diagnosis)
        if self._verbose:
            self._reasoning(diagnosis)
        if diagnosis.rank == 1 or self._verbose:
            self._remediation(incident, diagnosis)

    def _story(self, incident: Incident, diagnosis: Diagnosis) -> None:
        followed = [
            one_line(item.title) + (f" ({item.occurrences:,}x)" if item.occurrences else "")
            for item in wording.consequences(incident, diagnosis)
            if item.rank is not None
        ]
        if chain := " -> ".join(filter(None, [*followed, wording.ending(incident)])):
            self._labelled("explains", chain)
        self._before(incident)

    def _before(self, incident: Incident) -> None:
        if last := wording.last_healthy(incident):
            self._labelled("last healthy", last)
        shown, left_out = changed.shown(incident, 99 if self._verbose else 2 * _MAX_SHORT)
        for heading, changes in shown:
            self._page.add(f"{heading}:", indent=_INDENT, hang=2)
            for change in changes:
                self._page.add(change, indent=_INDENT + 2, hang=2, label="- ")
        self._more(left_out, _INDENT + 2)

    def _reasoning(self, diagnosis: Diagnosis) -> None:
        self._labelled("signature", diagnosis.signature)
        if diagnosis.cause:
            self._labelled("what happened", diagnosis.cause)
        for reason in diagnosis.reasons:
            self._labelled("why", reason)
        for key, value in diagnosis.captures.items():
            self._labelled(one_line(key), value)

    def _remediation(self, incident: Incident, diagnosis: Diagnosis) -> None:
        page, remediation = self._page, diagnosis.remediation
        self._labelled("do", remediation.summary)
        steps, left_out = capped(remediation.steps, 99 if self._verbose else _MAX_SHORT)
        for number, step in enumerate(steps, start=1):
            page.add(step, indent=_INDENT + 4, label=f"{number}. ")
        if left_out:
            page.add(f"{count(left_out, 'more step')}: -v", indent=_INDENT + 4, style="faint")
        for block in patches_of(remediation.config, incident.flink_version, self._patch):
            page.add(f"{block.place}:", indent=_INDENT + 4)
            for line in block.text.split("\n"):
                page.verbatim(line, indent=_INDENT + 6)
        for change in remediation.config:
            if change.action == "already-set":
                page.add(already(change), indent=_INDENT + 4, label="- ")
            elif self._verbose:
                text = f"{change.key} ({now(change)}): {change.reason}"
                page.add(text, indent=_INDENT + 4, label="- ")
        self._labelled("risk", f"{remediation.risk}, {wording.RISKS[remediation.risk]}")
        if self._verbose:
            self._advice(diagnosis)

    def _advice(self, diagnosis: Diagnosis) -> None:
        remediation = diagnosis.remediation
        if remediation.verify:
            self._labelled("verify", remediation.verify)
        for tried in remediation.commonly_tried:
            self._labelled("people try", tried.advice)
            self._page.add(tried.assessment, indent=_INDENT + 2, label="but: ")
        for reference in remediation.references:
            self._labelled("see", reference)

    # --- the rest -------------------------------------------------------------------------------

    def _evidence(self, evidence: Evidence) -> None:
        lines = [line for line in evidence.excerpt.split("\n") if line.strip()]
        if not self._verbose:
            lines = [wording.key_line(evidence.excerpt)] if lines else []
        shown, left_out = capped(lines, _MAX_EVIDENCE_LINES)
        is_wide = self._page.width > _PAGE_WIDTH
        place = wording.location(evidence, width=self._page.width - 20 if is_wide else 40)
        if shown and columns_of(place) <= _MAX_PLACE:
            self._page.add(shown[0], indent=_INDENT, label=f"{place}  ", style="faint")
            shown = shown[1:]
        else:
            self._page.add(place, indent=_INDENT, style="faint")
        for line in shown:
            self._page.add(line, indent=_INDENT + 2, hang=2, style="faint")
        if left_out:
            self._page.add(f"... {count(left_out, 'more line')}", indent=_INDENT + 2, style="faint")

    def _unknown(self, unknown: tuple[UnknownFailure, ...]) -> None:
        if not unknown:
            return
        self._page.blank()
        kinds = count(len(unknown), "failure")
        self._page.add(f"{kinds} without a signature", style="title")
        shown, left_out = capped(unknown, len(unknown) if self._verbose else _MAX_SHORT)
        shown_above = {(), *(incident.similar for incident in self._result.incidents)}
        for failure in shown:
            kind = failure.root_cause_type or failure.exception_type or "unknown type"
            description = (
                f"{kind}: {failure.root_cause_message}" if failure.root_cause_message else kind
            )
            self._page.add(description, label=f"  {failure.count:,}x  ", style="undetermined")
            details = failure_at(self._result, failure.evidence[0]) if failure.evidence else None
            if failure.first_user_frame:
                self._labelled("in", failure.first_user_frame)
            if details is not None and details.part is not None:
                self._labelled("belongs to", details.part)
            if failure.first_seen_at is not None:
                self._labelled("first seen", wording.instant(failure.first_seen_at))
            if failure.similar not in shown_above and not self._verbose:
                self._page.add(resemblance.titles(failure.similar), indent=_INDENT, hang=2)
            if self._verbose:
                self._similar(failure)
                self._labelled("deployments", ", ".join(failure.deployments))
                self._labelled("fingerprint", failure.fingerprint)
                self._labelled("to add a signature", naming(failure))
            for evidence in failure.evidence[: 99 if self._verbose else 1]:
                self._evidence(evidence)
        self._more(left_out, _INDENT)

    def _more(self, left_out: int, indent: int) -> None:
        """Add the number of omitted entries, and where they are shown."""
        if left_out:
            place = "see the JSON output" if self._verbose else "-v"
            self._page.add(f"{left_out} more: {place}", indent=indent, style="faint")

    def _coverage(self, result: Result) -> None:
        coverage = result.coverage
        self._page.blank()
        self._page.add(_without_breaks(wording.coverage_line(coverage)), hang=2)
        shown, left_out = capped(coverage.quarantined, 99 if self._verbose else _MAX_SHORT)
        for quarantined in shown:
            line = f"{quarantined.path}: {quarantined.reason}"
            self._page.add(line, indent=2, hang=2, label=wording.gap_label(quarantined))
        self._more(left_out, 2)
        skipped, left_out = capped(coverage.signatures_skipped, 99 if self._verbose else _MAX_SHORT)
        for signature in skipped:
            line = f"{signature.signature}: {signature.reason}"
            self._page.add(line, indent=2, hang=2, label="not evaluated: ")
        self._more(left_out, 2)
        if any(incident.diagnoses for incident in result.incidents) and not self._verbose:
            self._page.add("reasons, alternatives, references: -v", style="faint")

    def _labelled(self, label: str, text: str) -> None:
        self._page.add(one_line(text), indent=_INDENT, label=f"{label}: ")


def _without_breaks(line: str) -> str:
    """The line, to be wrapped only at `` · ``, and after a comma in parentheses."""
    parts = " · ".join(part.replace(" ", NO_BREAK) for part in line.split(" · "))
    return _LIST.sub(lambda found: found[0].replace(f",{NO_BREAK}", ", "), parts)
