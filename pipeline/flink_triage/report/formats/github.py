"""Renders a result as workflow commands, which annotate log lines in a GitHub Actions run.

Each line is a command with all its text escaped, because the runner executes every line that starts
with ``::``, and a log may contain such a line.
"""

from __future__ import annotations

from collections.abc import Iterator

from flink_triage.model import Diagnosis, Evidence, Incident, Result, Severity
from flink_triage.report.facts import changed, wording
from flink_triage.report.facts import closest_failures as resemblance
from flink_triage.report.facts.sanitize import clean_values, one_line

_COMMANDS: dict[Severity, str] = {
    "critical": "error",
    "major": "error",
    "minor": "warning",
    "info": "notice",
}
_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY = {**_DATA, ":": "%3A", ",": "%2C"}


def render_github(result: Result) -> str:
    """One command per line.

    A root cause is an error, a warning or a notice, according to its severity. A failure with an
    undetermined cause is an error. All other findings are notices.
    """
    cleaned = clean_values(result)
    return "".join(f"{line}\n" for line in _lines(cleaned))


def _lines(result: Result) -> Iterator[str]:
    for incident in wording.by_urgency(result.incidents):
        if incident.verdict == "undetermined":
            message = incident.summary or "The cause was not found in these logs."
            message = " ".join(filter(None, (message, resemblance.titles(incident.similar))))
            yield _command(
                "error", incident.first_fault, _title(incident, "cause undetermined"), message
            )
        for diagnosis in incident.diagnoses:
            yield _diagnosis(incident, diagnosis)
        for heading, changes in changed.shown(incident)[0]:
            yield _command("notice", None, _title(incident, heading), "; ".join(changes))
    for failure in result.unknown:
        kind = failure.root_cause_type or failure.exception_type or "unknown type"
        message = f"{failure.count}x {kind}: {failure.root_cause_message or ''}"
        message = " ".join(filter(None, (message, resemblance.titles(failure.similar))))
        yield _command(
            "notice", next(iter(failure.evidence), None), "no signature explains this", message
        )
    for gap in result.coverage.quarantined:
        title = "not diagnosed" if gap.is_undiagnosed else "not read"
        yield _command("notice", None, title, f"{gap.path}: {gap.reason}")
    summary = wording.overview(result) if result.incidents else "nothing to diagnose"
    message = f"{summary} · {wording.coverage_line(result.coverage)}"
    yield _command("notice", None, "flink-triage", message)


def _diagnosis(incident: Incident, diagnosis: Diagnosis) -> str:
    is_root = diagnosis.rank == 1 and incident.verdict == "diagnosed"
    message = (
        f"{diagnosis.signature}, {wording.percent(diagnosis.confidence)} sure, "
        f"{wording.count(diagnosis.occurrences, 'event')}. {diagnosis.remediation.summary}"
    )
    return _command(
        _COMMANDS[diagnosis.severity] if is_root else "notice",
        next(iter(diagnosis.evidence), None),
        _title(incident, f"{diagnosis.rank}. {diagnosis.title}"),
        message,
    )


def _title(incident: Incident, subject: str) -> str:
    return f"{incident.deployment}: {subject}"


def _command(name: str, evidence: Evidence | None, title: str, message: str) -> str:
    properties = {"title": title}
    if evidence is not None:
        properties = {"file": evidence.path, "line": str(max(1, evidence.line)), **properties}
    encoded_properties = ",".join(
        f"{key}={_escaped(value, _PROPERTY)}" for key, value in properties.items()
    )
    return f"::{name} {encoded_properties}::{_escaped(message, _DATA)}"


def _escaped(text: str, table: dict[str, str]) -> str:
    return "".join(table.get(character, character) for character in one_line(text))
